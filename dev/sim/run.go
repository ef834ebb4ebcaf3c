package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/schema"
)

// Shared is what all runs use and none changes.
type Shared struct {
	Validator *schema.Validator
	Models    *documents.Models
	// Wait waits until every other goroutine of the run waits for something:
	// synctest.Wait.
	Wait func()
}

// Run is one run: two processes, some clients, and the server between them, as
// a seed has it. Everything that happens is chosen by [Run.step], one thing
// after another, while all goroutines wait.
type Run struct {
	*Shared
	seed   uint64
	rng    *rand.Rand
	begun  time.Time
	server *Server
	shape  shape

	clients *Conn // not a connection: where clients wait for their turn
	conns   []*Conn
	procs   []*process
	lead    *process // runs the relay and the runner
	leadAt  time.Time

	flows   []*flow
	answers []*frame
	planned []fault
	next    string // what happens to the next frame that arrives
	calm    bool   // no faults any more
	ending  bool   // nothing is started any more
	steps   atomic.Int64
	nap     time.Duration
	settled time.Time // since when the read side shows all
	trace   *trace

	under   sync.WaitGroup // goroutines of the run
	mu      sync.Mutex     // guards what follows
	waiting int            // clients that are not done
	history []*attempt
}

// flow is what was sent on one connection and arrives in its order.
type flow struct {
	conn   *Conn
	name   string
	life   int
	frames []*frame
}

// shape is what a seed decides before anything happens.
type shape struct {
	clients, commands int
	threads, keys     int
	readSide          bool
	replicated        bool // the streams have several copies: direct gets may lag
	small             bool // caches hold next to nothing
	faults            int
	families          bool // commands are over several threads
}

// fault is something that goes wrong at a step.
type fault struct {
	step int
	kind string
}

const (
	ackTimeout = time.Second
	tenant     = "acme"
	mostSteps  = 20_000
)

// kinds of faults. Those in lower case happen to one frame.
func (r *Run) kinds() []string {
	kinds := []string{"Crash", "Crash", "Cut", "Cut", "hold", "hold", "drop", "twice", "mute", "mute", "late", "late", "Sleep"}
	if r.shape.readSide {
		kinds = append(kinds, "Takeover", "Takeover", "Trouble")
		if !r.shape.replicated {
			kinds = append(kinds, "Power", "Power", "Power", "Power")
		}
	}
	if r.shape.replicated {
		kinds = append(kinds, "race", "race")
	}
	return kinds
}

// NewRun prepares the run of a seed. It must be made where [Run.Do] is called.
func NewRun(shared *Shared, seed uint64) *Run {
	r := &Run{
		Shared: shared, seed: seed, rng: rand.New(rand.NewPCG(seed, 0x5ce1)), begun: time.Now(),
		trace: &trace{hash: fnv.New64a()},
	}
	r.clients = newConn(r, "clients")
	r.shape = shape{
		clients: 1 + r.rng.IntN(4), commands: 2 + r.rng.IntN(5), threads: 1 + r.rng.IntN(2), keys: 1 + r.rng.IntN(2),
		readSide: r.rng.IntN(4) == 0, replicated: r.rng.IntN(3) == 0, small: r.rng.IntN(3) == 0, faults: r.rng.IntN(6),
	}
	if r.rng.IntN(12) == 0 { // a crowd, so that many commits go as one batch
		r.shape.clients, r.shape.commands, r.shape.threads = 9+r.rng.IntN(8), 1+r.rng.IntN(2), 8
	}
	r.server = NewServer(time.Now)
	r.server.lag = func(most uint64) uint64 {
		if r.calm || !r.shape.replicated || most == 0 || r.rng.IntN(4) > 0 {
			return 0
		}
		return 1 + r.rng.Uint64N(min(most, 4))
	}
	for _, name := range []string{"SKEIN_LOG", "SKEIN_TIMELINE"} {
		r.server.Add(name, false, r.shape.replicated, time.Second)
	}
	r.server.Add("OBJ_"+assets.SnapshotBucket, false, r.shape.replicated, time.Second)
	for _, p := range r.Models.List() {
		r.server.Add("KV_"+p.Bucket, true, r.shape.replicated, time.Second)
	}
	horizon := 10 + r.shape.clients*r.shape.commands*5
	if r.shape.readSide {
		horizon += 150
	}
	for range r.shape.faults {
		r.planned = append(r.planned, fault{1 + r.rng.IntN(horizon), pick(r.rng, r.kinds())})
	}
	slices.SortStableFunc(r.planned, func(a, b fault) int { return a.step - b.step })
	r.conns = append(r.conns, r.clients)
	return r
}

// Do executes the run, and returns the violated property: nil if all hold.
func (r *Run) Do() error {
	for i := range 2 {
		p := &process{run: r, name: string(rune('A' + i)), rng: rand.New(rand.NewPCG(r.seed, uint64(i)))}
		r.procs = append(r.procs, p)
		p.start()
	}
	if r.shape.readSide {
		r.procs[0].takeLead()
	}
	for i := range r.shape.clients {
		r.begin(i)
	}
	stuck := r.until("the clients", r.idle)
	r.heal()
	if stuck == nil {
		stuck = r.until("the read side", r.shown)
	}
	r.ending = true
	for _, p := range r.procs {
		p.end()
	}
	ended := make(chan struct{})
	go func() {
		r.under.Wait()
		close(ended)
	}()
	if err := r.until("everything to stop", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}); err != nil {
		// Its goroutines cannot be left behind: this says why before that does.
		panic(fmt.Sprintf("seed %d: %v (GOTRACEBACK=all shows what they wait for)", r.seed, err))
	}
	if stuck != nil {
		return stuck
	}
	return r.check()
}

func (r *Run) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting == 0
}

// until steps until something is so.
func (r *Run) until(what string, so func() bool) error {
	for r.Wait(); !so(); r.Wait() {
		// Each step has a moment of its own: limits of time that end at the same
		// moment end in any order.
		time.Sleep(time.Nanosecond)
		r.Wait()
		if r.steps.Load() > mostSteps {
			return fmt.Errorf("%s: still not after %d steps and %v; %s", what, r.steps.Load(), time.Since(r.begun), r.server.ends())
		}
		r.step()
	}
	return nil
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }
