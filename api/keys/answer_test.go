package keys_test

import (
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// Once a store answers, no request is refused for want of one, over however slow a connection.
func TestAnswer_BeginsBeforeItReturns(t *testing.T) {
	t.Parallel()
	s, nc := newFolder(t)
	store, err := keys.Open(s.dir, func(err error) { t.Error(err) })
	s.must(err)
	t.Cleanup(store.Close)
	slow := natstest.Dial(t, nc.ConnectedUrl(), nats.SetCustomDialer(slowly{}))
	names := events.Names{Prefix: "other"}
	s.must(store.Answer(slow, names))
	if _, err := nc.Request(names.GatewayKeys(""), []byte(`{}`), time.Minute); err != nil {
		t.Error(err)
	}
}

// slowly dials connections that write slowly.
type slowly struct{}

func (slowly) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return slowConn{c}, err
}

type slowConn struct{ net.Conn }

func (c slowConn) Write(b []byte) (int, error) {
	time.Sleep(50 * time.Millisecond)
	return c.Conn.Write(b)
}
