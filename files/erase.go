package files

import (
	"context"
	"strings"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/objects"
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

// Erase overwrites and removes the contents with the given digests, except those that a thread's
// history names. A writer may be about to name content that it found in the store, so content that
// was written or found within MinGrace is kept; Erase then returns after how long it must be
// called again. It reads the tenant's log, unless all of the contents are too young.
func (e *Eraser) Erase(ctx context.Context, tenant string, digests []string) (again time.Duration, err error) {
	c := e.collector(tenant)
	before := e.now().Add(-MinGrace)
	for _, digest := range digests {
		o, _, err := e.store.find(ctx, tenant, digest)
		if err != nil {
			return 0, err
		}
		if o == nil {
			continue
		}
		if young := o.Stored.Sub(before); young > 0 {
			again = max(again, young)
			continue
		}
		name := objectName(tenant, digest)
		c.old[name] = kept{o, objects.Entry(e.store.bucket, name)}
	}
	if err := c.spareNamed(ctx, e.log); err != nil {
		return 0, err
	}
	return again, c.erase(ctx)
}

// ErasePages is Erase for the pages that were made of a thread's history. A fork stores pages
// before it is decided, so there may be pages that no thread names. It reads the entries of all
// contents.
func (e *Eraser) ErasePages(ctx context.Context, tenant, thread string) (again time.Duration, err error) {
	c := e.collector(tenant)
	before := e.now().Add(-MinGrace)
	if err := c.entries(ctx, func(k kept) {
		if k.Metadata[metaOf] == thread && strings.HasPrefix(k.Name, objectName(tenant, "")) {
			c.old[k.Name] = k
		}
	}); err != nil {
		return 0, err
	}
	if err := c.spareNamed(ctx, e.log); err != nil {
		return 0, err
	}
	for name, k := range c.old {
		if young := k.Stored.Sub(before); young > 0 {
			again = max(again, young)
			delete(c.old, name)
		}
	}
	return again, c.erase(ctx)
}

func (e *Eraser) collector(tenant string) *collector {
	return &collector{store: e.store, options: CollectOptions{Delete: true}, old: map[string]kept{}, tenant: tenant, eraser: e.log}
}

// erase deletes the objects in old.
func (c *collector) erase(ctx context.Context) error {
	for _, k := range c.old {
		if err := c.collectObject(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
