package keys

import (
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// told are times within which nothing is found by looking: only what is told counts.
func told() times { return times{time.Hour, time.Hour, 3 * time.Hour} }

// OpenTold is Open for a store that looks at its file once an hour.
func OpenTold(dir string, warn func(error)) (*Store, error) { return open(dir, warn, told()) }

// FollowTold is Follow for a Remote that asks once an hour.
func FollowTold(nc *nats.Conn, n events.Names, tenants []string) *Remote {
	return follow(nc, n, tenants, told())
}
