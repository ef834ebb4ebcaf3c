package commands

import (
	"sync"
	"time"
)

// floodOf is how many requests of a tenant beyond its limits, within floodTime, are
// a flood. A client that waits for answers never comes to that.
const (
	floodOf   = 2000
	floodTime = time.Second
	// floodCalm is how long after its last flood a tenant still is one that floods.
	floodCalm = 30 * time.Second
)

// Floods finds the tenants that go on sending whatever they are answered, and tells
// of each. It is safe for concurrent use.
type Floods struct {
	tell func(tenant string)

	mu    sync.Mutex // guards what follows
	began time.Time
	count map[string]int
	last  map[string]time.Time // of those that flooded, when they did
}

// NewFloods makes one that calls tell, each time in a goroutine of its own, once for
// a tenant within a second.
func NewFloods(tell func(tenant string)) *Floods {
	return &Floods{tell: tell, count: map[string]int{}, last: map[string]time.Time{}}
}

// over counts a request that is beyond the limits of its tenant.
func (f *Floods) over(tenant string, now time.Time) {
	if f == nil || tenant == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.began) >= floodTime {
		clear(f.count)
		f.began = now
	}
	if f.count[tenant]++; f.count[tenant] == floodOf {
		f.last[tenant] = now
		go f.tell(tenant)
	}
}

// flooding reports whether a tenant has flooded lately.
func (f *Floods) flooding(tenant string, now time.Time) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.last[tenant]
	if ok && now.Sub(at) >= floodCalm {
		delete(f.last, tenant)
		return false
	}
	return ok
}
