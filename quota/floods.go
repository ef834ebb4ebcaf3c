package quota

import (
	"maps"
	"sync"
	"time"
)

const (
	// floodOf is how many requests of a tenant over its limits, within floodTime, are
	// a flood. A client that waits for replies never sends as many.
	floodOf   = 2000
	floodTime = time.Second
	// floodCalm is how long after its last flood a tenant still counts as flooding.
	floodCalm = 30 * time.Second
)

// Floods detects tenants that keep sending whatever the replies are. It is safe for
// concurrent use.
type Floods struct {
	report func(tenant string)

	mu    sync.Mutex // guards what follows
	began time.Time
	count map[string]int
	last  map[string]time.Time // when each tenant last flooded
}

// NewFloods returns a detector that calls report for a tenant that floods, at most once a
// second for each, in a goroutine of its own.
func NewFloods(report func(tenant string)) *Floods {
	return &Floods{report: report, count: map[string]int{}, last: map[string]time.Time{}}
}

// Note counts a request of a tenant that is over its limits, or a submitted command.
func (f *Floods) Note(tenant string, now time.Time) {
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
		maps.DeleteFunc(f.last, func(_ string, at time.Time) bool { return now.Sub(at) >= floodCalm })
		f.last[tenant] = now
		go f.report(tenant)
	}
}

// flooding reports whether a tenant has flooded lately. Without Floods none has.
func (f *Floods) flooding(tenant string, now time.Time) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.last[tenant]
	return ok && now.Sub(at) < floodCalm
}
