package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/dev/cluster"
	"github.com/skein-threads/skein/dev/machine"
	"github.com/skein-threads/skein/dev/repository"
	"github.com/skein-threads/skein/events"
)

// world is a cluster, and what the tests saw of it.
type world struct {
	*cluster.Cluster
	t    *testing.T
	seed uint64
	rng  *rand.Rand // of the faults
	net  *network   // nil: the servers are on loopback
	nc   *nats.Conn
	js   jetstream.JetStream
	bin  cluster.Programs
	dir  string

	histories int // that were made
}

// seedOf returns the seed of a test: SKEIN_SEED, or a new one.
func seedOf(t *testing.T) uint64 {
	if text := os.Getenv("SKEIN_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SKEIN_SEED: %v", err)
		}
		return seed
	}
	return rand.Uint64N(1_000_000)
}

// beginWorld starts a cluster with two Skeins. places returns where the servers run, if
// they have a network of their own.
func beginWorld(t *testing.T, places func(w *world) [cluster.Servers]cluster.Place) *world {
	t.Helper()
	root, err := filepath.Abs(repository.Root())
	must(t, err)
	dir, err := os.MkdirTemp("", "skein-faults-")
	must(t, err)
	w := &world{t: t, seed: seedOf(t), dir: dir}
	w.rng = rand.New(rand.NewPCG(w.seed, 0))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat it with SKEIN_SEED=%d; what the processes printed is in %s", w.seed, dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	w.bin, err = cluster.Build(t.Context(), root, dir)
	must(t, err)
	cfg := cluster.Config{Programs: w.bin, Conf: filepath.Join(root, "deploy", "cluster"), Dir: dir}
	if err := machine.Check(); err != nil {
		t.Logf("no slow disks and wrong clocks: %v", err)
	} else {
		cfg.Machines = true
	}
	if places != nil {
		cfg.Places = places(w)
	}
	w.Cluster, err = cluster.New(cfg)
	must(t, err)
	t.Cleanup(w.Close)
	must(t, w.Start(w.soon()))
	for _, name := range []string{"skein-a", "skein-b"} {
		_, err := w.Skein(w.soon(), name, w.URL())
		must(t, err)
	}
	w.nc = w.connect()
	w.js, err = jetstream.New(w.nc)
	must(t, err)
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// soon returns a context for what must happen soon.
func (w *world) soon() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

// connect returns a connection that leaves a server which hangs.
func (w *world) connect() *nats.Conn {
	w.t.Helper()
	nc, err := nats.Connect(w.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond), nats.RetryOnFailedConnect(true),
		nats.PingInterval(2*time.Second), nats.MaxPingsOutstanding(2), nats.ReconnectBufSize(-1))
	must(w.t, err)
	w.t.Cleanup(nc.Close)
	return nc
}

// The threads and clerks of a history.
const (
	clerks  = 6
	threads = 5
)

// during runs clerks while something happens to the cluster, heals everything, and
// compares the log with what they were told.
func (w *world) during(happen func(ctx context.Context)) {
	w.t.Helper()
	w.histories++
	h := newHistory(fmt.Sprint("h", w.histories))
	first := map[string]int64{}
	var names []string
	for range threads {
		made := w.create()
		first[made.ThreadID], h.latest[made.ThreadID] = made.Version, made.Version
		names = append(names, made.ThreadID)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	var working sync.WaitGroup
	for i := range clerks {
		nc := w.connect()
		js, err := jetstream.New(nc)
		must(w.t, err)
		c := &clerk{history: h, number: i, nc: nc, js: js, rng: rand.New(rand.NewPCG(w.seed, uint64(i+1))), threads: names, keys: []string{"k1", "k2", "k3", "k4"}}
		working.Go(func() { c.work(ctx, 40*time.Millisecond) })
	}
	sleep(w.t.Context(), time.Second)
	happen(w.t.Context())
	w.heal()
	sleep(w.t.Context(), 2*time.Second)
	cancel()
	working.Wait()
	w.check(h, first)
}

// create creates a thread.
func (w *world) create() events.Reply {
	w.t.Helper()
	c := &clerk{history: newHistory(""), nc: w.nc}
	for start := time.Now(); ; {
		a, _ := c.ask(w.t.Context(), "cmd", "thread.create", map[string]any{"commandId": fmt.Sprintf("made-%d", rand.Uint64()), "data": map[string]any{}})
		if a.refusal == nil && !a.lost {
			return a.reply
		}
		if time.Since(start) > time.Minute {
			w.t.Fatalf("no thread can be made: %+v", a)
		}
		sleep(w.t.Context(), 100*time.Millisecond)
	}
}

// heal restarts and reconnects everything, and waits until all is ready.
func (w *world) heal() {
	w.t.Helper()
	if w.net != nil {
		w.net.heal()
	}
	w.mend()
	for _, p := range w.Servers {
		p.Resume()
		if !p.Running() {
			must(w.t, p.Start(nil))
		}
	}
	for i := range w.Servers {
		must(w.t, w.Ready(w.soon(), i))
	}
	for _, p := range w.Skeins {
		p.Resume()
		if !p.Running() {
			must(w.t, w.Again(w.soon(), p))
		}
	}
}
