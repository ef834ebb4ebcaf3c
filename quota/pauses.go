package quota

import (
	"sync"
	"time"
)

// Pauses determine for how long work is released whose tenant has its share: the longer, the more
// of it there is, so that redelivering it takes little time. It is safe for concurrent use.
type Pauses struct {
	each, longest time.Duration

	mu    sync.Mutex // guards the fields below
	count map[string]int
}

// NewPauses returns pauses that grow with each recently released work of a tenant, up to longest.
func NewPauses(each, longest time.Duration) *Pauses {
	return &Pauses{each: each, longest: longest, count: map[string]int{}}
}

// shortestPause is the least pause. Each recent release of the tenant adds to it.
const shortestPause = 500 * time.Millisecond

// Next counts one more of a tenant, and returns for how long to release it.
func (p *Pauses) Next(tenant string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count[tenant]++
	pause := min(shortestPause+time.Duration(p.count[tenant])*p.each, p.longest)
	time.AfterFunc(pause, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.count[tenant]--; p.count[tenant] == 0 {
			delete(p.count, tenant)
		}
	})
	return pause
}
