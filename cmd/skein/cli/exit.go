package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/events"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitFound  = 3
)

// usageError reports wrong usage: nothing was executed.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

// WrongUsage returns the error of a call that is not valid, before anything is executed: exit
// code 2.
func WrongUsage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// FoundError reports that a verification found something. The findings have been
// printed.
type FoundError struct{ message string }

func (e *FoundError) Error() string { return e.message }

// Found returns a [FoundError]: exit code 3.
func Found(format string, args ...any) error {
	return &FoundError{fmt.Sprintf(format, args...)}
}

// failedError is a failure with its own error code.
type failedError struct {
	code    string
	message string
}

func (e *failedError) Error() string { return e.message }

// Failed returns a failure with an error code of its own, such as bad_file: exit code 1.
func Failed(code, message string) error { return &failedError{code, message} }

// exit prints an error as one line and returns the exit code.
func (a *App) exit(cmd *cobra.Command, err error) int {
	if err = a.reason(err); err == nil {
		return exitDone
	}
	code, message, status := a.classify(cmd, err)
	_, _ = fmt.Fprintf(a.Err, "%s: %s: %s\n", a.Program.Name, code, strings.Join(strings.Fields(message), " "))
	return status
}

// classify returns the code, the text and the exit code of an error.
func (a *App) classify(cmd *cobra.Command, err error) (code, message string, status int) {
	var usage *usageError
	var found *FoundError
	var failed *failedError
	var refusal *events.Error
	switch {
	case errors.As(err, &usage):
		return "usage", err.Error(), exitUsage
	case !a.begun: // cobra's own: an unknown command or flag, too few arguments
		return "usage", err.Error(), exitUsage
	case errors.As(err, &found):
		return "found", found.message, exitFound
	case errors.As(err, &failed):
		return failed.code, failed.message, exitFailed
	case errors.As(err, &refusal):
		return string(refusal.Code), inFlags(cmd, refusal), exitFailed
	case errors.As(err, new(*lateError)):
		return "timeout", err.Error(), exitFailed
	case errors.Is(err, context.Canceled):
		return "interrupted", "interrupted", exitFailed
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout", err.Error(), exitFailed
	}
	return "failed", err.Error(), exitFailed
}
