package commands

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Limits are what one tenant may have of a service in this process. A zero field
// limits nothing.
type Limits struct {
	Rate     float64 // requests a second, in the long run; more are refused as queue_full
	Burst    int     // how many may come at once before that; default two seconds' worth
	InFlight int     // requests under way at once; more are refused as unavailable
}

// Validate reports everything that is wrong with the limits, at once.
func (l Limits) Validate() error {
	var errs []error
	if l.Rate < 0 {
		errs = append(errs, fmt.Errorf("the rate of a tenant is %g; give requests a second, or 0 for no limit", l.Rate))
	}
	if l.Burst < 0 {
		errs = append(errs, fmt.Errorf("the burst of a tenant is %d; give a number of requests, or 0 for two seconds' worth", l.Burst))
	}
	if l.InFlight < 0 {
		errs = append(errs, fmt.Errorf("a tenant may have %d requests under way; give a number, or 0 for no limit", l.InFlight))
	}
	return errors.Join(errs...)
}

// What refuses a request.
const (
	limitRate     = "rate"
	limitInFlight = "inflight"
	limitReply    = "reply" // where no answer may be sent
)

// knownTenants is how many tenants are remembered before those that have nothing
// under way and a full bucket are forgotten.
const knownTenants = 4096

// tenants counts what each tenant has under way, and keeps a token bucket for
// each. It is safe for concurrent use.
type tenants struct {
	limits Limits

	mu    sync.Mutex // guards what follows
	known map[string]*share
	next  int // how many may be known before some are forgotten
}

// share is what one tenant has of the service.
type share struct {
	running int
	tokens  float64
	at      time.Time // when the tokens were counted
}

func newTenants(l Limits) *tenants {
	if l.Rate > 0 && l.Burst == 0 {
		l.Burst = max(1, int(2*l.Rate))
	}
	return &tenants{limits: l, known: map[string]*share{}, next: knownTenants}
}

// enter lets a tenant's request in, or names the limit that refuses it, where there
// are so many places for all tenants' requests. A tenant has no more of them than are
// free. Call leave when it is answered.
func (t *tenants) enter(name string, now time.Time, free int) (leave func(), limit string) {
	if t.limits.Rate == 0 && t.limits.InFlight == 0 {
		return func() {}, ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.known[name]
	if one == nil {
		t.forget(now)
		one = &share{tokens: float64(t.limits.Burst), at: now}
		t.known[name] = one
	}
	// Under way first: what is refused for that has not used up the rate.
	if t.limits.InFlight > 0 && (one.running >= t.limits.InFlight || one.running > free) {
		return nil, limitInFlight
	}
	if t.limits.Rate > 0 {
		t.fill(one, now)
		if one.tokens < 1 {
			return nil, limitRate
		}
		one.tokens--
	}
	one.running++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		one.running--
	}, ""
}

// fill adds the tokens that time has given.
func (t *tenants) fill(one *share, now time.Time) {
	if d := now.Sub(one.at); d > 0 {
		one.tokens = min(float64(t.limits.Burst), one.tokens+d.Seconds()*t.limits.Rate)
		one.at = now
	}
}

// forget makes room where very many are known: whoever has nothing under way and
// a full bucket is as one who never came.
func (t *tenants) forget(now time.Time) {
	if len(t.known) < t.next {
		return
	}
	for name, one := range t.known {
		t.fill(one, now)
		if one.running == 0 && one.tokens >= float64(t.limits.Burst) {
			delete(t.known, name)
		}
	}
	t.next = max(knownTenants, 2*len(t.known)) // so that looking at all of them stays rare
}
