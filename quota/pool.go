package quota

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Places is how many places there are.
type Places struct {
	Total  int // of all tenants together
	Tenant int // of one tenant; 0: its fair share and no less; negative: as many as are free
}

// Metrics is told of the places. Its methods must return at once.
type Metrics interface {
	// Places is told how many places of a kind are taken, and how many requests wait
	// for one.
	Places(kind string, taken, waiting int)
	// PlaceRefused is told that a tenant got none: it has its share, or all are taken,
	// or too many of its requests wait.
	PlaceRefused(kind, why string)
}

// Why a tenant gets no place.
const (
	WhyShare   = "share"   // it holds its share
	WhyTotal   = "total"   // all places are taken
	WhyWaiting = "waiting" // too many of its requests wait
	WhyRate    = "rate"    // it has taken places too often; see Rates
)

// FullError says that a tenant gets no place now.
type FullError struct{ Kind, Why string }

func (e *FullError) Error() string {
	switch e.Why {
	case WhyShare:
		return fmt.Sprintf("the tenant has its share of the places for %s; try again when some of its own have ended", e.Kind)
	case WhyWaiting:
		return fmt.Sprintf("too many requests of the tenant wait for a place for %s; try again", e.Kind)
	}
	return fmt.Sprintf("all places for %s are taken; try again", e.Kind)
}

// mostWaiting is how many requests of one tenant may wait for a place.
const mostWaiting = 64

// Pool is a number of places for one kind of work. It is safe for concurrent use.
type Pool struct {
	kind    string
	limit   Places
	metrics Metrics

	mu      sync.Mutex // guards what follows
	taken   int
	held    map[string]int    // by tenant; none is zero
	waiting []*waiter         // in the order in which they came
	waits   map[string]int    // by tenant; none is zero
	grants  uint64            // places that were taken so far
	last    map[string]uint64 // of them, a tenant's latest; of those that hold a place or wait for one
}

// waiter waits for a place. Its channel is closed when it has one.
type waiter struct {
	tenant string
	given  chan struct{}
}

// NewPool returns the places for one kind of work. The kind is a label of the metrics;
// nobody is told if metrics is nil.
func NewPool(kind string, l Places, metrics Metrics) *Pool {
	if metrics == nil {
		metrics = silent{}
	}
	return &Pool{kind: kind, limit: l, metrics: metrics, held: map[string]int{}, waits: map[string]int{}, last: map[string]uint64{}}
}

type silent struct{}

func (silent) Places(string, int, int)     {}
func (silent) PlaceRefused(string, string) {}

// Try takes a place for a tenant, if it may have one now; else the error is a
// *FullError. Call leave once when the place is free again; more calls do nothing.
func (p *Pool) Try(tenant string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if why := p.refuses(tenant); why != "" {
		p.metrics.PlaceRefused(p.kind, why)
		return nil, &FullError{Kind: p.kind, Why: why}
	}
	return p.take(tenant), nil
}

// takeFree is Try without a reason, and without a refusal in the metrics: nil if the tenant may have
// none now.
func (p *Pool) takeFree(tenant string) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses(tenant) != "" {
		return nil
	}
	return p.take(tenant)
}

// Wait takes a place for a tenant, and waits for one until ctx ends. The error is
// that of ctx, or a *FullError if too many of the tenant's requests wait.
func (p *Pool) Wait(ctx context.Context, tenant string) (leave func(), err error) {
	p.mu.Lock()
	if p.refuses(tenant) == "" {
		defer p.mu.Unlock()
		return p.take(tenant), nil
	}
	if p.waits[tenant] >= mostWaiting {
		defer p.mu.Unlock()
		p.metrics.PlaceRefused(p.kind, WhyWaiting)
		return nil, &FullError{Kind: p.kind, Why: WhyWaiting}
	}
	w := &waiter{tenant: tenant, given: make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.waits[tenant]++
	p.tell()
	p.mu.Unlock()
	select {
	case <-w.given:
		return p.leave(tenant), nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.forget(i)
		p.tell()
		return nil, ctx.Err()
	}
	p.free(tenant) // it was given at the same time
	return nil, ctx.Err()
}

// Refused tells the metrics that a tenant's work was put off for another reason than
// that there is no place.
func (p *Pool) Refused(why string) { p.metrics.PlaceRefused(p.kind, why) }

// refuses says why a tenant may not have another place now, or nothing.
func (p *Pool) refuses(tenant string) string {
	free, held := p.limit.Total-p.taken, p.held[tenant]
	switch {
	case free <= 0:
		return WhyTotal
	case p.limit.Tenant < 0:
		return ""
	case free < held, p.limit.Tenant > 0 && held >= p.limit.Tenant:
		return WhyShare
	}
	return ""
}

func (p *Pool) take(tenant string) (leave func()) {
	p.grant(tenant)
	p.tell()
	return p.leave(tenant)
}

// grant assigns a free place to a tenant.
func (p *Pool) grant(tenant string) {
	p.taken++
	p.held[tenant]++
	p.grants++
	p.last[tenant] = p.grants
}

func (p *Pool) leave(tenant string) func() {
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free(tenant)
	})
}

// free frees a place of a tenant, and assigns free places to waiting requests.
func (p *Pool) free(tenant string) {
	p.taken--
	if p.held[tenant]--; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
	for p.next() {
	}
	p.forgetIdle(tenant)
	p.tell()
}

// next assigns a free place to the waiting tenant that comes first, and reports whether there was
// one.
func (p *Pool) next() bool {
	best := -1
	for i, w := range p.waiting {
		if p.refuses(w.tenant) == "" && (best < 0 || p.before(w.tenant, p.waiting[best].tenant)) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	w := p.waiting[best]
	p.grant(w.tenant)
	p.forget(best)
	close(w.given)
	return true
}

// before reports whether a tenant comes before another: it holds fewer places, or as many, and
// the one that it took last was taken earlier.
func (p *Pool) before(tenant, other string) bool {
	if a, b := p.held[tenant], p.held[other]; a != b {
		return a < b
	}
	return p.last[tenant] < p.last[other]
}

// forgetIdle forgets a tenant that neither holds a place nor waits for one.
func (p *Pool) forgetIdle(tenant string) {
	if p.held[tenant] == 0 && p.waits[tenant] == 0 {
		delete(p.last, tenant)
	}
}

func (p *Pool) forget(i int) {
	tenant := p.waiting[i].tenant
	p.waiting = slices.Delete(p.waiting, i, i+1)
	if p.waits[tenant]--; p.waits[tenant] == 0 {
		delete(p.waits, tenant)
	}
	p.forgetIdle(tenant)
}

func (p *Pool) tell() { p.metrics.Places(p.kind, p.taken, len(p.waiting)) }
