package commands

import (
	"sync"
	"time"
)

// Fair is what one tenant may have of a service while others use the process, too.
// More of its requests wait for their turn, within Limits; alone it may have all.
// A zero field bounds nothing.
type Fair struct {
	Running int     // requests that are worked on at the same time
	Rate    float64 // requests begun a second
}

// running returns how many requests of a tenant may be worked on at the same time
// while others are active: of one that floods a fourth. 0 is any number.
func (f Fair) running(flooding bool) int {
	if flooding && f.Running > 0 {
		return max(1, f.Running/4)
	}
	return f.Running
}

// Activity knows whether several tenants use a process. Services share one. It is
// safe for concurrent use.
type Activity struct {
	mu    sync.Mutex // guards what follows
	last  seen       // the tenant that asked last
	other seen       // the one before it
}

type seen struct {
	tenant string
	at     time.Time
}

// activeFor is how long after a request its tenant is among those that use the
// process.
const activeFor = 2 * time.Second

// shared notes a request, and reports whether other tenants than its own have asked
// lately.
func (a *Activity) shared(tenant string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last.tenant != tenant {
		a.other = a.last
	}
	a.last = seen{tenant, now}
	return a.other.tenant != "" && now.Sub(a.other.at) < activeFor
}

// lanes begins the requests of each tenant in their order, so many at a time as
// its share allows. It is safe for concurrent use.
type lanes struct {
	fair     Fair
	activity *Activity
	floods   *Floods    // knows the tenants that flood; nil: none does
	begin    func(work) // must return at once
	drop     func(work) // refuses a request that waits; must return at once

	mu     sync.Mutex // guards what follows
	tenant map[string]*lane
}

// lane is what one tenant has.
type lane struct {
	running int
	waiting []work
	tokens  float64
	at      time.Time // when the tokens were counted
	timer   bool      // it is looked at again when there is a token
}

func newLanes(f Fair, a *Activity, floods *Floods, begin, drop func(work)) *lanes {
	if a == nil {
		a = &Activity{}
	}
	return &lanes{fair: f, activity: a, floods: floods, begin: begin, drop: drop, tenant: map[string]*lane{}}
}

// add begins a request when it is its turn.
func (l *lanes) add(w work, now time.Time) {
	shared := l.activity.shared(w.tenant, now)
	l.mu.Lock()
	one := l.tenant[w.tenant]
	if one == nil {
		one = &lane{at: now, tokens: l.burst()}
		l.tenant[w.tenant] = one
	}
	one.waiting = append(one.waiting, w)
	next, over := l.next(w.tenant, one, shared, now)
	l.mu.Unlock()
	l.release(next, over)
}

// release begins requests, and refuses others.
func (l *lanes) release(next, over []work) {
	for _, w := range next {
		l.begin(w)
	}
	for _, w := range over {
		l.drop(w)
	}
}

// ended begins what follows on a request that was answered.
func (l *lanes) ended(tenant string) { l.look(tenant, func(one *lane) { one.running-- }) }

// look changes a lane, and begins what may begin then.
func (l *lanes) look(tenant string, change func(*lane)) {
	now := time.Now()
	l.mu.Lock()
	one := l.tenant[tenant]
	change(one)
	var next, over []work
	if len(one.waiting) > 0 {
		next, over = l.next(tenant, one, l.activity.shared(tenant, now), now)
	}
	if one.running == 0 && len(one.waiting) == 0 && !one.timer {
		delete(l.tenant, tenant)
	}
	l.mu.Unlock()
	l.release(next, over)
}

// next takes out of a lane what may begin now, and what is to be refused: of a
// tenant that floods while others are active, as many may wait as are worked on.
func (l *lanes) next(tenant string, one *lane, shared bool, now time.Time) (next, over []work) {
	flooding := shared && l.floods.flooding(tenant, now)
	running := l.fair.running(flooding)
	if d := now.Sub(one.at); d > 0 {
		one.tokens, one.at = min(l.burst(), one.tokens+d.Seconds()*l.fair.Rate), now
	}
	n := 0
	for n < len(one.waiting) {
		if shared && running > 0 && one.running >= running {
			break
		}
		if shared && l.fair.Rate > 0 && one.tokens < 1 {
			if !one.timer {
				one.timer = true
				time.AfterFunc(time.Duration((1-one.tokens)/l.fair.Rate*float64(time.Second))+time.Millisecond, func() {
					l.look(tenant, func(one *lane) { one.timer = false })
				})
			}
			break
		}
		one.tokens = max(0, one.tokens-1)
		one.running++
		n++
	}
	next, one.waiting = one.waiting[:n:n], one.waiting[n:]
	if flooding && running > 0 && len(one.waiting) > running {
		over, one.waiting = one.waiting[running:], one.waiting[:running:running]
	}
	if len(one.waiting) == 0 {
		one.waiting = nil
	}
	return next, over
}

// burst is how many requests of a tenant may begin at once: a tenth of a second's
// worth.
func (l *lanes) burst() float64 { return max(1, l.fair.Rate/10) }
