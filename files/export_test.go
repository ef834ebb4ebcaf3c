package files

import (
	"context"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/internal/lru"
)

// What the tests, which look from outside, need of the inside.

// Later returns the store with a clock that is ahead.
func (s *Store) Later(by time.Duration) *Store {
	return &Store{js: s.js, stream: s.stream, bucket: s.bucket, objects: s.objects, known: lru.New[string, *objects.Object](knownAtMost), now: func() time.Time { return time.Now().Add(by) }}
}

// Held returns how many messages the store has.
func (s *Store) Held(ctx context.Context) (uint64, error) {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	return info.State.Msgs, nil
}

// Abandon stores pieces and then stops, as a crashing process does. It returns the name under
// which they are.
func (s *Store) Abandon(ctx context.Context, tenant string, pieces ...[]byte) (string, error) {
	w := s.newWriter(tenant)
	for _, p := range pieces {
		if err := w.put(ctx, p); err != nil {
			return "", err
		}
	}
	return w.nuid, nil
}

// CollectAround collects everything that is old, and calls between after it has
// found out what is garbage and before it takes it.
func (s *Store) CollectAround(ctx context.Context, log *eventlog.Log, between func() error) (found, taken int, err error) {
	c := collector{
		store: s, options: CollectOptions{Grace: time.Hour, Delete: true}, before: s.now().Add(-time.Hour),
		old: map[string]kept{}, owned: map[string]bool{},
	}
	if err = c.listObjects(ctx); err == nil {
		err = c.spareNamed(ctx, log)
	}
	if found = len(c.old); err == nil {
		err = between()
	}
	for _, k := range c.old {
		if err == nil {
			err = c.collectObject(ctx, k)
		}
	}
	return found, int(c.sum.Taken), err
}
