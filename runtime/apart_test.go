package runtime

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
)

// asks returns a tool that is an agent which runs in a thread of its own.
func asks(agent string, manual bool) Tool {
	return apartTool{agentTool{tool{spec: ToolSpec{Name: agent, Manual: manual}}, agent}}
}

// callParts returns the results of the calls c1 and c2 of a thread, as their parts show them.
func callParts(all []events.Event) map[string]string {
	parts := map[string]string{}
	for _, e := range all {
		if d, ok := e.Data.(events.PartUpdated); ok {
			for _, id := range []string{"c1", "c2"} {
				if strings.Contains(string(d.Part), `"toolCallId":"`+id+`"`) {
					parts[id] = string(d.Part)
				}
			}
		}
	}
	return parts
}

// A call of an agent that needs an approval begins its run when it is granted, with the granted
// arguments; also a call that a caller has queued.
func TestAgentInItsOwnThread_AfterApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan string, 10)
	w.agent("clerk", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		asked <- string(in.Items[len(in.Items)-1].Content)
		return says("filed"), nil
	}))
	w.agent("a", script(says("x", call("c1", "clerk", `{"prompt":"file it"}`)), says("y")), asks("clerk", true))
	w.agents.tools["clerk"] = asks("clerk", true)
	w.work(Config{})
	id, execution := w.begin("a", "hello")
	w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType })
	none(t, asked)
	w.must("approval.grant", id, events.GrantApproval{CallID: "c1", Arguments: events.JSON(`{"prompt":"file it twice"}`)})
	all := w.finished(id, execution)
	if got := callParts(all)["c1"]; !strings.Contains(got, `"text":"filed"`) {
		t.Fatalf("the call came to %s", got)
	}
	if got := next(t, asked); !strings.Contains(got, "file it twice") {
		t.Errorf("the agent was asked %s", got)
	}
	w.must("tool.queue", id, events.QueueTool{Name: "clerk", CallID: "c2", Arguments: events.JSON(`{"prompt":"again"}`)})
	w.until(id, func(e *events.Event) bool {
		d, ok := e.Data.(events.ApprovalRequested)
		return ok && d.CallID == "c2" || e.Type == events.RunSuspendedType && e.Version > all[len(all)-1].Version
	})
	none(t, asked)
}

// clerk is a reactor that says when it is asked, and files once it is released or its run ends.
func clerk(asked chan<- struct{}, release <-chan struct{}) Reactor {
	return ReactorFunc(func(ctx context.Context, _ *StepInput, _ Stream) (*Reaction, error) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return says("filed"), nil
	})
}

// A worker that dies after it has begun the run of a granted call, and before it has recorded that
// the call waits for it, leaves a run that is begun once, and whose result the call has.
func TestAgentInItsOwnThread_IsBegunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, release := make(chan struct{}, 10), make(chan struct{})
	w.agent("clerk", clerk(asked, release))
	w.agent("a", script(says("x", call("c1", "clerk", `{"prompt":"file it"}`)), says("y")), asks("clerk", true))
	first, stop := w.worker(Config{})
	id, execution := w.begin("a", "hello")
	w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType })
	w.unqueued(id, execution)
	stop()
	w.must("approval.grant", id, events.GrantApproval{CallID: "c1"})
	dying := &turn{w: first, job: &queues.Run{Tenant: tenant, Thread: id, Execution: execution}, talk: NewView(), ctx: t.Context()}
	w.look(id, func(s *thread.State) { dying.run, _ = s.Run(execution) })
	granted := dying.run.Calls[0]
	if !granted.Granted {
		t.Fatalf("the call is %+v", granted)
	}
	child := dying.delegation().child(granted)
	if err := dying.delegation().beginChild(t.Context(), granted, w.agents.agents["clerk"], child); err != nil {
		t.Fatal(err)
	}
	w.work(Config{})
	await(t, asked, "the agent was not asked")
	w.until(id, func(e *events.Event) bool { return e.Type == events.RunSuspendedType })
	close(release)
	if got := callParts(w.finished(id, execution))["c1"]; !strings.Contains(got, `"text":"filed"`) {
		t.Errorf("the call came to %s", got)
	}
	none(t, asked)
}

