package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/events"
)

// endKey is the key of a command's context for the function that ends the command with an error.
type endKey struct{}

// ending sets for a command a context that ends after --timeout, if it is set, and that what runs in
// it can end with an error. The error is then the command's: see [App.reason].
func (a *App) ending(cmd *cobra.Command) {
	ctx, end := context.WithCancelCause(cmd.Context())
	a.stop = func() { end(nil) }
	a.ended = func() error { return context.Cause(ctx) }
	cmd.SetContext(context.WithValue(ctx, endKey{}, end))
	f := cmd.Flags().Lookup("timeout")
	if f == nil || !f.Changed {
		return
	}
	within, err := cmd.Flags().GetDuration(f.Name)
	if _, is := f.Annotations[perRequest]; is || err != nil {
		return
	}
	bounded, stop := context.WithTimeoutCause(cmd.Context(), within, &lateError{cmd.CommandPath(), within})
	a.stop = func() { stop(); end(nil) }
	a.ended = func() error { return context.Cause(bounded) }
	cmd.SetContext(bounded)
}

// lateError reports that a command did not end within its --timeout.
type lateError struct {
	command string
	within  time.Duration
}

func (e *lateError) Error() string {
	return fmt.Sprintf("%s did not end within %v; set a longer --timeout", e.command, e.within)
}

// reason returns the error of a command that has ended with err: a denial or the timeout, if one of
// them has ended it. Wrong usage, findings and failures that explain themselves are their own reason.
func (a *App) reason(err error) error {
	var usage *usageError
	var found *FoundError
	if a.ended == nil || errors.As(err, &usage) || errors.As(err, &found) {
		return err
	}
	var denied *events.Error
	var late *lateError
	ended := a.ended()
	if errors.As(ended, &denied) {
		return denied
	}
	if errors.As(ended, &late) && err != nil && !errors.As(err, new(*failedError)) {
		return late
	}
	return err
}

// violation finds what a server does not permit in its message.
var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// denied returns the error that a server's message is about a permission, or nil. A report of an
// operation is none: nothing depends on it.
func denied(err error) *events.Error {
	found := violation.FindStringSubmatch(err.Error())
	if !errors.Is(err, nats.ErrPermissionViolation) || found == nil || found[2] == events.DefaultNames().OperationReport() {
		return nil
	}
	may := "publish on"
	if found[1][0]|0x20 == 's' {
		may = "subscribe to"
	}
	return events.Errorf(events.Forbidden, "these credentials may not %s %s: docs/access.md says which role may", may, found[2])
}

// Context returns the context of the command, which ends when the server does not permit what the
// command does.
func (r *Remote) Context() context.Context {
	if r.cmd == nil {
		return context.Background()
	}
	return r.cmd.Context()
}

// denials returns the option that ends the command when the server does not permit what its
// connection does. The server says so apart from the request, which has no answer then and would
// be waited for.
func (r *Remote) denials() nats.Option {
	return nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		refusal := denied(err)
		if refusal == nil || r.cmd == nil {
			return
		}
		if end, ok := r.cmd.Context().Value(endKey{}).(context.CancelCauseFunc); ok {
			end(refusal)
		}
	})
}
