package soak

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/server"
)

// Parameters of a soak.
const (
	shortest  = 25 * time.Second // what make test-long runs
	visitors  = 6                // at once
	perSecond = 24               // operations, of all of them
	samples   = 40               // in the time that is observed
	settling  = 0.3              // of the time, before that
	purging   = 40               // one of so many visits purges its thread
	filling   = 2 * time.Minute  // what takes longer begins with full caches
)

// duration returns the value of SOAK; see the Makefile.
func duration(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SOAK")
	if text == "" {
		if testing.Short() {
			t.Skip("-short: the soak takes 25 seconds")
		}
		return shortest
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 10*time.Second {
		t.Fatalf("SOAK=%s: give a duration of 10s or more", text)
	}
	return d
}

// Under a steady load, with clients that come and go, nothing grows: memory,
// goroutines, file handles, and the time that a query waits for what was written.
func TestSoak(t *testing.T) {
	whole := duration(t)
	nats := startServer(t)
	server, err := server.Start(t.Context(), server.Config{
		NATS: nats.url, HTTPListen: "127.0.0.1:0", Register: script, ThreadCache: 8 << 20,
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	if whole >= filling {
		fill(t, nats.url)
	}
	load := begin(t, nats.url)
	all := load.observe(t, whole, nats, server.Addresses().HTTP)
	load.end(t)
	if t.Failed() {
		return // it ended early
	}
	for _, s := range all {
		if p := s.problem(); p != "" {
			t.Error(p)
			continue
		}
		t.Logf("%-14s around %10.1f %s, growth %+.1f", s.name, s.median(), s.unit, s.growth())
	}
	t.Logf("%d visits, %d operations", load.visits.Load(), load.operations.Load())
	if load.visits.Load() < visitors {
		t.Errorf("only %d visits: the load was not there", load.visits.Load())
	}
}

// load is a set of visitors at work.
type load struct {
	stop               context.CancelFunc
	under              sync.WaitGroup
	visits, operations atomic.Int64

	mu     sync.Mutex // guards what follows
	worst  time.Duration
	failed error
}

func begin(t *testing.T, url string) *load {
	t.Helper()
	coming, stop := context.WithCancel(context.Background())
	l := &load{stop: stop}
	pace := time.NewTicker(time.Second / perSecond)
	t.Cleanup(pace.Stop)
	for n := range visitors {
		v := visitor{url: url, tenant: fmt.Sprintf("soak-%d", n%3), pace: pace.C, lag: l.lag}
		l.under.Go(func() {
			for i := n; coming.Err() == nil; i++ {
				// A visit that has begun completes.
				if err := v.visit(context.Background(), i%purging == 0, func() { l.operations.Add(1) }); err != nil {
					l.fail(err)
					return
				}
				l.visits.Add(1)
			}
		})
	}
	return l
}

func (l *load) lag(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worst = max(l.worst, d)
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
}

// longestLag returns the longest lag since it was last called.
func (l *load) longestLag() (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	worst := l.worst
	l.worst = 0
	return worst, l.failed
}

func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.under.Wait()
	if _, err := l.longestLag(); err != nil {
		t.Error(err)
	}
}

// observe samples until the time is over.
func (l *load) observe(t *testing.T, whole time.Duration, server *natsServer, skein string) []*series {
	t.Helper()
	memory := &series{name: "memory", unit: "MiB", allowed: 24, share: 0.2}
	goroutines := &series{name: "goroutines", unit: "goroutines", allowed: 30, share: 0.1}
	lag := &series{name: "lag", unit: "ms", allowed: 500, share: 1}
	own := &series{name: "file handles", unit: "handles", allowed: 12, share: 0.1}
	theirs := &series{name: "server handles", unit: "handles", allowed: 24, share: 0.1}
	ends := &series{name: "purges", unit: "threads", allowed: 12}
	// The newest block of each of some twenty streams grows up to 8 MB.
	serverMemory := &series{name: "server memory", unit: "MiB", allowed: 200, share: 0.2}
	all := []*series{memory, goroutines, lag, ends, serverMemory}
	if _, told := handles(server.pid); told {
		all = append(all, own, theirs)
	}
	begun := time.Now()
	first := time.Duration(settling * float64(whole))
	tick := time.NewTicker((whole - first) / samples)
	defer tick.Stop()
	for {
		<-tick.C
		at := time.Since(begun)
		worst, err := l.longestLag()
		if err != nil || at >= whole { // the load reports the error when it ends
			return all
		}
		if at < first {
			continue
		}
		memory.add(at, inUse())
		serverMemory.add(at, server.inUse(t))
		goroutines.add(at, float64(runtime.NumGoroutine()))
		lag.add(at, float64(worst.Milliseconds()))
		ends.add(at, gauge(t, skein, "skein_ends_open"))
		if n, told := handles(os.Getpid()); told {
			own.add(at, n)
		}
		if n, told := handles(server.pid); told {
			theirs.add(at, n)
		}
	}
}
