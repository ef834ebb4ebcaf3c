package quota

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Kind is what a [Gate] limits.
type Kind int

// The kinds of limits.
const (
	Rate      Kind = iota // requests a second
	InFlight              // requests in flight
	Streams               // open streams
	Uploads               // uploads in progress
	BodyBytes             // bytes of requests' bodies in memory
	kinds
)

// String returns the kind as metrics name it.
func (k Kind) String() string {
	return [kinds]string{"rate", "inflight", "streams", "uploads", "bytes"}[k]
}

// Limits bound what one name may use. A zero field limits nothing.
type Limits struct {
	Rate      float64 // requests a second, in the long run
	Burst     int     // how many may arrive at once before that; default two seconds' worth
	InFlight  int     // requests in flight at once
	Streams   int     // open at once
	Uploads   int     // in progress at once
	BodyBytes int64   // in memory at once
}

// Validate returns an error that names everything that is wrong with the limits.
func (l Limits) Validate() error {
	var errs []error
	if l.Rate < 0 {
		errs = append(errs, fmt.Errorf("the rate of a tenant is %g; set requests a second, or 0 for no limit", l.Rate))
	}
	if l.Burst < 0 {
		errs = append(errs, fmt.Errorf("the burst of a tenant is %d; set a number of requests, or 0 for two seconds' worth", l.Burst))
	}
	if l.InFlight < 0 {
		errs = append(errs, fmt.Errorf("a tenant may have %d requests in flight; set a number, or 0 for no limit", l.InFlight))
	}
	return errors.Join(errs...)
}

// counts are numbers by kind.
type counts [kinds]int64

// level holds all names of one kind, credentials or tenants, to their limits.
type level struct {
	rate    buckets
	limited counts             // 0: no limit, and nothing is counted
	held    map[string]*counts // by names that hold anything
}

// Gate admits requests. Each counts for one name of each level, such as its credential and its
// tenant, and is admitted by all levels or takes nothing of any. It is safe for concurrent use.
type Gate struct {
	mu     sync.Mutex // guards what follows
	levels []level
}

// NewGate returns a gate with a level for each limits.
func NewGate(levels ...Limits) *Gate {
	g := &Gate{}
	for _, l := range levels {
		burst := float64(l.Burst)
		if burst == 0 {
			burst = 2 * l.Rate
		}
		g.levels = append(g.levels, level{
			rate:    newBuckets(l.Rate, burst),
			limited: counts{InFlight: int64(l.InFlight), Streams: int64(l.Streams), Uploads: int64(l.Uploads), BodyBytes: l.BodyBytes},
			held:    map[string]*counts{},
		})
	}
	return g
}

// Request asks a gate to enter.
type Request struct {
	Names []string // one for each level
	Takes []Kind   // one of each; limits are checked in this order
	Fits  []Kind   // which must be free, too, since the request may take them later
	Free  int      // if positive, a name has no more than so many in flight, where they are limited
}

// Excess is a limit that a request would exceed.
type Excess struct {
	Level int
	Kind  Kind
	After time.Duration // until a request may be made; 0 unless it is the rate
}

// Enter admits a request, or returns the limit that it exceeds, and takes nothing then.
func (g *Gate) Enter(r Request, now time.Time) (*Hold, *Excess) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.levels {
		if over := g.levels[i].check(r, r.Names[i], now); over != nil {
			over.Level = i
			return nil, over
		}
	}
	h := &Hold{gate: g, names: r.Names}
	for _, kind := range r.Takes {
		if kind != Rate {
			h.add(kind, 1)
			continue
		}
		for i := range g.levels {
			g.levels[i].rate.take(r.Names[i], now)
		}
	}
	return h, nil
}

// check returns the limit of the level that a request exceeds, or nil.
func (l *level) check(r Request, name string, now time.Time) *Excess {
	for _, list := range [2][]Kind{r.Takes, r.Fits} {
		for _, kind := range list {
			most := l.limited[kind]
			if kind == InFlight && r.Free > 0 {
				most = min(most, int64(r.Free))
			}
			if kind == Rate {
				if after := l.rate.until(name, 1, now); after > 0 {
					return &Excess{Kind: Rate, After: after}
				}
			} else if most > 0 && l.of(name, kind) >= most {
				return &Excess{Kind: kind}
			}
		}
	}
	return nil
}

// of returns how many of a kind a name holds.
func (l *level) of(name string, kind Kind) int64 {
	if c := l.held[name]; c != nil {
		return c[kind]
	}
	return 0
}

// Hold is the places that an admitted request occupies, by kind. It is safe for concurrent use.
type Hold struct {
	gate  *Gate
	names []string
	held  counts // guarded by the gate's mutex
}

// Exchange releases what the request holds of one kind for one of another, or returns the limit that
// this would exceed.
func (h *Hold) Exchange(from, to Kind) *Excess {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	if over := h.exceeds(to, 1); over != nil {
		return over
	}
	h.add(from, -h.held[from])
	h.add(to, 1)
	return nil
}

// Raise raises what the request holds of a kind to n, unless it holds more already, or returns the
// limit that this would exceed.
func (h *Hold) Raise(kind Kind, n int64) *Excess {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	more := n - h.held[kind]
	if more <= 0 {
		return nil
	}
	if over := h.exceeds(kind, more); over != nil {
		return over
	}
	h.add(kind, more)
	return nil
}

// Drop releases what the request holds of a kind.
func (h *Hold) Drop(kind Kind) {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	h.add(kind, -h.held[kind])
}

// Leave releases everything that the request holds. Further calls do nothing.
func (h *Hold) Leave() {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	for kind := range h.held {
		h.add(Kind(kind), -h.held[kind])
	}
}

// exceeds returns the limit that n more of a kind would exceed, or nil. Hold the gate's mutex.
func (h *Hold) exceeds(kind Kind, n int64) *Excess {
	for i := range h.gate.levels {
		if l := &h.gate.levels[i]; l.limited[kind] > 0 && l.of(h.names[i], kind)+n > l.limited[kind] {
			return &Excess{Level: i, Kind: kind}
		}
	}
	return nil
}

// add counts n more of a kind, where it is limited, and forgets names that hold nothing then. Hold
// the gate's mutex.
func (h *Hold) add(kind Kind, n int64) {
	if n == 0 {
		return
	}
	h.held[kind] += n
	for i := range h.gate.levels {
		l, name := &h.gate.levels[i], h.names[i]
		if l.limited[kind] == 0 {
			continue
		}
		c := l.held[name]
		if c == nil {
			c = &counts{}
			l.held[name] = c
		}
		if c[kind] += n; *c == (counts{}) {
			delete(l.held, name)
		}
	}
}
