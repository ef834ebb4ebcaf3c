package runtime

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// A worker that is stopped finishes its current step and releases its run immediately:
// another worker continues with the next step, at the same boundary, under the next
// claim.
func TestWorker_StopReleasesRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entered, release := make(chan struct{}, 10), make(chan struct{})
	w.agent("a", ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		if in.Iteration > 0 {
			return says("done"), nil
		}
		entered <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return says("one moment", call("c1", "f", `{}`)), nil
	}), tool{ToolSpec{Name: "f", Idempotent: true}, func(context.Context, *ToolInput) (ToolResult, error) { return Done(text("made")), nil }})
	first, stop := w.worker(Config{Drain: time.Minute})
	w.ready(first)
	id, execution := w.begin("a", "hello")
	<-entered
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	w.untilStopping(first)
	close(release)
	<-stopped
	w.work(Config{})
	all := w.finished(id, execution)
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Errorf("it ended %s (%s)", status, text)
	}
	if n := claims(all, execution); n != 2 {
		t.Errorf("it was claimed %d times, and not by two workers", n)
	}
	if len(entered) != 0 {
		t.Error("the first step was done again")
	}
}

// untilStopping waits until a worker accepts no more runs.
func (w *world) untilStopping(worker *Worker) {
	w.t.Helper()
	for deadline := time.Now().Add(testPatience); ; time.Sleep(time.Millisecond) {
		worker.mu.Lock()
		stops := worker.intake == nil || worker.intake.ctx.Err() != nil
		worker.mu.Unlock()
		if stops {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal("the worker takes runs")
		}
	}
}

// slowAgents returns an agent once it is released.
type slowAgents struct {
	agentMap
	asked, release chan struct{}
	slow           string
}

func (m slowAgents) Agent(ctx context.Context, tenant, name string) (*Agent, error) {
	if name == m.slow {
		m.asked <- struct{}{}
		select {
		case <-m.release:
		case <-ctx.Done():
		}
	}
	return m.agentMap.Agent(ctx, tenant, name)
}

// A run that is cancelled after its worker claimed it and before it called the reactor
// does not call it.
func TestCancel_RightAfterClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan struct{}, 10)
	w.agent("a", ReactorFunc(func(ctx context.Context, _ *StepInput, _ Stream) (*Reaction, error) {
		asked <- struct{}{}
		<-ctx.Done() // like a slow model
		return nil, ctx.Err()
	}))
	id, execution := w.begin("a", "hello")
	var wanted int64
	w.look(id, func(s *thread.State) { r, _ := s.Run(execution); wanted = r.Wanted })
	w.loseQueue()
	// It was queued for another agent, so the worker looks up its own after the claim.
	if err := queues.RunsOf(w.log).Put(tenant, id, wanted, execution, "before"); err != nil {
		t.Fatal(err)
	}
	agents := slowAgents{w.agents, make(chan struct{}, 10), make(chan struct{}), "a"}
	log, d := w.process()
	worker := New(log, d, Config{Reactors: w.reactors, Agents: agents, Arguments: anyArguments{}}, zerolog.Nop())
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	defer running.Wait()
	defer cancel()
	<-agents.asked
	w.must("run.cancel", id, events.CancelRun{})
	for _, e := range w.until(id, func(e *events.Event) bool { return e.Type == events.RunStoppedType }) {
		if e.Type == events.RunStoppedType { // as the relay does
			if err := w.nc.Publish(w.log.Config().Names.Timeline(tenant, id, e.Type), e.Raw()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for told := false; !told; time.Sleep(time.Millisecond) {
		worker.mu.Lock()
		_, told = worker.stops[runRef{tenant, id, execution}]
		worker.mu.Unlock()
	}
	close(agents.release)
	if status, text, after := endOf(t, w.finished(id, execution)); status != events.ExecutionFailed || text != thread.Aborted || after != events.ThreadOpen {
		t.Errorf("it ended %s (%s), the thread %s", status, text, after)
	}
}

// A run that was cancelled while no worker had it is not continued.
func TestCancel_BetweenTwoWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan struct{}, 10)
	w.agent("a", ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) {
		asked <- struct{}{}
		return says("fine"), nil
	}))
	id, execution := w.begin("a", "hello")
	w.claim(id, execution, "dead")
	w.must("run.cancel", id, events.CancelRun{})
	w.work(Config{})
	if status, _, after := endOf(t, w.finished(id, execution)); status != events.ExecutionFailed || after != events.ThreadOpen {
		t.Errorf("it ended %s, the thread %s", status, after)
	}
	if len(asked) != 0 {
		t.Error("the reactor was asked")
	}
}

// A run for which its tenant has no share leaves the worker's place to others.
func TestWorker_RunWithoutShareTakesNoPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entered, release := make(chan string, 10), make(chan struct{})
	w.agent("a", ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		entered <- in.Tenant
		select {
		case <-release:
		case <-ctx.Done():
		}
		return says("fine"), nil
	}))
	worker := w.work(Config{Places: 6, Shares: quota.NewPool("runs", quota.Places{Total: 6, Tenant: 1}, nil)})
	w.ready(worker)
	ids := map[string]string{}
	for range 6 { // the first is begun; each of the others would take a place
		id := w.thread("a")
		ids[id] = w.reactAt(worker, id, "hello")
	}
	<-entered
	w.reactAs("other", "a")
	for who := ""; who != "other"; {
		select {
		case who = <-entered:
		case <-time.After(testPatience):
			t.Fatal("another tenant's run has no place")
		}
	}
	close(release)
	for id, execution := range ids {
		w.finished(id, execution)
	}
}

// The id of an execution may be its client's choice. A run that is cancelled ends no other one with the
// same id, in another thread or of another tenant, not even if it began last.
func TestCancel_SparesRunsWithTheSameID(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]string{"another tenant's": "rival", "another thread's": tenant} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			begun, cut, release := make(chan string, 10), make(chan string, 10), make(chan struct{})
			w.agent("a", ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
				begun <- in.ThreadID
				select {
				case <-release:
					return says("fine"), nil
				case <-ctx.Done():
					cut <- in.ThreadID
					return nil, ctx.Err()
				}
			}))
			w.work(Config{})
			w.relay()
			const execution = "exe_same"
			react := func(tenant string) (id string) {
				for _, command := range []string{"thread.create", "thread.react"} {
					data := `"agentId":"a"`
					if id != "" {
						data += `,"text":"hello","executionId":"` + execution + `"`
					}
					reply, err := w.d.Do(t.Context(), tenant, command, []byte(`{"threadId":"`+id+`","data":{`+data+`}}`), commands.Meta{})
					if err != nil {
						t.Fatal(err)
					}
					id = reply.ThreadID
				}
				next(t, begun)
				return id
			}
			cancelled, spared := react(other), react(tenant)
			if _, err := w.d.Do(t.Context(), other, "run.cancel", []byte(`{"threadId":"`+cancelled+`","data":{}}`), commands.Meta{}); err != nil {
				t.Fatal(err)
			}
			if got := next(t, cut); got != cancelled {
				t.Errorf("%s was cancelled, not %s", got, cancelled)
			}
			close(release)
			if status, text, _ := endOf(t, w.finished(spared, execution)); status != events.ExecutionCompleted {
				t.Errorf("it ended %s (%s)", status, text)
			}
		})
	}
}
