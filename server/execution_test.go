package server_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// facts are the properties of an execution.
type facts struct {
	flow        string
	side        events.Side
	steps, a, b int64
	stopped     bool
	by          events.Side
}

func factsOf(x events.ExecutionState) facts {
	return facts{x.FlowID(), x.CurrentSide(), x.StepCount(), x.SideAStepCount(), x.SideBStepCount(), x.Stopped(), x.StoppedBy()}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// SA-137, SA-138, SA-139, SA-140, SA-141, SA-142, SA-143, SA-144, SA-145: the execution
// of an agent that answers people, step by step; everything is on side a.
func TestExecutionState(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	seen, histories := &got[facts]{}, &got[string]{}
	s.on("look", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		x := in.State.Execution()
		seen.add(factsOf(x))
		histories.add(written(t, x.MessageHistory()))
		histories.add(written(t, must(in.State.GetMessages(ctx, asc()))(t).Messages))
		if isClosed(x.AbortSignal()) {
			t.Error("SA-145: the signal is given")
		}
		return nil, nil
	})
	x := s.play(st, []one{probe("look")}, []one{probe("look")})
	want := []facts{{x.ID, "a", 1, 1, 0, false, ""}, {x.ID, "a", 2, 2, 0, false, ""}}
	if got := seen.all(); !reflect.DeepEqual(got, want) {
		t.Errorf("the execution was %+v, not %+v", got, want)
	}
	h := histories.all()
	for i := 0; i < len(h); i += 2 {
		if h[i] != h[i+1] {
			t.Errorf("SA-144: the history is\n%s\nand the messages are\n%s", h[i], h[i+1])
		}
	}
	// A call that a caller queued is a step, but not a request of a model (SA-139,
	// C-13).
	before := len(seen.all())
	if r := must(st.InvokeTool(t.Context(), "probe", map[string]any{"act": "look"}))(t); r.Status != events.ToolSuccess {
		t.Errorf("%+v", r)
	}
	if got := seen.all()[before]; got.steps != 0 || got.flow == x.ID {
		t.Errorf("a call of its own sees %+v", got)
	}
}

// SA-146: nothing of an execution can be set; two methods control it.
func TestExecutionStateIsReadOnly(t *testing.T) {
	t.Parallel()
	state := reflect.TypeFor[events.ExecutionState]()
	for i := range state.NumMethod() {
		m := state.Method(i)
		if steers := m.Name == "Stop" || m.Name == "ForceTurn"; !steers && (m.Type.NumIn() != 0 || m.Type.NumOut() != 1) {
			t.Errorf("%s is no property", m.Name)
		}
	}
	var x any = &runtime.Execution{}
	if _, ok := x.(events.ExecutionState); !ok {
		t.Error("runtime.Execution is no events.ExecutionState")
	}
}

// SA-142, SA-143, SA-145, SA-148: stop ends the execution after the current operation:
// the call returns its result and its step closes, but no other follows. The abort
// signal is not sent.
func TestStopInATool(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	seen := &got[facts]{}
	s.on("stop", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		x := in.State.Execution()
		seen.add(factsOf(x))
		x.Stop()
		seen.add(factsOf(x))
		if isClosed(x.AbortSignal()) || ctx.Err() != nil {
			t.Error("the current work was cancelled")
		}
		return "the result", nil
	})
	x := s.play(st, []one{probe("stop")}, []one{probe("never")})
	want := []facts{{x.ID, "a", 1, 1, 0, false, ""}, {x.ID, "a", 1, 1, 0, true, "a"}}
	if got := seen.all(); !reflect.DeepEqual(got, want) {
		t.Errorf("the execution was %+v, not %+v", got, want)
	}
	if s.times() != 1 {
		t.Errorf("the model was asked %d times", s.times())
	}
	last := must(s.fresh(st).GetMessages(t.Context(), events.GetMessagesOptions{}))(t).Messages[0]
	if last.Role != events.FromTool || last.Content == nil || *last.Content != "the result" {
		t.Errorf("the call returned %s", written(t, last))
	}
}

