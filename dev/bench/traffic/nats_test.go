package traffic

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/internal/natstest"
)

// dialer counts the connections that it makes.
type dialer struct{ made atomic.Int64 }

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.made.Add(1)
	return net.Dial(network, address)
}

// Each client over NATS has a connection of its own, as over HTTP.
func TestRun_ConnectionsOfClients(t *testing.T) {
	d := &dialer{}
	nc := natstest.Connect(t, natstest.Start(t), nats.SetCustomDialer(d))
	w := Work{Case: PostItem, Tenant: "acme", Clients: 3, Threads: []string{"T-1", "T-2", "T-3"}}
	if _, err := w.Run(t.Context(), nc); err != nil {
		t.Fatal(err)
	}
	if made := d.made.Load() - 1; made != 3 {
		t.Errorf("3 clients made %d connections", made)
	}
}
