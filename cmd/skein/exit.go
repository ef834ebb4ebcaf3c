package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

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

func wrongUsage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// foundError reports that a verification found something. The findings have been
// printed.
type foundError struct{ message string }

func (e *foundError) Error() string { return e.message }

// failedError is a failure with its own error code.
type failedError struct {
	code    string
	message string
}

func (e *failedError) Error() string { return e.message }

// exit prints an error as one line and returns the exit code.
func (a *app) exit(err error) int {
	if err == nil {
		return exitDone
	}
	code, message, status := a.classify(err)
	_, _ = fmt.Fprintf(a.err, "skein: %s: %s\n", code, strings.Join(strings.Fields(message), " "))
	return status
}

// classify returns the code, the text and the exit code of an error.
func (a *app) classify(err error) (code, message string, status int) {
	var usage *usageError
	var found *foundError
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
		return string(refusal.Code), refusal.Message, exitFailed
	case errors.Is(err, context.Canceled):
		return "interrupted", "interrupted", exitFailed
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout", err.Error(), exitFailed
	}
	return "failed", err.Error(), exitFailed
}