// SA-142: a stop by another caller is visible in the run immediately.
func TestStoppedFromOutside(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	entered, stopped := make(chan struct{}), make(chan bool, 1)
	s.on("wait", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		close(entered)
		for !in.State.Execution().Stopped() {
			if _, err := in.State.GetMessages(ctx, asc()); err != nil {
				return nil, err
			}
		}
		stopped <- true
		return nil, nil
	})
	reply := s.begin(st, []one{probe("wait")}, []one{probe("never")})
	<-entered
	must(s.Send(t.Context(), st.ThreadID(), events.StopRun{Reason: "enough"}))(t)
	<-stopped
	if x := s.end(reply); x.Status != events.ExecutionCompleted || s.times() != 1 {
		t.Errorf("it ended %s, asked %d times", x.Status, s.times())
	}
}

// SA-145, SA-149: the abort signal cancels the current work, and so does the context.
func TestAbortSignal(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	entered, ended := make(chan struct{}), make(chan error, 1)
	s.on("fetch", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		close(entered)
		<-in.State.Execution().AbortSignal()
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	reply := s.begin(st, []one{probe("fetch")})
	<-entered
	must(s.Send(t.Context(), st.ThreadID(), events.CancelRun{}))(t)
	if err := <-ended; err == nil || err.Error() != "aborted" {
		t.Errorf("it ended by %v", err)
	}
	if x := s.end(reply); x.Status != events.ExecutionFailed || x.ErrorText != "aborted" {
		t.Errorf("the run ended %s: %s", x.Status, x.ErrorText)
	}
}

// debate defines an agent with two sides, whose reactor is speaker: each calls a tool
// first, and then speaks.
func (s *stage) debate(name string, a, b events.AgentSide) {
	s.t.Helper()
	a.Reactor, b.Reactor, a.Tools, b.Tools = "speaker", "speaker", []string{"probe"}, []string{"probe"}
	s.define(events.ToolDefinition{Name: "probe", Description: "Probes.", Type: events.GoTool},
		events.AgentDefinition{Name: name, Type: events.DualAI, SideA: &a, SideB: &b})
}

// speaker calls an act, named by its agent, in the first step of a turn.
func (s *stage) speaker(sides *got[string]) runtime.Reactor {
	return runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
		sides.add(in.Side)
		turns := sides.all()
		if n := len(turns); n > 1 && turns[n-2] == in.Side {
			text := events.JSON(`{"type":"output_text","text":"from ` + in.Side + `"}`)
			return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{text}}}, nil
		}
		return &runtime.Reaction{
			AssistantEvent: runtime.Assistant{Content: []events.JSON{}},
			ToolCalls:      []runtime.ToolCall{{CallID: in.StepID, Name: "probe", Arguments: events.JSON(`{"act":"` + in.Agent + `"}`)}},
		}, nil
	})
}