// A run that is to stop waits for the runs that its calls wait for, and for no person: it ends
// when their results are recorded, and asks its reactor no more.
func TestStop_WaitsForRunsOnOtherThreads(t *testing.T) {
	t.Parallel()
	for _, now := range []bool{false, true} {
		w := newWorld(t)
		asked, release := make(chan string, 10), make(chan struct{})
		w.agent("clerk", ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
			asked <- in.ThreadID
			select {
			case <-release:
			case <-ctx.Done():
			}
			return says("filed"), nil
		}))
		steps := make(chan int64, 10)
		w.agent("a", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
			steps <- in.Iteration
			return says("x", call("c1", "clerk", `{}`), call("c2", "pay", `{}`)), nil
		}), asks("clerk", false), tool{spec: ToolSpec{Name: "pay", Manual: true}})
		w.work(Config{})
		id, execution := w.begin("a", "hello")
		next(t, steps)
		child := next(t, asked)
		w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType })
		w.must("run.stop", id, events.StopRun{Now: now, Reason: "enough"})
		w.look(id, func(s *thread.State) {
			if r, _ := s.Run(execution); r.Status != events.Executing || !r.Stop {
				t.Errorf("a run that waits for another is %s once it is to stop", r.Status)
			}
		})
		if _, err := w.ask("approval.grant", id, events.GrantApproval{CallID: "c2"}); events.AsError(err).Code != events.NotFound {
			t.Errorf("a call of a run that is to stop is granted: %v", err)
		}
		close(release)
		all := w.finished(id, execution)
		if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
			t.Errorf("it ended %s (%s)", status, text)
		}
		parts := callParts(all)
		if !strings.Contains(parts["c1"], `"text":"filed"`) || !strings.Contains(parts["c2"], `"state":"output-error"`) {
			t.Errorf("the calls came to %v", parts)
		}
		if !slices.ContainsFunc(all, func(e events.Event) bool {
			d, ok := e.Data.(events.ThreadFinished)
			return ok && d.Reason == "enough"
		}) {
			t.Error("its end does not have the reason of the stop")
		}
		none(t, steps)
		w.look(child, func(s *thread.State) {
			if s.Active() != "" {
				t.Error("the run on the other thread has not ended")
			}
		})
	}
}

// A run that is to stop makes no call that a dead worker has left, and does not forget the run
// that another call waits for.
func TestStop_OfADeadWorkersRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, release := make(chan struct{}, 10), make(chan struct{})
	w.agent("clerk", clerk(asked, release))
	made := make(chan struct{}, 10)
	slow := tool{ToolSpec{Name: "slow", Idempotent: true}, func(ctx context.Context, _ *ToolInput) (ToolResult, error) {
		made <- struct{}{}
		<-ctx.Done()
		return ToolResult{}, ctx.Err()
	}}
	w.agent("a", script(says("x", call("c1", "clerk", `{}`), call("c2", "slow", `{}`)), says("y")), asks("clerk", false), slow)
	_, stop := w.worker(Config{Drain: 1})
	id, execution := w.begin("a", "hello")
	await(t, made, "the tool was not called")
	await(t, asked, "the agent was not asked")
	w.until(id, func(e *events.Event) bool { return e.Type == events.RunSuspendedType })
	stop()
	w.must("run.stop", id, events.StopRun{})
	w.work(Config{})
	parked := func(e *events.Event) bool { return e.Type == events.RunParkedType }
	w.until(id, parked)
	close(release)
	all := w.finished(id, execution)
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Errorf("it ended %s (%s)", status, text)
	}
	if parts := callParts(all); !strings.Contains(parts["c1"], `"text":"filed"`) || !strings.Contains(parts["c2"], `"state":"output-error"`) {
		t.Errorf("the calls came to %v", parts)
	}
	none(t, made)
}
