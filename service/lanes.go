package service

import (
	"sync"
	"time"
)

// Fair bounds what one tenant may use of a service while others use the process, too.
// Further requests wait, within [Limits]; alone a tenant may use everything. A zero field
// bounds nothing.
type Fair struct {
	Running int     // requests that run at the same time
	Rate    float64 // requests started a second
}

// Share returns how many of a tenant's requests may run at the same time now; 0 is any
// number. It records that the tenant is active. The services of a process call it
// themselves; it is for work of tenants that does not arrive as requests.
func (f Fair) Share(tenant string, a *Activity, floods *Floods) int {
	now := time.Now()
	if !a.shared(tenant, now) {
		return 0
	}
	return f.running(floods.flooding(tenant, now))
}

// running returns how many requests of a tenant may run at the same time while others
// are active; a tenant that floods has a fourth. 0 is any number.
func (f Fair) running(flooding bool) int {
	if flooding && f.Running > 0 {
		return max(1, f.Running/4)
	}
	return f.Running
}

// Activity records whether several tenants use a process. Services share one. It is safe
// for concurrent use.
type Activity struct {
	mu    sync.Mutex // guards what follows
	last  seen       // the tenant of the last request
	other seen       // the one before it
}

type seen struct {
	tenant string
	at     time.Time
}

// activeFor is how long after a request its tenant counts as active.
const activeFor = 2 * time.Second

// shared records a request, and reports whether other tenants are active, too.
func (a *Activity) shared(tenant string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last.tenant != tenant {
		a.other = a.last
	}
	a.last = seen{tenant, now}
	return a.other.tenant != "" && now.Sub(a.other.at) < activeFor
}

// Others reports whether a tenant other than this one has sent a request since a time.
func (a *Activity) Others(tenant string, since time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range []seen{a.last, a.other} {
		if s.tenant != "" && s.tenant != tenant && s.at.After(since) {
			return true
		}
	}
	return false
}

// lanes start the requests of each tenant in their order, as many at a time as its
// share allows. It is safe for concurrent use.
type lanes struct {
	fair     Fair
	activity *Activity
	floods   *Floods       // nil: no tenant floods
	start    func(request) // must return at once
	refuse   func(request) // one that waits; must return at once

	mu     sync.Mutex // guards what follows
	tenant map[string]*lane
}

// lane holds the requests of one tenant, running and waiting.
type lane struct {
	running int
	waiting []request
	tokens  float64
	at      time.Time // when the tokens were counted
	timer   bool      // a timer will look at the lane when there is a token
	idle    bool      // a timer will look at the lane when it has all of its tokens
}

func newLanes(f Fair, a *Activity, floods *Floods, start, refuse func(request)) *lanes {
	if a == nil {
		a = &Activity{}
	}
	return &lanes{fair: f, activity: a, floods: floods, start: start, refuse: refuse, tenant: map[string]*lane{}}
}

// add starts a request when it is its turn.
func (l *lanes) add(r request, now time.Time) {
	shared := l.activity.shared(r.tenant, now)
	l.mu.Lock()
	one := l.lane(r.tenant, now)
	one.waiting = append(one.waiting, r)
	next, over := l.next(r.tenant, one, shared, now)
	l.mu.Unlock()
	l.release(next, over)
}

// lane returns the lane of a tenant. Hold l.mu.
func (l *lanes) lane(tenant string, now time.Time) *lane {
	one := l.tenant[tenant]
	if one == nil {
		one = &lane{at: now, tokens: l.burst()}
		l.tenant[tenant] = one
	}
	return one
}

// spend counts work that a tenant's requests do besides being started, like so many of them, and
// returns how long the tenant must wait for it. Later requests wait for it as well. Alone a tenant
// waits for nothing.
func (l *lanes) spend(tenant string, requests float64, now time.Time) time.Duration {
	if l.fair.Rate == 0 || !l.activity.shared(tenant, now) {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.lane(tenant, now)
	l.count(one, now)
	one.tokens -= requests
	wait := time.Duration(0)
	if one.tokens < 0 {
		wait = l.until(-one.tokens)
	}
	l.forgetIdle(tenant, one, now) // its request may have ended
	return wait
}

// release starts the requests in next, and refuses those in over.
func (l *lanes) release(next, over []request) {
	for _, r := range next {
		l.start(r)
	}
	for _, r := range over {
		l.refuse(r)
	}
}

// requestEnded starts what waits for a request of the tenant that was answered.
func (l *lanes) requestEnded(tenant string) { l.update(tenant, func(one *lane) { one.running-- }) }

// update changes a lane, and starts the requests that may start then.
func (l *lanes) update(tenant string, change func(*lane)) {
	now := time.Now()
	l.mu.Lock()
	one := l.tenant[tenant]
	change(one)
	var next, over []request
	if len(one.waiting) > 0 {
		next, over = l.next(tenant, one, l.activity.shared(tenant, now), now)
	}
	l.forgetIdle(tenant, one, now)
	l.mu.Unlock()
	l.release(next, over)
}

// forgetIdle removes a lane in which nothing runs or waits when it has all of its tokens: a new one
// has them too, so that a tenant without a request for a moment would have more than its rate.
func (l *lanes) forgetIdle(tenant string, one *lane, now time.Time) {
	if one.running > 0 || len(one.waiting) > 0 || one.timer || one.idle {
		return
	}
	l.count(one, now)
	missing := l.burst() - one.tokens
	if l.fair.Rate == 0 || missing <= 0 {
		delete(l.tenant, tenant)
		return
	}
	one.idle = true
	time.AfterFunc(l.until(missing), func() {
		l.update(tenant, func(one *lane) { one.idle = false })
	})
}

// count adds the tokens that a lane has got since they were counted.
func (l *lanes) count(one *lane, now time.Time) {
	if d := now.Sub(one.at); d > 0 {
		one.tokens, one.at = min(l.burst(), one.tokens+d.Seconds()*l.fair.Rate), now
	}
}

// until returns how long it takes to get so many tokens.
func (l *lanes) until(tokens float64) time.Duration {
	return time.Duration(tokens/l.fair.Rate*float64(time.Second)) + time.Millisecond
}

// next removes from a lane the requests that may start now, and those to be refused: a
// tenant that floods while others are active may have as many waiting as running.
func (l *lanes) next(tenant string, one *lane, shared bool, now time.Time) (next, over []request) {
	flooding := shared && l.floods.flooding(tenant, now)
	running := l.fair.running(flooding)
	l.count(one, now)
	n := 0
	for n < len(one.waiting) {
		if shared && running > 0 && one.running >= running {
			break
		}
		if shared && l.fair.Rate > 0 && one.tokens < 1 {
			if !one.timer {
				one.timer = true
				time.AfterFunc(l.until(1-one.tokens), func() {
					l.update(tenant, func(one *lane) { one.timer = false })
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

// burst returns how many requests of a tenant may start at once: a tenth of a second's
// worth.
func (l *lanes) burst() float64 { return max(1, l.fair.Rate/10) }
