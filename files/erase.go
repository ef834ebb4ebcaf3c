package files

import (
	"context"
	"time"

	"github.com/skein-threads/skein/eventlog"
)

// Eraser erases contents when the threads that named them are purged.
type Eraser struct {
	store *Store
	log   *eventlog.Log
	now   func() time.Time
}

// NewEraser returns the eraser of a store; now may be nil for the system clock.
func NewEraser(store *Store, log *eventlog.Log, now func() time.Time) *Eraser {
	if now == nil {
		now = time.Now
	}
	return &Eraser{store, log, now}
}

// Erase overwrites and removes those of a tenant's contents that no thread's history names. A
// writer may be about to name content that it found in the store: so content that was written,
// or found, within MinGrace is kept, and Erase returns after how long it must be called again.
// It reads the tenant's log, unless all of the contents are too young.
func (e *Eraser) Erase(ctx context.Context, tenant string, digests []string) (again time.Duration, err error) {
	c := collector{
		store: e.store, options: CollectOptions{Delete: true}, old: map[string]kept{}, tenant: tenant, eraser: e.log,
	}
	before := e.now().Add(-MinGrace)
	for _, digest := range digests {
		o, seq, err := e.store.find(ctx, tenant, digest)
		if err != nil {
			return 0, err
		}
		if o == nil {
			continue
		}
		if young := o.written.Sub(before); young > 0 {
			again = max(again, young)
			continue
		}
		name := objectName(tenant, digest)
		c.old[name] = kept{o, e.store.entrySubject(name), seq}
	}
	if err := c.unname(ctx, e.log); err != nil {
		return 0, err
	}
	for _, k := range c.old {
		if err := c.object(ctx, k); err != nil {
			return 0, err
		}
	}
	return again, nil
}
