package pairs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// usageAge is for how long a tenant's usage is not asked for again, unless this process has
// written as much as is left. So several processes may together exceed the limit by what they
// write in that time.
const usageAge = 10 * time.Second

// usages knows how much tenants store. It is safe for concurrent use.
type usages struct {
	mu    sync.Mutex // guards what follows
	known map[string]usage
}

// usage counts the keys and bytes in a tenant's bucket: as it was read, plus this process's writes
// since.
type usage struct {
	keys, bytes int64
	at          time.Time
}

// knownUsages is how many tenants are remembered.
const knownUsages = 4096

func newUsages() *usages { return &usages{known: map[string]usage{}} }

func (u *usages) add(tenant string, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if one, ok := u.known[tenant]; ok {
		one.keys, one.bytes = one.keys+1, one.bytes+bytes
		u.known[tenant] = one
	}
}

func (u *usages) find(tenant string) (usage, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one, ok := u.known[tenant]
	return one, ok
}

func (u *usages) set(tenant string, one usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.known) >= knownUsages {
		clear(u.known)
	}
	u.known[tenant] = one
}

// admit refuses a write that would exceed the tenant's limits. Deleting is never refused.
func (s *Store) admit(ctx context.Context, tenant string, old *streams.Message, m *nats.Msg) error {
	if m.Header.Get(headerOperation) == deleted {
		return nil
	}
	more, added := int64(len(m.Data)), int64(1)
	if old != nil {
		more, added = more-int64(len(old.Data)), 0
	}
	now := s.cfg.Now()
	one, ok := s.used.find(tenant)
	fits := func() bool {
		return (s.cfg.MaxBytes < 0 || one.bytes+more <= s.cfg.MaxBytes) && one.keys+added <= assets.MaxPairs
	}
	if !ok || now.Sub(one.at) > usageAge || !fits() {
		stream, err := s.conn.JetStream().Stream(ctx, assets.PairsStream(s.conn.Config().Names, tenant))
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			one = usage{at: now}
		case err != nil:
			return events.Errorf(events.Unavailable, "how much the tenant stores cannot be told now; try again: %w", err)
		default:
			state := stream.CachedInfo().State
			one = usage{keys: int64(state.Msgs), bytes: int64(state.Bytes), at: now}
		}
		s.used.set(tenant, one)
	}
	switch {
	case fits():
		return nil
	case one.keys+added > assets.MaxPairs:
		return events.Errorf(events.PayloadTooLarge, "the tenant has %d keys, deleted ones of the last day included; at most %d are allowed", one.keys, assets.MaxPairs)
	}
	return events.TooLarge("what the tenant stores", one.bytes+more, s.cfg.MaxBytes)
}
