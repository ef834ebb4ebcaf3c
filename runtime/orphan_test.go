package runtime

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
)

// family follows the runs of a world by what is stored.
type family struct {
	mu        sync.Mutex // guards the fields below
	threads   []string
	executing map[string]bool
	parked    int
	outcome   map[events.ExecutionStatus]int
	reasons   map[string]int
}

// note notes a commit.
func (f *family) note(c *events.Commit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range c.Events {
		switch d := e.Data.(type) {
		case events.ThreadCreated:
			f.threads = append(f.threads, e.ThreadID)
		case events.RunRequested:
			f.executing[e.Subject] = true
		case events.RunParked:
			f.parked++
		case events.RunStopped:
			f.reasons[d.Reason]++
		case events.ExecutionStatusChanged:
			delete(f.executing, e.Subject)
			f.outcome[d.To]++
		}
	}
}

// await follows the commits of a world until a condition holds.
func (f *family) await(w *world, what string, holds func() bool) {
	w.t.Helper()
	deadline := time.After(testPatience)
	for {
		f.mu.Lock()
		is := holds()
		f.mu.Unlock()
		if is {
			return
		}
		select {
		case c := <-w.seen:
			f.note(c)
		case <-deadline:
			w.t.Fatalf("%s never happened: %d runs execute", what, len(f.executing))
		}
	}
}

// busy yields all threads.
func (f *family) busy(context.Context) iter.Seq2[ThreadRef, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	threads := f.threads[:len(f.threads):len(f.threads)]
	return func(yield func(ThreadRef, error) bool) {
		for _, id := range threads {
			if !yield(ThreadRef{tenant, id}, nil) {
				return
			}
		}
	}
}

// relay relays the events of a world to those who listen, until the test ends.
func (w *world) relay() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = timeline.Of(w.log).Relay(ctx) })
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

// idle waits until a worker executes nothing.
func idle(t *testing.T, worker *Worker) {
	t.Helper()
	for deadline := time.Now().Add(testPatience); ; time.Sleep(time.Millisecond) {
		worker.mu.Lock()
		n := len(worker.turns)
		worker.mu.Unlock()
		if n == 0 && len(worker.places) <= 1 { // one is for the next run of the queue
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d turns go on", n)
		}
	}
}

// An agent that calls itself twice a step, each time in a thread of its own, has a family of 15
// runs. When its root is cancelled, interrupted or deleted, all of them end and nothing goes on:
// those that work are told, and those that wait are found by the sweeper if nobody is told.
func TestCancel_EndsTheWholeFamily(t *testing.T) {
	t.Parallel()
	const deep, size = 3, 15
	for _, c := range []struct {
		name   string
		swept  bool // nobody is told, and the lowest ones wait for a person
		cancel func(w *world, id string)
	}{
		{"cancelled, told", false, func(w *world, id string) { w.must("run.cancel", id, events.CancelRun{}) }},
		{"cancelled, swept", true, func(w *world, id string) { w.must("run.cancel", id, events.CancelRun{}) }},
		{"deleted, swept", true, func(w *world, id string) { w.must("thread.delete", id, events.DeleteThread{}) }},
		{"interrupted, told", false, func(w *world, id string) {
			w.must("thread.react", id, events.ReactThread{Text: new("stop"), AgentID: "last", Policy: events.Interrupt})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := &family{executing: map[string]bool{}, outcome: map[events.ExecutionStatus]int{}, reasons: map[string]int{}}
			asked := make(chan struct{}, 1000)
			w.agent("last", script(says("fine")))
			w.agent("bomb", ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
				asked <- struct{}{}
				last := string(in.Items[len(in.Items)-1].Content)
				depth := strings.Count(last, "I")
				if depth < deep {
					prompt := `{"prompt":"` + strings.Repeat("I", depth+1) + `"}`
					return says("x", call("l", "bomb", prompt), call("r", "bomb", prompt)), nil
				}
				if c.swept {
					return says("x", call("p", "pay", `{}`)), nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}), asks("bomb", false), tool{spec: ToolSpec{Name: "pay", Manual: true}})
			if !c.swept {
				w.relay()
			}
			worker := w.work(Config{})
			id, _ := w.begin("bomb", "go")
			for range size {
				next(t, asked)
			}
			parked := size
			if !c.swept {
				parked -= 1 << deep
			}
			f.await(w, "that they wait", func() bool { return f.parked == parked })
			c.cancel(w, id)
			if c.swept {
				ctx, cancel := context.WithCancel(t.Context())
				var sweeping sync.WaitGroup
				sweeping.Go(func() { _ = worker.Sweep(ctx, f.busy, time.Millisecond) })
				defer func() { cancel(); sweeping.Wait() }()
			}
			f.await(w, "the end of all", func() bool { return len(f.executing) == 0 })
			idle(t, worker)
			for len(w.seen) > 0 {
				f.note(<-w.seen)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.executing) > 0 || f.outcome[events.ExecutionFailed] != size || f.reasons[orphanReason] != size-1 {
				t.Errorf("%d runs execute; the others are %v, stopped for %v", len(f.executing), f.outcome, f.reasons)
			}
			none(t, asked)
		})
	}
}

