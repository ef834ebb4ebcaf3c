package traffic

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/internal/natstest"
)

// Each client over NATS has a connection of its own, as over HTTP.
func TestRun_ConnectionsOfClients(t *testing.T) {
	s := natstest.Start(t)
	nc := natstest.Connect(t, s)
	number := func(nc *nats.Conn) uint64 { // the server counts its connections
		t.Helper()
		id, err := nc.GetClientID()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	w := Work{Case: PostItem, Tenant: "acme", Clients: 3, Threads: []string{"T-1", "T-2", "T-3"}}
	if _, err := w.Run(t.Context(), nc); err != nil {
		t.Fatal(err)
	}
	if made := number(natstest.Connect(t, s)) - number(nc) - 1; made != 3 {
		t.Errorf("3 clients made %d connections", made)
	}
}
