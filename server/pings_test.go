package server_test

import (
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/server"
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
		"shipped, shorter":  {3 * time.Second, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := pinging(t, natsserver.Options{PingInterval: c.interval})
			if slow, err := server.PingsSlowly(t.Context(), ns.ClientURL(), c.limit); err != nil || slow != c.slow {
				t.Errorf("slow: %v, want %v (%v)", slow, c.slow, err)
			}
		})
	}
}

// Skein warns at its start of a server of another process that pings its clients rarely, and says
// what to set; one that does so every few seconds is fine.
func TestPings_WarnedOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		interval time.Duration
		warns    bool
	}{"nats-server's own": {0, true}, "shorter than shipped": {3 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := pinging(t, natsserver.Options{PingInterval: c.interval, JetStream: true, StoreDir: t.TempDir()})
			_, lines := logged(t, server.Config{NATS: ns.ClientURL(), HTTPListen: "127.0.0.1:0"}, zerolog.DebugLevel)
			line := lines.find(t, "how often the server pings", func(l logLine) bool { return strings.HasPrefix(l.Message, "the server pings its clients ") })
			if warned := line.Level == "warn" && strings.Contains(line.Message, "set ping_interval: 5s and ping_max: 2"); warned != c.warns {
				t.Errorf("it says %+v", line)
			}
		})
	}
}

// pinging starts a nats-server with options.
func pinging(t *testing.T, o natsserver.Options) *natsserver.Server {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", natsserver.RANDOM_PORT, true, true
	ns, err := natsserver.NewServer(&o)
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
	return ns
}
