package runtime

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// BenchmarkTurn runs turns of three steps and two calls on separate threads, with
// different concurrency, and reports the processor time of one.
func BenchmarkTurn(b *testing.B) {
	for _, at := range []int{1, 64} {
		b.Run(map[int]string{1: "alone", 64: "64 at a time"}[at], func(b *testing.B) { benchTurns(b, at) })
	}
}

func benchTurns(b *testing.B, at int) {
	w := newWorldOn(b, natstest.SyncAlways())
	find := tool{ToolSpec{Name: "find"}, func(_ context.Context, in *ToolInput) (ToolResult, error) {
		return Done(object("order", 42)), nil
	}}
	w.agent("triage", script(says("a", call("c1", "find", `{"n":1}`)), says("b", call("c2", "find", `{"n":2}`)), says("c")), find)
	w.work(Config{})
	ended := make(chan string, 1<<20)
	go func() {
		for c := range w.seen {
			for _, e := range c.Events {
				if e.Type == events.ThreadFinishedType {
					ended <- c.Thread
				}
			}
		}
	}()
	var mu sync.Mutex
	waiting := map[string]chan struct{}{}
	go func() {
		for id := range ended {
			mu.Lock()
			close(waiting[id])
			mu.Unlock()
		}
	}()
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	b.ResetTimer()
	start := time.Now()
	work := make(chan struct{}, b.N)
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	var running sync.WaitGroup
	for range at {
		running.Go(func() {
			for range work {
				id := w.must("thread.create", "", events.CreateThread{AgentID: "triage"}).ThreadID
				done := make(chan struct{})
				mu.Lock()
				waiting[id] = done
				mu.Unlock()
				w.must("thread.react", id, events.ReactThread{Text: new("hello")})
				<-done
			}
		})
	}
	running.Wait()
	took := time.Since(start)
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	b.ReportMetric(float64(b.N)/took.Seconds(), "turns/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-us/turn")
}
