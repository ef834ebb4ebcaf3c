package quota

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// enter asks for a place in flight of a gate with one level.
func enter(g *Gate, name string, now time.Time) (*Hold, *Excess) {
	return g.Enter(Request{Names: []string{name}, Takes: []Kind{InFlight, Rate}, Free: 101}, now)
}

func TestGate_TokenBucket(t *testing.T) {
	l := NewGate(Limits{Rate: 10, Burst: 5})
	now := time.Unix(1000, 0)
	let := func(n int) (in int) {
		for range n {
			if hold, over := enter(l, "acme", now); over == nil {
				hold.Leave()
				in++
			}
		}
		return in
	}
	if got := let(20); got != 5 {
		t.Errorf("a burst of 5 let %d in", got)
	}
	if _, over := enter(l, "globex", now); over != nil {
		t.Errorf("another tenant was refused: %v", over)
	}
	now = now.Add(300 * time.Millisecond)
	if got := let(20); got != 3 {
		t.Errorf("0.3 s at 10 a second let %d in", got)
	}
	now = now.Add(-time.Hour) // a clock that goes back neither adds nor removes tokens
	if got := let(20); got != 0 {
		t.Errorf("a clock that went back let %d in", got)
	}
	now = now.Add(2 * time.Hour)
	if got := let(20); got != 5 {
		t.Errorf("after a long pause %d came in, not the burst", got)
	}
}

func TestGate_InFlight(t *testing.T) {
	l := NewGate(Limits{InFlight: 2})
	now := time.Unix(1000, 0)
	hold, _ := enter(l, "acme", now)
	enter(l, "acme", now)
	if _, over := enter(l, "acme", now); over == nil || over.Kind != InFlight {
		t.Errorf("a third one came in: %v", over)
	}
	if _, over := enter(l, "globex", now); over != nil {
		t.Errorf("another tenant was refused: %v", over)
	}
	hold.Leave()
	if _, over := enter(l, "acme", now); over != nil {
		t.Errorf("there is room again, and it was refused: %v", over)
	}
}

// A caller that invents tenants fills no memory.
func TestGate_IdleAreForgotten(t *testing.T) {
	l := NewGate(Limits{Rate: 10, Burst: 2, InFlight: 2})
	now := time.Unix(1000, 0)
	enter(l, "busy", now)
	for i := range 10 * knownNames {
		now = now.Add(time.Second)
		hold, over := enter(l, "t"+strconv.Itoa(i), now)
		if over != nil {
			t.Fatal(over)
		}
		hold.Leave()
	}
	known, held := len(l.levels[0].rate.known), l.levels[0].held
	if known > knownNames || len(held) != 1 || held["busy"] == nil {
		t.Errorf("%d tenants are known; the one with work in progress is among them: %v", known, held)
	}
}

func TestLimits_InvalidAreRefused(t *testing.T) {
	for _, l := range []Limits{{Rate: -1}, {Burst: -1}, {InFlight: -1}} {
		if l.Validate() == nil {
			t.Errorf("%+v was taken", l)
		}
	}
}

// Whatever requests do, no name exceeds its limits at any level, a request that is refused takes
// nothing, and in the end nothing is held.
func TestGate_AnySequence(t *testing.T) {
	now, random := time.Unix(1000, 0), rand.New(rand.NewPCG(1, 2))
	g := NewGate(Limits{Rate: 5, Burst: 1, InFlight: 3, Streams: 2, Uploads: 1}, Limits{Rate: 12, Burst: 2, InFlight: 5, Streams: 3, BodyBytes: 100})
	type state struct {
		held   [2]map[string]counts
		tokens [2]map[string]time.Duration
	}
	look := func() (s state) {
		for i := range g.levels {
			l := &g.levels[i]
			s.held[i], s.tokens[i] = map[string]counts{}, map[string]time.Duration{}
			for name, c := range l.held {
				s.held[i][name] = *c
				for kind, n := range c {
					if n < 0 || l.limited[kind] > 0 && n > l.limited[kind] {
						t.Fatalf("%s holds %d of %s", name, n, Kind(kind))
					}
				}
			}
			for name := range l.rate.known {
				s.tokens[i][name] = l.rate.until(name, 1, now)
			}
		}
		return s
	}
	var holds []*Hold
	refused := map[Kind]int{}
	for range 20_000 {
		before := look()
		var over *Excess
		if n := len(holds); n == 0 || random.IntN(3) == 0 {
			tenant := strconv.Itoa(random.IntN(3))
			r := Request{Names: []string{tenant + " " + strconv.Itoa(random.IntN(3)), tenant}, Takes: [][]Kind{{Rate, InFlight}, {InFlight, Rate}, {InFlight, Rate, Uploads}}[random.IntN(3)]}
			if random.IntN(3) == 0 {
				r.Fits = []Kind{Streams}
			}
			var hold *Hold
			if hold, over = g.Enter(r, now); over == nil {
				holds = append(holds, hold)
			}
		} else {
			i := random.IntN(n)
			switch random.IntN(9) {
			case 0:
				over = holds[i].Exchange(InFlight, Streams)
			case 1:
				over = holds[i].Raise(BodyBytes, random.Int64N(80))
			case 2:
				holds[i].Drop(BodyBytes)
			case 3, 4:
				holds[i].Leave()
				holds[i].Leave() // does nothing
				holds = append(holds[:i], holds[i+1:]...)
			}
		}
		after := look()
		if over != nil {
			refused[over.Kind]++
			for i := range before.held {
				if !maps.Equal(before.held[i], after.held[i]) || !maps.Equal(before.tokens[i], after.tokens[i]) {
					t.Fatalf("what was refused for its %s has taken something", over.Kind)
				}
			}
		}
		now = now.Add(time.Duration(random.IntN(30)) * time.Millisecond)
	}
	for _, h := range holds {
		h.Leave()
	}
	for i, held := range look().held {
		if len(held) > 0 {
			t.Errorf("level %d still holds %v", i, held)
		}
	}
	for kind := range kinds {
		if refused[kind] == 0 {
			t.Errorf("no request was refused for its %s", kind)
		}
	}
}
