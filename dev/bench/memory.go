package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/internal/embedded"
)

// MemoryOptions says up to how many threads memory is measured.
type MemoryOptions struct {
	// Threads are the numbers of threads at which memory is measured; default 1,000, 10,000, 100,000
	// and 200,000. If it is only one, what the store has before is measured first: nothing, or
	// the threads of Store.
	Threads     []int
	ThreadCache int64 // of Skein, in bytes; 0: its default
	// Idle is how long after each other memory is looked at until it falls no more:
	// the server lets go of what was just written when it is idle. Default 4 s.
	Idle time.Duration
	// Cold makes all threads cold, some thousand at a time, and starts server and Skein again at the
	// last number.
	Cold      bool
	Message   bool         // each thread has one message, and is made in one commit, instead of a turn
	Dir       string       // where the store is made; default the system's temporary folder
	Profile   string       // file for a heap profile of the server at the last number, and with .skein at its end of Skein; default none
	Store     string       // the store, which stays there, and whose threads count if it has any; default one in Dir that is removed
	LoadArgs  []string     // makes this program run RunLoad
	SkeinArgs []string     // makes this program run RunSkein
	Log       func(string) // told what is being measured; may be nil
}

// Usage is the memory of a process when it is idle.
type Usage struct {
	ResidentMB float64 `json:"residentMB"` // 0 where the system does not tell
	HeapMB     float64 `json:"heapMB"`     // of Go, in use

	Processor float64 `json:"processorSeconds"` // since it started
}

// MemoryPoint is the memory of both processes at a number of threads, each with
// one turn, after everything had caught up.
type MemoryPoint struct {
	Threads int   `json:"threads"`
	Server  Usage `json:"server"`
	Skein   Usage `json:"skein"`
}

// MemoryResult is how the processes grew with the number of threads.
type MemoryResult struct {
	Points []MemoryPoint `json:"points"`
	// What a thread costs of Go's heap, from the first point to the last.
	ServerBytes float64 `json:"serverBytesPerThread"`
	SkeinBytes  float64 `json:"skeinBytesPerThread"`

	Start *ColdStart `json:"start,omitzero"` // with cold threads

	*ColdThreads // the same
}

