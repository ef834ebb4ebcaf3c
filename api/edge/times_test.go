package edge

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// The times that readers count on, where nobody chose others.
func TestNew_Times(t *testing.T) {
	e, err := New(Options{Conn: &nats.Conn{}, Auth: Desk{}})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string][2]time.Duration{
		"between two comments of a stream": {e.opts.Ping, 15 * time.Second},
		"between two pings of a socket":    {e.opts.SocketPing, 20 * time.Second},
		"until a reader is cut off":        {e.opts.Stall, 30 * time.Second},
		"of a ticket":                      {ticketLasts, time.Minute},
		"of a session":                     {sessionLasts, 12 * time.Hour},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %v, not %v", what, c[0], c[1])
		}
	}
}
