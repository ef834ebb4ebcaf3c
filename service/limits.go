package service

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/skein-threads/skein/internal/share"
)

// Limits bound what one tenant may use of a service in this process. A zero field
// limits nothing.
type Limits struct {
	Rate     float64 // requests a second, in the long run; more are refused as queue_full
	Burst    int     // how many may arrive at once before that; default two seconds' worth
	InFlight int     // requests in flight at once; more are refused as unavailable
}

// Validate returns an error that names everything that is wrong with the limits.
func (l Limits) Validate() error {
	var errs []error
	if l.Rate < 0 {
		errs = append(errs, fmt.Errorf("the rate of a tenant is %g; give requests a second, or 0 for no limit", l.Rate))
	}
	if l.Burst < 0 {
		errs = append(errs, fmt.Errorf("the burst of a tenant is %d; give a number of requests, or 0 for two seconds' worth", l.Burst))
	}
	if l.InFlight < 0 {
		errs = append(errs, fmt.Errorf("a tenant may have %d requests in flight; set a number, or 0 for no limit", l.InFlight))
	}
	return errors.Join(errs...)
}

// The limits that refuse a request, as metrics name them.
const (
	limitRate     = "rate"
	limitInFlight = "inflight"
	limitReply    = "reply" // its reply subject is one on which no answer may be sent
)

// knownTenants is how many tenants are remembered before those with nothing in flight
// and a full bucket are forgotten.
const knownTenants = 4096

// tenants counts each tenant's requests in flight, and keeps a token bucket for each. It
// is safe for concurrent use.
type tenants struct {
	limits Limits

	mu    sync.Mutex // guards what follows
	known map[string]*usage
}

// usage is one tenant's use of the service.
type usage struct {
	running int
	tokens  float64
	at      time.Time // when the tokens were counted
}

func newTenants(l Limits) *tenants {
	if l.Rate > 0 && l.Burst == 0 {
		l.Burst = max(1, int(2*l.Rate))
	}
	return &tenants{limits: l, known: map[string]*usage{}}
}

// enter admits a tenant's request, or returns the name of the limit that refuses it. free
// is about how many places are left for all tenants: a tenant never holds more than that.
// Call leave when the request is answered.
func (t *tenants) enter(name string, now time.Time, free int) (leave func(), limit string) {
	return t.enterIf(name, now, free, t.pass)
}

// enterPaced is enter for a request that pace has counted.
func (t *tenants) enterPaced(name string, now time.Time, free int) (leave func(), limit string) {
	return t.enterIf(name, now, free, func(*usage, time.Time) bool { return true })
}

// enterIf is enter with a rate of its own.
func (t *tenants) enterIf(name string, now time.Time, free int, pass func(*usage, time.Time) bool) (leave func(), limit string) {
	if t.limits.Rate == 0 && t.limits.InFlight == 0 {
		return func() {}, ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.usage(name, now)
	// This limit comes first, so that its refusals do not use up the rate, unless that was
	// counted where the request arrived.
	if t.limits.InFlight > 0 && (one.running >= t.limits.InFlight || one.running > free) {
		return nil, limitInFlight
	}
	if !pass(one, now) {
		return nil, limitRate
	}
	one.running++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		one.running--
	}, ""
}

// pace counts a request for its tenant's rate alone, wherever it is answered, and reports
// whether that allows it.
func (t *tenants) pace(name string, now time.Time) bool {
	if t.limits.Rate == 0 {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pass(t.usage(name, now), now)
}

// usage returns what is known of a tenant. Hold t.mu.
func (t *tenants) usage(name string, now time.Time) *usage {
	one := t.known[name]
	if one == nil {
		share.Evict(t.known, knownTenants, func(u *usage) bool { return t.idle(u, now) })
		one = &usage{tokens: float64(t.limits.Burst), at: now}
		t.known[name] = one
	}
	return one
}

// pass uses a token, and reports whether there was one. Hold t.mu.
func (t *tenants) pass(one *usage, now time.Time) bool {
	if t.limits.Rate == 0 {
		return true
	}
	t.fill(one, now)
	if one.tokens < 1 {
		return false
	}
	one.tokens--
	return true
}

// fill adds the tokens for the time since the last count.
func (t *tenants) fill(one *usage, now time.Time) {
	if d := now.Sub(one.at); d > 0 {
		one.tokens = min(float64(t.limits.Burst), one.tokens+d.Seconds()*t.limits.Rate)
		one.at = now
	}
}

// idle reports whether a tenant has nothing in flight and a full bucket.
func (t *tenants) idle(one *usage, now time.Time) bool {
	t.fill(one, now)
	return one.running == 0 && one.tokens >= float64(t.limits.Burst)
}
