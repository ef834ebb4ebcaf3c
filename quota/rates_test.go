package quota

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// Each tenant has its own rate, in the long run, with a burst before it.
func TestRates_OfEachTenant(t *testing.T) {
	r, now := NewRates(10, 20), time.Unix(1000, 0)
	count := func(tenant string) (n int) {
		for r.Take(tenant, now) {
			n++
		}
		return n
	}
	if a, b := count("a"), count("b"); a != 20 || b != 20 {
		t.Errorf("at once: %d and %d, want 20", a, b)
	}
	now = now.Add(500 * time.Millisecond)
	if a := count("a"); a != 5 {
		t.Errorf("after half a second: %d, want 5", a)
	}
	if !NewRates(0, 0).Take("a", now) {
		t.Error("no limit limits")
	}
	for i := range 3 * knownNames {
		now = now.Add(time.Second)
		r.Take(strconv.Itoa(i), now)
	}
	if len(r.buckets.known) > 2*knownNames {
		t.Errorf("%d tenants are remembered", len(r.buckets.known))
	}
}

// Whatever names come in whatever order, each bucket has what one has that is never forgotten: what
// is spent stays spent until it is earned again. No call looks at more than a few names, and when
// most have earned everything, there are few.
func TestBuckets_LikeOnesThatAreNeverForgotten(t *testing.T) {
	const perSecond, burst = 4.0, 3.0
	type model struct {
		tokens float64
		at     time.Time
	}
	never, now, random := map[string]model{}, time.Unix(1000, 0), rand.New(rand.NewPCG(3, 4))
	b := newBuckets(perSecond, burst)
	of := func(name string) model {
		m, known := never[name]
		if !known {
			m = model{burst, now}
		}
		return model{min(burst, m.tokens+now.Sub(m.at).Seconds()*perSecond), now}
	}
	step := func(name string) {
		m, n, size := of(name), random.Float64()*2*burst, len(b.known)
		switch random.IntN(3) {
		case 0:
			if math.Abs(m.tokens-1) < 1e-4 {
				return // either, since tokens are rounded
			}
			ok := b.take(name, now)
			if ok != (m.tokens >= 1) {
				t.Fatalf("with %g tokens one is taken: %t", m.tokens, ok)
			}
			if ok {
				m.tokens--
			}
		case 1:
			b.charge(name, n, now)
			m.tokens -= n
		default:
			b.chargeAtMost(name, n, now)
			m.tokens = max(0, m.tokens-n)
		}
		never[name] = m
		want := time.Duration(max(0, 1-m.tokens) / perSecond * float64(time.Second))
		if got := b.until(name, 1, now); (got - want).Abs() > 10*time.Microsecond {
			t.Fatalf("%s has a request's tokens in %v, want %v", name, got, want)
		}
		if len(b.known) < size-forgetAtOnce {
			t.Fatalf("%d names were forgotten at once", size-len(b.known))
		}
	}
	for n := range 8 * knownNames { // within two seconds, so that most are spent
		step(strconv.Itoa(random.IntN(1 + n/2)))
		now = now.Add(25 * time.Microsecond)
	}
	if len(b.known) <= knownNames {
		t.Fatalf("only %d names are known: none could have been forgotten", len(b.known))
	}
	now = now.Add(time.Hour)
	for n := range 8 * knownNames {
		step("later " + strconv.Itoa(n))
		now = now.Add(time.Second)
	}
	if len(b.known) > knownNames+knownNames/4 {
		t.Errorf("%d names are known", len(b.known))
	}
}
