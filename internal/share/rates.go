package share

import (
	"sync"
	"time"
)

// Rates counts, with a token bucket for each tenant, how often each does
// something. It is safe for concurrent use.
type Rates struct {
	rate, burst float64

	mu    sync.Mutex // guards what follows
	known map[string]*bucket
}

type bucket struct {
	tokens float64
	at     time.Time // when the tokens were counted
}

// knownTenants is how many tenants are remembered before those that have a full
// bucket are forgotten.
const knownTenants = 4096

// NewRates lets each tenant do something rate times a second in the long run, and
// burst times at once before that. A rate of 0 limits nothing.
func NewRates(rate float64, burst int) *Rates {
	return &Rates{rate: rate, burst: float64(max(1, burst)), known: map[string]*bucket{}}
}

// Take reports whether the tenant may do it now, and counts it then.
func (r *Rates) Take(tenant string, now time.Time) bool {
	if r.rate <= 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.known[tenant]
	if one == nil {
		Evict(r.known, knownTenants, func(b *bucket) bool { return r.full(b, now) })
		one = &bucket{tokens: r.burst, at: now}
		r.known[tenant] = one
	}
	r.fill(one, now)
	if one.tokens < 1 {
		return false
	}
	one.tokens--
	return true
}

// fill adds the tokens that time has brought.
func (r *Rates) fill(one *bucket, now time.Time) {
	if d := now.Sub(one.at); d > 0 {
		one.tokens = min(r.burst, one.tokens+d.Seconds()*r.rate)
		one.at = now
	}
}

// full reports whether a tenant has all of its tokens: it is as one that never came.
func (r *Rates) full(one *bucket, now time.Time) bool {
	r.fill(one, now)
	return one.tokens >= r.burst
}