// A run whose parent waits for it no more ends at its claim, before its agent is asked. One whose
// parent has not recorded yet that the call waits for it goes on.
func TestOrphan_EndsAtItsClaim(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before func(w *world, id string) // the claim
		runs   bool
	}{
		{"its call is open", func(*world, string) {}, true},
		{"its parent is to be aborted", func(w *world, id string) { w.must("run.cancel", id, events.CancelRun{}) }, false},
		{"its parent is deleted", func(w *world, id string) { w.must("thread.delete", id, events.DeleteThread{}) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			asked := make(chan struct{}, 10)
			w.agent("clerk", ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) {
				asked <- struct{}{}
				return says("filed"), nil
			}))
			w.agent("a", script(says("x"), says("y")), asks("clerk", false))
			id, child := w.orphanage("a", "clerk")
			c.before(w, id)
			w.work(Config{})
			status, text, _ := endOf(t, w.finished(child.thread, child.execution))
			if c.runs {
				if status != events.ExecutionCompleted {
					t.Errorf("it ended %s (%s)", status, text)
				}
				next(t, asked)
			} else if status != events.ExecutionFailed || text != thread.Aborted {
				t.Errorf("it ended %s (%s)", status, text)
			}
			none(t, asked)
		})
	}
}

// orphanage is a thread whose worker has died right after it began the run of a call, c1. No other
// worker gets its run.
func (w *world) orphanage(agent, called string) (id string, child childRun) {
	w.t.Helper()
	id, execution := w.begin(agent, "hello")
	w.queued(id, execution, 0)
	w.loseQueue()
	w.claim(id, execution, "dead")
	t := &turn{w: New(w.log, w.d, Config{}, zerolog.Nop()), job: &queues.Run{Tenant: tenant, Thread: id, Execution: execution}, talk: NewView(), ctx: w.t.Context()}
	w.look(id, t.noteRun)
	c := call("c1", called, `{}`)
	if _, err := w.d.Run(w.t.Context(), t.command("react", "react", thread.ReactStep{
		ExecutionID: execution, Token: 1, StepID: t.run.StepID, Calls: []events.ToolCall{c},
		Parts: []events.JSON{object("type", events.ToolPart+called, "toolCallId", "c1", "input", c.Arguments)}, Types: []string{events.ToolPart + called},
	}), t.noteRun); err != nil {
		w.t.Fatal(err)
	}
	child = t.delegation().child(t.run.Calls[0])
	if err := t.delegation().beginChild(w.t.Context(), t.run.Calls[0], w.agents.agents[called], child); err != nil {
		w.t.Fatal(err)
	}
	return id, child
}

// A run whose parent ends while its agent answers, or the run that its parent works for, makes none
// of the calls that the answer asks for, although nobody tells it.
func TestOrphan_BeginsNothingMore(t *testing.T) {
	t.Parallel()
	for _, called := range []string{"clerk", "chief"} {
		t.Run(called, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			asked, release, made := make(chan *StepInput, 10), make(chan struct{}), make(chan struct{}, 10)
			w.agent("clerk", ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
				asked <- in
				select {
				case <-release:
				case <-ctx.Done():
				}
				if in.Iteration > 0 {
					return says("y"), nil
				}
				return says("x", call("c2", "pay", `{}`)), nil
			}), tool{ToolSpec{Name: "pay"}, func(context.Context, *ToolInput) (ToolResult, error) {
				made <- struct{}{}
				return Done(nil), nil
			}})
			w.agent("chief", script(says("x", call("c1", "clerk", `{}`)), says("y")), asks("clerk", false))
			w.agent("a", script(says("x", call("c1", called, `{}`)), says("y")), apartTool{agentTool{tool{spec: ToolSpec{Name: called}}, called}})
			w.work(Config{})
			id, _ := w.begin("a", "hello")
			child := next(t, asked)
			w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType })
			w.must("run.cancel", id, events.CancelRun{})
			close(release)
			if status, text, _ := endOf(t, w.finished(child.ThreadID, child.ExecutionID)); status != events.ExecutionFailed || text != thread.Aborted {
				t.Errorf("it ended %s (%s)", status, text)
			}
			none(t, made)
			none(t, asked)
		})
	}
}