// SA-7, SA-9, SA-138, SA-139, SA-140, SA-141, SA-142, SA-143, SA-147, SA-148: the sides
// of a dual_ai agent, in a thread of its own.
func TestDualExecutionState(t *testing.T) {
	t.Parallel()
	sides := &got[string]{}
	var s *stage
	s = newStage(t, withReactor("speaker", func(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
		return s.speaker(sides).React(ctx, in, out)
	}))
	two := int64(2)
	s.debate("debate", events.AgentSide{}, events.AgentSide{MaxSteps: &two})
	s.debate("forced", events.AgentSide{}, events.AgentSide{MaxSteps: &two})
	s.debate("stopping", events.AgentSide{}, events.AgentSide{})
	st := s.thread("script")
	seen := &got[facts]{}
	threads := &got[string]{}
	s.on("debate", func(_ context.Context, in *runtime.ToolInput) (any, error) {
		seen.add(factsOf(in.State.Execution()))
		threads.add(in.ThreadID)
		return nil, nil
	})
	if err := st.RunAgent(t.Context(), "debate"); err != nil {
		t.Fatal(err)
	}
	all := seen.all()
	if len(all) != 2 || all[0].side != "a" || all[0].steps != 1 || all[0].a != 1 || all[0].b != 0 || all[1].side != "b" || all[1].steps != 3 || all[1].a != 2 || all[1].b != 1 {
		t.Errorf("the execution was %+v", all)
	}
	if got := strings.Join(sides.all(), ""); got != "aabb" {
		t.Errorf("the turns were %s", got)
	}
	for _, f := range all {
		if f.a+f.b != f.steps || f.stopped || f.by != "" {
			t.Errorf("the execution was %+v", f)
		}
	}
	if own := threads.all()[0]; own == st.ThreadID() {
		t.Error("SA-7: it ran in the caller's thread")
	}
	if n := must(s.fresh(st).GetMessages(t.Context(), asc()))(t).Total; n != 0 {
		t.Errorf("SA-7: the caller's thread has %d messages", n)
	}
	// The next turn is assigned to a side (SA-147); an invalid side is refused.
	*sides = got[string]{}
	s.on("forced", func(_ context.Context, in *runtime.ToolInput) (any, error) {
		x := in.State.Execution()
		if err := x.ForceTurn("c"); events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("the turn of side c: %v", err)
		}
		if x.CurrentSide() == events.SideA && x.StepCount() == 1 {
			return nil, x.ForceTurn(events.SideB)
		}
		return nil, nil
	})
	if err := st.RunAgent(t.Context(), "forced"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(sides.all(), ""); !strings.HasPrefix(got, "ab") {
		t.Errorf("the turns were %s", got)
	}
	// A side stops (SA-143, SA-148).
	*sides, *seen = got[string]{}, got[facts]{}
	s.on("stopping", func(_ context.Context, in *runtime.ToolInput) (any, error) {
		x := in.State.Execution()
		if x.CurrentSide() == events.SideB {
			x.Stop()
			seen.add(factsOf(x))
		}
		return nil, nil
	})
	if err := st.RunAgent(t.Context(), "stopping"); err != nil {
		t.Fatal(err)
	}
	if got := seen.all(); len(got) != 1 || !got[0].stopped || got[0].by != "b" || strings.Join(sides.all(), "") != "aab" {
		t.Errorf("it was stopped as %+v after %s", got, sides.all())
	}
}

// SA-147: with one side, no turn can be forced.
func TestForceTurnOfOneSide(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	refused := make(chan error, 1)
	s.on("force", func(_ context.Context, in *runtime.ToolInput) (any, error) {
		refused <- in.State.Execution().ForceTurn(events.SideB)
		return nil, nil
	})
	s.play(s.thread("script"), []one{probe("force")})
	if err := <-refused; events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("it was answered %v", err)
	}
}

// The execution shows the run live also to a tool of a step that continues concurrently
// with others, whose results are there when they are read.
func TestExecutionIsLive(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := make(chan struct{})
	s.on("quick", func(context.Context, *runtime.ToolInput) (any, error) { defer close(first); return "quick", nil })
	s.on("slow", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		<-first
		for ctx.Err() == nil {
			for _, m := range in.State.Execution().MessageHistory() {
				if m.Role == events.FromTool && m.Content != nil && *m.Content == "quick" {
					list := must(in.State.GetMessages(ctx, asc()))(t)
					if n := len(list.Messages); n == 0 || list.Messages[n-1].Role != events.FromTool {
						return nil, fmt.Errorf("the messages do not show it: %s", written(t, list))
					}
					return nil, nil
				}
			}
		}
		return nil, errors.New("the history does not show it")
	})
	st := s.thread("script")
	s.play(st, []one{probe("quick"), probe("slow")})
	for _, m := range must(s.fresh(st).GetMessages(t.Context(), asc()))(t).Messages {
		if m.ToolStatus != nil && *m.ToolStatus == events.ToolError {
			t.Error(*m.Content)
		}
	}
}
