package quota

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// unit is how many tokens of a rate.Limiter are a request.
	unit = 1_000_000
	// knownNames is how many buckets are kept before full ones are forgotten.
	knownNames = 10_000
	// forgetAtOnce is how many of them a new name looks at.
	forgetAtOnce = 8
)

// Rates counts, with a token bucket for each name, how often each does something. It is safe for
// concurrent use.
type Rates struct {
	mu      sync.Mutex // guards buckets
	buckets buckets
}

// NewRates lets each name do something perSecond times a second in the long run, and burst times at
// once before that. A rate of 0 limits nothing.
func NewRates(perSecond, burst float64) *Rates { return &Rates{buckets: newBuckets(perSecond, burst)} }

// Take reports whether the name may do it now, and counts it then.
func (r *Rates) Take(name string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buckets.take(name, now)
}

// buckets has a token bucket for each name. The type that has it guards it with its mutex.
type buckets struct {
	limit rate.Limit // tokens a second; 0: any number
	burst int        // tokens
	known map[string]*rate.Limiter
	last  time.Time // the latest time that was seen
}

func newBuckets(perSecond, burst float64) buckets {
	return buckets{limit: rate.Limit(max(0, perSecond) * unit), burst: int(min(max(1, burst)*unit, 1<<60)), known: map[string]*rate.Limiter{}}
}

// take takes a request's tokens from a bucket, and reports whether they were there.
func (b *buckets) take(name string, now time.Time) bool {
	if b.limit == 0 {
		return true
	}
	l, now := b.bucket(name, now)
	return l.AllowN(now, unit)
}

// charge takes n requests' tokens from a bucket, which owes what is not there.
func (b *buckets) charge(name string, n float64, now time.Time) {
	if b.limit == 0 {
		return
	}
	l, now := b.bucket(name, now)
	for tokens := int(math.Round(n * unit)); tokens > 0; tokens -= b.burst { // a limiter reserves no more at once
		l.ReserveN(now, min(tokens, b.burst))
	}
}

// chargeAtMost takes n requests' tokens from a bucket, or those that are there, and forgives what it
// owes.
func (b *buckets) chargeAtMost(name string, n float64, now time.Time) {
	if b.limit == 0 {
		return
	}
	l, now := b.bucket(name, now)
	tokens := l.TokensAt(now)
	if tokens < 0 {
		l = rate.NewLimiter(b.limit, b.burst)
		b.known[name], tokens = l, float64(b.burst)
		n = tokens / unit
	}
	l.AllowN(now, int(min(math.Round(n*unit), tokens)))
}

// until returns how long it takes until a bucket has n requests' tokens.
func (b *buckets) until(name string, n float64, now time.Time) time.Duration {
	l := b.known[name]
	if b.limit == 0 || l == nil {
		return 0
	}
	if now.Before(b.last) {
		now = b.last
	}
	missing := n*unit - l.TokensAt(now)
	return time.Duration(math.Round(min(max(0, missing)/float64(b.limit)*float64(time.Second), math.MaxInt64/2)))
}

// bucket returns the bucket of a name, and the time to use for it.
func (b *buckets) bucket(name string, now time.Time) (*rate.Limiter, time.Time) {
	if now.Before(b.last) {
		now = b.last
	}
	b.last = now
	l := b.known[name]
	if l == nil {
		b.forgetFull(now)
		l = rate.NewLimiter(b.limit, b.burst)
		b.known[name] = l
	}
	return l, now
}

// forgetFull forgets some buckets that are full, if there are many. It looks at a few, in any order,
// so that no call takes long; called before each new one, it keeps the map from growing while most
// are full.
func (b *buckets) forgetFull(now time.Time) {
	if len(b.known) < knownNames {
		return
	}
	looked := 0
	for name, l := range b.known {
		if l.TokensAt(now) >= float64(b.burst) {
			delete(b.known, name)
		}
		if looked++; looked == forgetAtOnce {
			return
		}
	}
}
