package serve_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/skein-threads/skein/internal/serve"
)

// The interval of a server's pings is measured: one that is longer than the limit is told from one
// that is shorter.
func TestPings_Measured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		interval, limit time.Duration
		slow            bool
	}{
		"nats-server's own": {0, time.Second, true},
		"shipped, shorter":  {50 * time.Millisecond, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, PingInterval: c.interval})
			if err != nil {
				t.Fatal(err)
			}
			ns.Start()
			t.Cleanup(func() {
				ns.Shutdown()
				ns.WaitForShutdown()
			})
			if !ns.ReadyForConnections(time.Minute) {
				t.Fatal("the server is not ready")
			}
			if slow, err := serve.PingsSlowly(t.Context(), ns.ClientURL(), c.limit); err != nil || slow != c.slow {
				t.Errorf("slow: %v, want %v (%v)", slow, c.slow, err)
			}
		})
	}
}
