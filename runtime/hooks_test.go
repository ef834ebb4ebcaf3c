package runtime

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/events"
)

// Hooks see the run in its order, may change inputs and results, and see the execution
// through the thread's state: SA-20, SA-17, SA-91, SA-92, SA-137, SA-139, SA-144,
// SA-145, SA-146.
func TestHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	var seen []string
	note := func(what string) { mu.Lock(); defer mu.Unlock(); seen = append(seen, what) }
	find := tool{ToolSpec{Name: "find"}, func(_ context.Context, in *ToolInput) (ToolResult, error) {
		st := in.State.(*hooked)
		n, _ := st.x.Scratch().Load("n")
		st.x.Scratch().Store("n", 1)
		note("tool " + string(in.Arguments))
		if first := string(in.Arguments) == `{"changed":1}`; first != (n == nil) {
			t.Errorf("the scratch holds %v for %s", n, in.Arguments)
		}
		if st.x.FlowID() != in.ExecutionID || closed(st.x.AbortSignal()) || len(st.x.MessageHistory()) == 0 {
			t.Errorf("the execution is %+v", st.x)
		}
		return Done(events.JSON("1")), nil
	}}
	w.agent("a", script(says("x", call("c1", "find", `{}`)), says("y", call("c2", "find", `{"n":2}`), call("c3", "skip", `{}`)), says("z")), find,
		tool{ToolSpec{Name: "skip"}, func(context.Context, *ToolInput) (ToolResult, error) {
			t.Error("a call was made that a hook stood for")
			return Done(nil), nil
		}})
	w.work(Config{
		State: func(_, id string, x *Execution) ThreadState { return &hooked{id: id, x: x} },
		Hooks: Hooks{
			BeforeRun: func(_ context.Context, st ThreadState) error { note("run"); return nil },
			AfterRun:  func(_ context.Context, _ ThreadState, text string) { note("after run" + text) },
			BeforeStep: func(_ context.Context, st ThreadState, in *StepInput) error {
				note("step")
				if got := st.(*hooked).x.StepCount(); got != in.Iteration+1 {
					t.Errorf("step %d counts %d", in.Iteration, got)
				}
				return nil
			},
			AfterStep: func(_ context.Context, _ ThreadState, in *StepInput, out *Reaction) error {
				if in.Iteration == 2 {
					out.AssistantEvent.Content[0] = object("type", events.OutputText, "text", "changed")
				}
				return nil
			},
			BeforeTool: func(_ context.Context, _ ThreadState, in *ToolInput) (*ToolResult, error) {
				if in.CallID == "c1" {
					in.Arguments = events.JSON(`{"changed":1}`)
				}
				if in.Name == "skip" {
					got := Done(text("instead"))
					return &got, nil
				}
				return nil, nil
			},
			AfterTool: func(_ context.Context, _ ThreadState, in *ToolInput, out *ToolResult) error {
				out.Result = text("seen " + string(out.Result))
				return nil
			},
		},
	})
	id, execution := w.begin("a", "hello")
	all := w.finished(id, execution)
	next := w.must("thread.react", id, events.ReactThread{Text: new("again")}).Result.ExecutionID // its scratch is empty (SA-92)
	w.finished(id, next)
	mu.Lock()
	defer mu.Unlock()
	want := `run|step|tool {"changed":1}|step|tool {"n":2}|step|after run|run|step|tool {"changed":1}`
	if got := strings.Join(seen, "|"); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	var parts []string
	for _, e := range all {
		switch d := e.Data.(type) {
		case events.PartUpdated:
			parts = append(parts, string(d.Part))
		case events.PartCreated:
			parts = append(parts, string(d.Part))
		}
	}
	joined := strings.Join(parts, "\n")
	for _, want := range []string{`"output":"seen 1"`, `"output":"instead"`, `"text":"changed"`} {
		if !strings.Contains(joined, want) {
			t.Errorf("%s is missing in\n%s", want, joined)
		}
	}
}

type hooked struct {
	ThreadState
	id string
	x  *Execution
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *hooked) ThreadID() string { return s.id }

// A hook that fails before or after a call fails only that call, which the reactor
// sees; a failure before the call prevents it.
func TestHooks_FailureOfCallHook(t *testing.T) {
	t.Parallel()
	before := func(err func() error) Hooks {
		return Hooks{BeforeTool: func(context.Context, ThreadState, *ToolInput) (*ToolResult, error) { return nil, err() }}
	}
	after := func(err func() error) Hooks {
		return Hooks{AfterTool: func(context.Context, ThreadState, *ToolInput, *ToolResult) error { return err() }}
	}
	fails := func() error { return errors.New("not this one") }
	panics := func() error { panic("secret") }
	for name, c := range map[string]struct {
		hooks Hooks
		made  int
		text  string
	}{
		"before":          {before(fails), 0, "not this one"},
		"before, a panic": {before(panics), 0, "a hook panicked"},
		"after":           {after(fails), 1, "not this one"},
		"after, a panic":  {after(panics), 1, "a hook panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			made := 0
			w.agent("a", script(says("x", call("c1", "f", `{}`)), says("y")), tool{ToolSpec{Name: "f"}, func(context.Context, *ToolInput) (ToolResult, error) {
				made++
				return Done(text("done")), nil
			}})
			w.work(Config{Hooks: c.hooks})
			all := w.finished(w.begin("a", "hello"))
			if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
				t.Errorf("the run ended %s (%s)", status, text)
			}
			var results []string
			for _, e := range all {
				if d, ok := e.Data.(events.ItemCreated); ok && d.Type == events.ActionResult {
					results = append(results, string(d.Content))
				}
			}
			if made != c.made || len(results) != 1 || !strings.Contains(results[0], `"isError":true`) || !strings.Contains(results[0], `"`+c.text+`"`) {
				t.Errorf("it was made %d times, and came to %s", made, results)
			}
		})
	}
}

// A hook that fails or panics ends only what it intercepts.
func TestHooks_Failures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hooks Hooks
		text  string
	}{
		"before a run":  {Hooks{BeforeRun: func(context.Context, ThreadState) error { return errors.New("not today") }}, "not today"},
		"before a step": {Hooks{BeforeStep: func(context.Context, ThreadState, *StepInput) error { panic("secret") }}, "a hook panicked"},
		"after a step": {Hooks{AfterStep: func(context.Context, ThreadState, *StepInput, *Reaction) error {
			return errors.New("not so")
		}}, "not so"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent("a", script(says("x")))
			ended := make(chan string, 1)
			c.hooks.AfterRun = func(_ context.Context, _ ThreadState, text string) { ended <- text }
			w.work(Config{Hooks: c.hooks})
			id, execution := w.begin("a", "hello")
			if status, text, _ := endOf(t, w.finished(id, execution)); status != events.ExecutionFailed || text != c.text {
				t.Errorf("it ended %s (%s)", status, text)
			}
			if text := <-ended; text != c.text {
				t.Errorf("the hook received %q", text)
			}
		})
	}
}
