package streams_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/skein-threads/skein/eventlog/streams"
)

// On a cluster it takes a moment until every server knows who takes the pieces of
// a restore: they are sent again until there is a responder. No other error is retried.
func TestUntilResponders_Retries(t *testing.T) {
	asked := 0
	if err := streams.UntilResponders(t.Context(), func() error {
		if asked++; asked < 4 {
			return nats.ErrNoResponders
		}
		return nil
	}); err != nil || asked != 4 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	other := errors.New("no room")
	asked = 0
	if err := streams.UntilResponders(t.Context(), func() error { asked++; return other }); !errors.Is(err, other) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
