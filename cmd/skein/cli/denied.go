package cli

import (
	"context"
	"errors"
	"regexp"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/events"
)

// endKey is the key of a command's context for the function that ends the command with an error.
type endKey struct{}

// ending sets for a command a context that what runs in it can end with an error, which is then the
// command's: see [app.reason].
func (a *App) ending(cmd *cobra.Command) {
	ctx, end := context.WithCancelCause(cmd.Context())
	a.ended = func() error { return context.Cause(ctx) }
	cmd.SetContext(context.WithValue(ctx, endKey{}, end))
}

// reason returns the error of a command that has ended with err: a denial, if one has ended it.
// Wrong usage and findings are their own reason.
func (a *App) reason(err error) error {
	var usage *usageError
	var found *FoundError
	var denied *events.Error
	if a.ended == nil || errors.As(err, &usage) || errors.As(err, &found) || !errors.As(a.ended(), &denied) {
		return err
	}
	return denied
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
