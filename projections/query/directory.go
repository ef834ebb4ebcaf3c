package query

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
	"github.com/skein-threads/skein/projections/buckets"
)

// directory lists the threads of each tenant. It is safe for concurrent use.
type directory struct {
	progress *buckets.Progress // the sequence up to which the directory shows every thread

	mu      sync.RWMutex // guards what follows
	tenants map[string]*memberSets
	ready   chan struct{} // closed when the initial contents have been read
	names   *compact.Pool // agents and users

	claims    []claim // a ring buffer, once it is full
	nextClaim int     // the oldest claim then
}

// newDirectory returns an empty directory, which is not loaded.
func newDirectory() *directory {
	return &directory{progress: buckets.NewProgress(), tenants: map[string]*memberSets{}, ready: make(chan struct{}), names: &compact.Pool{}}
}

// members are the threads of one tenant.
type memberSets struct {
	byID  map[string]uint32 // maps a packed id to its index in list
	list  []listed
	free  []uint32
	order []change // by sequence; a change is stale if its thread has changed again
	stale int
	runs  map[uint32]*events.ThreadRun // active runs, by their thread's index in list
}

// listed is the directory's entry of a thread.
type listed struct {
	id       string // packed
	key      string
	seq      uint64
	changed  events.Time
	agent    uint32 // its number in names
	user     uint32
	status   uint8
	archived bool
	cold     bool // its documents may be absent
	bare     bool // they were removed, or are being removed
}

// change is an element of the order: a thread changed at a sequence.
type change struct {
	seq    uint64
	member uint32
}

func statusNumber(s events.ThreadStatus) uint8 {
	return uint8(slices.Index(events.ThreadMachine().States, s))
}

// Has reports whether a thread is listed.
func (d *directory) Has(tenant, id string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.tenants[tenant]
	if t == nil {
		return false
	}
	_, ok := t.byID[packID(id)]
	return ok
}

// Warm reports whether the buckets certainly have all documents of a thread. Documents are removed
// only some minutes after a thread is listed as cold.
func (d *directory) Warm(tenant, id string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.tenants[tenant]
	if t == nil {
		return false
	}
	at, ok := t.byID[packID(id)]
	return ok && !t.list[at].cold
}

// In returns the threads of all tenants with a status.
func (d *directory) In(status events.ThreadStatus) [][2]string {
	want := statusNumber(status)
	d.mu.RLock()
	defer d.mu.RUnlock()
	var out [][2]string
	for tenant, of := range d.tenants {
		for packed, at := range of.byID {
			if of.list[at].status == want {
				out = append(out, [2]string{tenant, unpackID(packed)})
			}
		}
	}
	return out
}

// Shown returns the sequence up to which the directory shows every thread.
func (d *directory) Shown() uint64 { return d.progress.Seq() }

// Tenants returns the tenants that have threads, in no order.
func (d *directory) Tenants() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Collect(maps.Keys(d.tenants))
}

// EachRun calls see with each active run of all tenants and its thread, in no order. see must not
// call the directory, because EachRun holds its lock.
func (d *directory) EachRun(see func(tenant, thread string, run *events.ThreadRun)) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for tenant, of := range d.tenants {
		for at, run := range of.runs {
			see(tenant, unpackID(of.list[at].id), run)
		}
	}
}

// Agents returns the agents of a tenant's threads, in no order.
func (d *directory) Agents(tenant string) []string {
	seen := map[uint32]bool{0: true}
	var names []string
	d.scan(tenant, 0, 1, func(m *listed) bool {
		if !seen[m.agent] {
			seen[m.agent] = true
			names = append(names, d.names.Text(m.agent))
		}
		return false
	})
	return names
}

// Reset empties the directory. It is not loaded until Loaded is called again.
func (d *directory) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tenants, d.names, d.claims, d.nextClaim = map[string]*memberSets{}, &compact.Pool{}, nil, 0
	select {
	case <-d.ready:
		d.ready = make(chan struct{})
	default:
	}
	d.progress.Set(0)
}

// Loaded marks the initial contents as read.
func (d *directory) Loaded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.ready)
}

// Await blocks until the directory shows a sequence. The error is the cause of ctx.
func (d *directory) Await(ctx context.Context, seq uint64) error {
	if err := d.AwaitLoaded(ctx); err != nil {
		return err
	}
	return d.progress.Wait(ctx, seq)
}

// AwaitLoaded blocks until the initial contents are read. The error is the cause of ctx.
func (d *directory) AwaitLoaded(ctx context.Context) error {
	d.mu.RLock()
	ready := d.ready
	d.mu.RUnlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
