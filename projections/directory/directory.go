package directory

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
	"github.com/skein-threads/skein/projections/buckets"
)

// Directory lists the threads of each tenant. It is safe for concurrent use.
type Directory struct {
	progress *buckets.Progress // up to which it shows every thread

	mu      sync.RWMutex // guards what follows
	tenants map[string]*members
	ready   chan struct{} // closed when all that was there at the beginning has been read
	names   *compact.Pool // agents and users

	claims    []claim // a ring, once it is full
	nextClaim int     // the oldest one then
}

// New returns an empty directory, which is not loaded.
func New() *Directory {
	return &Directory{progress: buckets.NewProgress(), tenants: map[string]*members{}, ready: make(chan struct{}), names: &compact.Pool{}}
}

// members are the threads of one tenant.
type members struct {
	byID  map[string]uint32 // packed id to its place in the list
	list  []listed
	free  []uint32
	order []change // by sequence; one is stale if its thread has changed since
	stale int
	runs  map[uint32]*events.ThreadRun // active ones, by the place of their thread in the list
}

// listed is what is known of a thread.
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
	bare     bool // they are certainly being removed, or were
}

// change is a place in the order: a thread changed at a sequence.
type change struct {
	seq    uint64
	member uint32
}

func statusNumber(s events.ThreadStatus) uint8 {
	return uint8(slices.Index(events.ThreadMachine().States, s))
}

// Has reports whether a thread is listed.
func (d *Directory) Has(tenant, id string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.tenants[tenant]
	if t == nil {
		return false
	}
	_, ok := t.byID[packID(id)]
	return ok
}

// Warm reports whether a thread is listed as one whose documents are all there. They are removed
// only some minutes after it is listed as cold.
func (d *Directory) Warm(tenant, id string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.tenants[tenant]
	if t == nil {
		return false
	}
	at, ok := t.byID[packID(id)]
	return ok && !t.list[at].cold
}

// In returns the threads of all tenants that are in a state.
func (d *Directory) In(status events.ThreadStatus) [][2]string {
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
func (d *Directory) Shown() uint64 { return d.progress.Seq() }

// Tenants returns the tenants that have threads, in no order.
func (d *Directory) Tenants() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Collect(maps.Keys(d.tenants))
}

// EachRun passes the active runs of all tenants to see, in no order, with their threads. It holds
// a lock meanwhile: see must not call the directory.
func (d *Directory) EachRun(see func(tenant, thread string, run *events.ThreadRun)) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for tenant, of := range d.tenants {
		for at, run := range of.runs {
			see(tenant, unpackID(of.list[at].id), run)
		}
	}
}

// Agents returns the agents that the threads of a tenant name, in no order.
func (d *Directory) Agents(tenant string) []string {
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

// Reset forgets everything. The directory is not loaded until it is read again.
func (d *Directory) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tenants, d.names, d.claims, d.nextClaim = map[string]*members{}, &compact.Pool{}, nil, 0
	select {
	case <-d.ready:
		d.ready = make(chan struct{})
	default:
	}
	d.progress.Set(0)
}

// Loaded marks the initial contents as read.
func (d *Directory) Loaded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.ready)
}

// Await blocks until the directory shows a sequence. The error is the cause of ctx.
func (d *Directory) Await(ctx context.Context, seq uint64) error {
	if err := d.AwaitLoaded(ctx); err != nil {
		return err
	}
	return d.progress.Wait(ctx, seq)
}

// AwaitLoaded blocks until the initial contents are read. The error is the cause of ctx.
func (d *Directory) AwaitLoaded(ctx context.Context) error {
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
