package runtime

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
)

// agentTool is a tool that is an agent.
type agentTool struct {
	tool
	agent string
}

func (a agentTool) AgentName() string { return a.agent }
func (a agentTool) Apart() bool       { return false }

// Handoffs of several hops stay in one thread with its whole history: SA-4, SA-5, SA-6,
// SA-8.
func TestHandoff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := func(name string) Tool { return agentTool{tool{spec: ToolSpec{Name: name}}, name} }
	var seen []int
	last := func(name string) Reactor {
		return ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
			seen = append(seen, len(in.Items))
			if in.Agent != name {
				t.Errorf("%s was asked as %s", name, in.Agent)
			}
			return says("I am " + name), nil
		})
	}
	w.agent("triage", script(says("to support", call("c1", "support", `{}`))), to("support"))
	w.agent("support", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		return says("to billing", call("c2", "billing", `{}`)), nil
	}), to("billing"))
	w.agent("billing", last("billing"))
	w.work(Config{})
	id, execution := w.begin("triage", "an invoice")
	all := w.finished(id, execution)
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Errorf("it ended %s (%s)", status, text)
	}
	if n := strings.Count(kinds(all), "agent.assigned"); n != 2 {
		t.Errorf("%d handoffs", n)
	}
	w.look(id, func(s *thread.State) {
		if s.AgentID() != "billing" {
			t.Errorf("the agent is %s", s.AgentID())
		}
	})
	// By hand, while idle (SA-6): the assigned agent answers.
	w.agent("closing", last("closing"))
	w.agents.tools["closing"] = to("closing")
	w.must("tool.queue", id, events.QueueTool{Name: "closing"})
	all = w.until(id, func(e *events.Event) bool {
		d, ok := e.Data.(events.ThreadFinished)
		return ok && d.ExecutionID != execution
	})
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Errorf("it ended %s (%s)", status, text)
	}
	if len(seen) != 2 || seen[1] <= seen[0] {
		t.Errorf("the agents saw %v items", seen)
	}
}

// apartTool is an agent that runs in a thread of its own.
type apartTool struct{ agentTool }

func (apartTool) Apart() bool { return true }

// Agents that call each other, each in a thread of its own, are stopped at a depth:
// that call fails, its agent is told, and all runs end.
func TestAgents_DepthOfCallsIsLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan string, 100)
	w.agent("again", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		if in.Iteration == 0 {
			asked <- in.ThreadID
			return says("deeper", call("c1", "again", `{}`)), nil
		}
		last := string(in.Items[len(in.Items)-1].Content)
		if strings.Contains(last, "agents call each other more than") {
			return says("too deep"), nil
		}
		if !strings.Contains(last, "too deep") { // the answer of the next one
			t.Errorf("the call came to %s", last)
		}
		return says("too deep below"), nil
	}), apartTool{agentTool{tool{spec: ToolSpec{Name: "again"}}, "again"}})
	w.work(Config{})
	all := w.finished(w.begin("again", "hello"))
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Errorf("it ended %s (%s)", status, text)
	}
	if n := len(asked); n != maxNested+1 {
		t.Errorf("%d agents were asked, and not %d", n, maxNested+1)
	}
}

// A call whose run in another thread failed has failed, with the reason.
func TestAgentInItsOwnThread_Fails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var told string
	w.agent("broken", ReactorFunc(func(context.Context, *StepInput, Stream) (*Reaction, error) {
		return nil, errors.New("the model is away")
	}))
	w.agent("a", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		if in.Iteration == 0 {
			return says("x", call("c1", "broken", `{}`)), nil
		}
		told = string(in.Items[len(in.Items)-1].Content)
		return says("y"), nil
	}), apartTool{agentTool{tool{spec: ToolSpec{Name: "broken"}}, "broken"}})
	w.work(Config{})
	if status, text, _ := endOf(t, w.finished(w.begin("a", "hello"))); status != events.ExecutionCompleted {
		t.Errorf("it ended %s (%s)", status, text)
	}
	if !strings.Contains(told, `"state":"output-error"`) || !strings.Contains(told, "the model is away") {
		t.Errorf("the call came to %s", told)
	}
}

// A turn that has left its run to wait for an agent does not go on with it when the
// next claim of the run has done so already: it would call the reactor again, with
// what the conversation was before.
func TestAgentInItsOwnThread_EndsBeforeItsCallerLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("helper", script(says("done")))
	asked, release := make(chan *StepInput, 10), make(chan struct{})
	w.agent("a", ReactorFunc(func(ctx context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		if in.Iteration == 0 {
			return says("x", call("c1", "helper", `{}`)), nil
		}
		asked <- in
		select {
		case <-release:
		case <-ctx.Done():
		}
		return says("y"), nil
	}), apartTool{agentTool{tool{spec: ToolSpec{Name: "helper"}}, "helper"}})
	worker := w.work(Config{})
	id, execution := w.begin("a", "hello")
	next(t, asked)
	// The turn of the first claim, as it was when it had recorded that the run waits.
	left := &turn{w: worker, job: &queues.Run{Tenant: tenant, Thread: id, Execution: execution}}
	w.look(id, func(s *thread.State) { left.run, _ = s.Run(execution) })
	if left.run.Token < 2 || left.run.Parked {
		t.Fatalf("the run is claimed %d times, and waits: %t", left.run.Token, left.run.Parked)
	}
	left.run.Token, left.run.Parked = 1, true
	if err := left.delegation().resumeSettled(t.Context(), []string{"c1"}); err != nil {
		t.Fatal(err)
	}
	if left.run.Token != 1 || !left.run.Parked {
		t.Errorf("the turn of claim 1 goes on under claim %d", left.run.Token)
	}
	close(release)
	w.finished(id, execution)
	none(t, asked)
}

// A called dual_ai agent runs in a thread of its own, which belongs to the caller's;
// its sides take turns, and each sees the other as a user: SA-7, SA-9, SA-137, SA-138,
// SA-139, SA-140, SA-141, SA-142, SA-143.
func TestDualAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var turns []string
	side := func(name string) Reactor {
		return ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
			turns = append(turns, in.Side)
			for _, i := range in.Items {
				own := strings.Contains(string(i.Content), "from "+in.Side)
				if own != (i.Role == events.Assistant) {
					t.Errorf("side %s hears %s as %s", in.Side, i.Content, i.Role)
				}
			}
			return says("from " + name), nil
		})
	}
	w.reactors["left"], w.reactors["right"] = side("a"), side("b")
	w.agents.agents["debate"] = &Agent{
		Name: "debate", Type: DualAgent, A: Side{Reactor: "left"}, B: Side{Reactor: "right", MaxSteps: 2},
	}
	w.agent("main", script(says("let them talk", call("c1", "debate", `{"prompt":"tea or coffee?"}`)), says("done")),
		agentTool{tool{spec: ToolSpec{Name: "debate"}}, "debate"})
	w.work(Config{})
	id, execution := w.begin("main", "decide")
	all := w.finished(id, execution)
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Fatalf("it ended %s (%s)", status, text)
	}
	if got := strings.Join(turns, ""); got != "abab" {
		t.Errorf("the turns were %s", got)
	}
	var result string
	for _, e := range all {
		if d, ok := e.Data.(events.PartUpdated); ok {
			result = string(d.Part)
		}
	}
	if !strings.Contains(result, `"text":"from b"`) || !strings.Contains(result, `"threadId":"T-`) {
		t.Errorf("the call came to %s", result)
	}
}
