package quota

import (
	"sync"
	"time"
)

// queueActive is how long after a request its tenant counts as active for a [Queue].
const queueActive = 2 * time.Second

// Fair bounds what one tenant may use of a process while others use it, too. Further requests wait,
// within their [Limits]; alone a tenant may use everything. A zero field bounds nothing.
type Fair struct {
	Running  int       // requests that run at the same time
	Rate     float64   // requests started a second
	Activity *Activity // of everything that the process does for tenants; default one of its own
	Floods   *Floods   // knows the tenants that flood, and is told what is over a limit; default none
}

// WithActivity returns f with an activity, its own unless it has one.
func (f Fair) WithActivity() Fair {
	if f.Activity == nil {
		f.Activity = &Activity{}
	}
	return f
}

// Share returns how many of a tenant's requests may run at the same time now; 0 is any
// number. It records that the tenant is active. A [Queue] calls it itself; it is for work of tenants
// that does not arrive as requests.
func (f Fair) Share(tenant string) int {
	now := time.Now()
	if !f.Activity.shared(tenant, now, queueActive) {
		return 0
	}
	return f.running(f.Floods.flooding(tenant, now))
}

// running returns how many requests of a tenant may run at the same time while others
// are active; a tenant that floods has a fourth. 0 is any number.
func (f Fair) running(flooding bool) int {
	if flooding && f.Running > 0 {
		return max(1, f.Running/4)
	}
	return f.Running
}

// Queue starts the requests of each tenant in their order, as many at a time as its
// share allows. It is safe for concurrent use.
type Queue[T any] struct {
	fair   Fair
	start  func(T) // must return at once
	refuse func(T) // one that waits; must return at once

	mu    sync.Mutex // guards what follows
	rate  buckets
	lanes map[string]*lane[T] // of tenants with requests
}

// lane holds the requests of one tenant, running and waiting.
type lane[T any] struct {
	running int
	waiting []queued[T]
	timer   bool // a timer will look at the lane when there is a token
}

// queued is a request that waits.
type queued[T any] struct {
	request T
	turn    bool // it has waited for its tenant's rate already
}

// NewQueue returns a queue that calls start with each request when it is its turn, and refuse with
// one that was waiting when its tenant flooded. Both must return at once.
func NewQueue[T any](f Fair, start, refuse func(T)) *Queue[T] {
	// A tenth of a second's worth of a tenant's requests may start at once.
	return &Queue[T]{fair: f.WithActivity(), start: start, refuse: refuse, rate: newBuckets(f.Rate, f.Rate/10), lanes: map[string]*lane[T]{}}
}

// Add starts a request when it is its turn. Call Ended when it has ended.
func (q *Queue[T]) Add(tenant string, request T, now time.Time) {
	q.add(tenant, queued[T]{request, false}, now)
}

// AddWithTurn is Add for a request that took a [Turn]: it uses what is there of the tenant's rate, and
// does not wait for more.
func (q *Queue[T]) AddWithTurn(tenant string, request T, now time.Time) {
	q.add(tenant, queued[T]{request, true}, now)
}

func (q *Queue[T]) add(tenant string, w queued[T], now time.Time) {
	shared := q.fair.Activity.shared(tenant, now, queueActive)
	q.mu.Lock()
	one := q.lanes[tenant]
	if one == nil {
		one = &lane[T]{}
		q.lanes[tenant] = one
	}
	one.waiting = append(one.waiting, w)
	next, over := q.next(tenant, one, shared, now)
	q.mu.Unlock()
	q.release(next, over)
}

// Spend counts work that a tenant's requests do besides being started, like so many of them, and
// returns how long the tenant must wait for it, and for what it has spent before. Later requests wait
// for it as well. Alone a tenant waits for nothing.
func (q *Queue[T]) Spend(tenant string, requests float64, now time.Time) time.Duration {
	if !q.fair.Activity.shared(tenant, now, queueActive) {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rate.charge(tenant, requests, now)
	return q.until(tenant, 0, now)
}

// Ended starts what waits for a request of the tenant that has ended.
func (q *Queue[T]) Ended(tenant string) { q.update(tenant, func(one *lane[T]) { one.running-- }) }

// release starts the requests in next, and refuses those in over.
func (q *Queue[T]) release(next, over []queued[T]) {
	for _, w := range next {
		q.start(w.request)
	}
	for _, w := range over {
		q.refuse(w.request)
	}
}

// update changes a lane, and starts the requests that may start then.
func (q *Queue[T]) update(tenant string, change func(*lane[T])) {
	now := time.Now()
	q.mu.Lock()
	one := q.lanes[tenant]
	change(one)
	var next, over []queued[T]
	if len(one.waiting) > 0 {
		next, over = q.next(tenant, one, q.fair.Activity.shared(tenant, now, queueActive), now)
	}
	if one.running == 0 && len(one.waiting) == 0 && !one.timer {
		delete(q.lanes, tenant)
	}
	q.mu.Unlock()
	q.release(next, over)
}

// until returns how long it takes until a tenant has so many requests' tokens, for a timer.
func (q *Queue[T]) until(tenant string, requests float64, now time.Time) time.Duration {
	d := q.rate.until(tenant, requests, now)
	if d > 0 {
		d += time.Millisecond
	}
	return d
}

// next removes from a lane the requests that may start now, and those to be refused: a
// tenant that floods while others are active may have as many waiting as running.
func (q *Queue[T]) next(tenant string, one *lane[T], shared bool, now time.Time) (next, over []queued[T]) {
	flooding := shared && q.fair.Floods.flooding(tenant, now)
	running := q.fair.running(flooding)
	n := 0
	for n < len(one.waiting) && (!shared || running <= 0 || one.running < running) {
		if !shared {
			q.rate.chargeAtMost(tenant, 1, now)
		} else if !q.rate.take(tenant, now) && !one.waiting[n].turn { // with a turn it does not wait, and what is owed stays owed
			q.lookAgain(tenant, one, now)
			break
		}
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

// lookAgain starts the next request of a lane when there is a token for it.
func (q *Queue[T]) lookAgain(tenant string, one *lane[T], now time.Time) {
	if one.timer {
		return
	}
	one.timer = true
	time.AfterFunc(q.until(tenant, 1, now), func() {
		q.update(tenant, func(one *lane[T]) { one.timer = false })
	})
}
