package streams_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Of what fails, only that is worth repeating which may succeed later: damage stays, however it was
// found and by whatever it is wrapped.
func TestErrors_DamageIsNotRetried(t *testing.T) {
	t.Parallel()
	damage := &streams.UnreadableError{Stream: "SKEIN_LOG", Seq: 7, Cause: errors.New("a flipped bit")}
	for _, c := range []struct {
		name       string
		err        error
		retry      bool
		unreadable bool
	}{
		{"damage that the store check found", damage, false, true},
		{"damage while a thread is loaded", fmt.Errorf("load: %w", damage), false, true},
		{"damage among several errors", errors.Join(errors.New("a"), damage), false, true},
		{"damage that the server found", streams.Found("SKEIN_LOG", 7), false, true},
		{"answers that were lost", &streams.IncompleteError{Stream: "SKEIN_LOG", Seq: 7}, true, false},
		{"an answer that is late", &streams.SilentError{Stream: "SKEIN_LOG", Seq: 7}, true, false},
		{"a command that may be stored", events.Errorf(events.Unavailable, "unknown: %w", damage), true, false},
		{"a refusal of a remote service", events.Unreadable("SKEIN_LOG", 7, nil), false, true},
		{"no responders", nats.ErrNoResponders, true, false},
		{"a deadline", context.DeadlineExceeded, true, false},
		{"unavailable", events.Errorf(events.Unavailable, "now"), true, false},
		{"a full queue", events.Errorf(events.QueueFull, "now"), true, false},
		{"a read model that is behind", events.Errorf(events.ProjectionBehind, "now"), true, false},
		{"an invalid request", events.Invalid("/x", "no"), false, false},
		{"a conflict", events.Conflict(1, 2), false, false},
	} {
		e := events.AsError(c.err)
		if e.Retry() != c.retry || events.IsUnreadable(c.err) != c.unreadable {
			t.Errorf("%s: retry %v, unreadable %v: %v", c.name, e.Retry(), events.IsUnreadable(c.err), e)
		}
		if c.unreadable && (e.Details.Seq != 7 || e.Details.ID != "SKEIN_LOG") {
			t.Errorf("%s: %+v", c.name, e.Details)
		}
	}
}