// Memory measures what threads cost in memory: of the server, which runs in this
// process, and of a Skein in a process of its own.
func Memory(ctx context.Context, o MemoryOptions) (*MemoryResult, error) {
	if len(o.Threads) == 0 {
		o.Threads = []int{1000, 10_000, 100_000, 200_000}
	}
	if o.Idle == 0 {
		o.Idle = 4 * time.Second
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	dir := o.Store
	if dir == "" {
		made, err := os.MkdirTemp(o.Dir, "skein-bench-")
		if err != nil {
			return nil, fmt.Errorf("a folder for the store: %w", err)
		}
		defer func() { _ = os.RemoveAll(made) }()
		dir = made
	}
	options := embedded.Options{StoreDir: dir, Listen: "127.0.0.1:0", SyncAlways: true}
	told := apart{ThreadCache: o.ThreadCache, IdleMillis: o.Idle.Milliseconds(), Profile: o.Profile}
	result, err := memory(ctx, o, options, told)
	if err == nil && o.Cold {
		o.Log("start again")
		if result.Start, err = startAgain(ctx, options, o.SkeinArgs, told); err == nil {
			result.ColdThreads = result.coldThreads()
		}
	}
	return result, err
}

// memory measures at each number of threads.
func memory(ctx context.Context, o MemoryOptions, options embedded.Options, told apart) (*MemoryResult, error) {
	server, err := embedded.Start(options)
	if err != nil {
		return nil, err
	}
	defer server.Shutdown()
	told.URL = server.URL()
	skein, err := startSkein(ctx, o.SkeinArgs, told)
	if err != nil {
		return nil, err
	}
	defer func() { _ = skein.stop() }()
	nc, err := nats.Connect(server.URL())
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	log, err := eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	b := &bench{o: Options{LoadArgs: o.LoadArgs, Log: o.Log}, dir: options.StoreDir, url: server.URL(), nc: nc, log: log}
	have, err := b.threads(ctx)
	if err != nil {
		return nil, err
	}
	if o.Cold && have > 0 {
		if err := b.freezeRest(ctx); err != nil {
			return nil, err
		}
	}
	result := &MemoryResult{}
	numbers := slices.Sorted(slices.Values(o.Threads))
	if len(numbers) == 1 && have < numbers[0] {
		numbers = []int{have, numbers[0]}
	}
	for _, threads := range numbers {
		if have > threads {
			return nil, fmt.Errorf("the store has %d threads already: measure at least so many", have)
		}
		o.Log(fmt.Sprintf("%d threads", threads))
		if err := b.addThreads(ctx, have, threads, o); err != nil {
			return nil, err
		}
		have = threads
		point := MemoryPoint{Threads: threads}
		if err := skein.ask(struct{}{}); err != nil {
			return nil, err
		}
		point.Server = idleUsage(ctx, o.Idle)
		if err := heapProfile(o.Profile, ""); err != nil {
			return nil, err
		}
		if point.Skein, err = skein.answer(); err != nil {
			return nil, err
		}
		result.add(point)
		o.Log(fmt.Sprintf("server: %.0f MB of heap; Skein: %.0f MB", point.Server.HeapMB, point.Skein.HeapMB))
	}
	return result, ctx.Err()
}

// threads returns how many threads the log has.
func (b *bench) threads(ctx context.Context) (int, error) {
	stream, err := b.log.Streams().Stream(ctx, b.log.Config().Names.Stream(assets.LogStream))
	if err != nil {
		return 0, err
	}
	return int(stream.CachedInfo().State.NumSubjects), nil
}

// coldTogether is how many threads are made and frozen at a time: the disk holds the documents and
// the timeline of so many.
const coldTogether = 1 << 14

// addThreads makes threads until there are so many, waits until all of it shows, and freezes them
// if they are to be cold.
func (b *bench) addThreads(ctx context.Context, have, threads int, o MemoryOptions) error {
	for have < threads {
		part := threads - have
		if o.Cold {
			part = min(part, coldTogether)
		}
		made, err := b.make(ctx, part, o.Message)
		if err != nil {
			return err
		}
		if err := b.caughtUp(ctx); err != nil {
			return err
		}
		if have += part; !o.Cold {
			continue
		}
		if err := b.freeze(ctx, made); err != nil {
			return err
		}
		o.Log(fmt.Sprintf("%d are cold", have))
	}
	return nil
}

// make makes threads with one message each, or with one turn.
func (b *bench) make(ctx context.Context, threads int, message bool) ([]string, error) {
	if message {
		return b.createBy(ctx, threads, "thread.commit", opening)
	}
	made, err := b.create(ctx, threads)
	if err != nil {
		return nil, err
	}
	loaded, err := (Load{URL: b.url, Clients: 128, Threads: made, Commits: 1}).start(ctx, b.o.LoadArgs)
	if err == nil && loaded.Refused > 0 {
		err = fmt.Errorf("%d of %d turns were refused, the first: %s", loaded.Refused, threads, loaded.Error)
	}
	return made, err
}

// idleUsage measures this process once it uses no less any more, in fifteen steps
// at most.
func idleUsage(ctx context.Context, step time.Duration) Usage {
	used := processor().Seconds()
	var m runtime.MemStats
	least, calm := ^uint64(0), 0
	for start := time.Now(); calm < 3 && time.Since(start) < 15*step && ctx.Err() == nil; {
		debug.FreeOSMemory()
		runtime.ReadMemStats(&m)
		if calm++; m.HeapAlloc < least-least/100 {
			least, calm = m.HeapAlloc, 0
		}
		select {
		case <-time.After(step):
		case <-ctx.Done():
		}
	}
	return Usage{ResidentMB: residentMB(), HeapMB: float64(m.HeapAlloc) / (1 << 20), Processor: used}
}

// residentMB reads the process's resident memory, 0 where the system does not
// tell.
func residentMB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

func (r *MemoryResult) add(p MemoryPoint) {
	r.Points = append(r.Points, p)
	first := r.Points[0]
	if more := float64(p.Threads - first.Threads); more > 0 {
		r.ServerBytes = (p.Server.HeapMB - first.Server.HeapMB) * (1 << 20) / more
		r.SkeinBytes = (p.Skein.HeapMB - first.Skein.HeapMB) * (1 << 20) / more
	}
}

// Write prints the run as a table.
func (r *MemoryResult) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "threads\tserver: resident MB\tGo heap MB\tSkein: resident MB\tGo heap MB\t\n")
	for _, p := range r.Points {
		fmt.Fprintf(t, "%d\t%.0f\t%.0f\t%.0f\t%.0f\t\n", p.Threads, p.Server.ResidentMB, p.Server.HeapMB, p.Skein.ResidentMB, p.Skein.HeapMB)
	}
	if s := r.Start; s != nil {
		fmt.Fprintf(t, "\nall threads are cold; started again, the server opens the store in %.1f s; from there, Skein takes commands after %.1f s and lists threads after %.1f s\n",
			s.Server, s.Commands, s.Lists)
		fmt.Fprintf(t, "that takes %.1f s of processor time until the store is open, and from there %.1f s of server and Skein together\n", s.Opening, s.Processor)
		fmt.Fprintf(t, "a write to a cold thread is acknowledged, and all of the thread shown again, after %.1f ms (p50)\n", s.ThawP50Ms)
	}
	fmt.Fprintf(t, "\na thread with one turn costs %.0f bytes of the server's heap and %.0f of Skein's\n", r.ServerBytes, r.SkeinBytes)
	return t.Flush()
}
