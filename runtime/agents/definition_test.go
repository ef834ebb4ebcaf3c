package agents_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// with starts a server with more in its registry.
func with(t *testing.T, add func(*runtime.Registry) error) *house {
	return start(t, func(c *server.Config) {
		usual := c.Register
		c.Register = func(r *runtime.Registry) error {
			if err := usual(r); err != nil {
				return err
			}
			return add(r)
		}
	})
}

// on creates a thread, asks an agent in it, and returns the execution and the answer.
func (h *house) on(made events.CreateThread, agent string) (*events.Execution, string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 5*time.Minute)
	defer cancel()
	reply, err := h.c.Send(ctx, "", made)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.react(ctx, reply.ThreadID, agent)
}

// A prompt's variables come from the context, the thread or the definition; a run
// without a value for one fails and names it.
func TestPromptVariables(t *testing.T) {
	h := start(t, nil)
	h.apply("prompt", `{"name":"p","text":"Help {{customer}} in {{tone}}.","variables":["customer","tone"],"defaults":{"tone":"English"}}`,
		"agent", `{"name":"a","type":"ai_human","reactor":"say","prompt":"p"}`,
		"agent", `{"name":"d","type":"dual_ai","sideA":{"reactor":"say","prompt":"p","label":"Ann"},"sideB":{"reactor":"say","label":"Ben","stopOnResponse":true}}`)
	for name, c := range map[string]struct {
		made  events.CreateThread
		agent string
		want  string
	}{
		"env":      {events.CreateThread{Env: events.JSON(`{"customer":"Zoe"}`)}, "a", "Help Zoe in English."},
		"metadata": {events.CreateThread{Env: events.JSON(`{"customer":"Zoe"}`), Metadata: events.JSON(`{"customer":"Max","tone":"German"}`)}, "a", "Help Max in German."},
		"context":  {events.CreateThread{Metadata: events.JSON(`{"customer":"Max"}`), Context: events.JSON(`{"customer":{"id":7}}`)}, "a", `Help {\"id\":7} in English.`},
		"a side":   {events.CreateThread{Env: events.JSON(`{"customer":"Zoe"}`)}, "d", "Help Zoe in English./aAnn"},
	} {
		if x, answer := h.on(c.made, c.agent); x.Status != events.ExecutionCompleted || !strings.Contains(answer, c.want) {
			t.Errorf("%s: %s %s: %s", name, x.Status, x.ErrorText, answer)
		}
	}
	x, _ := h.on(events.CreateThread{}, "a")
	if x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "the prompt p has no value for customer") {
		t.Errorf("%s: %s", x.Status, x.ErrorText)
	}
}

// A prompt is filled in with the thread's current values, also in a thread whose
// conversation a worker has cached.
func TestPromptVariablesChange(t *testing.T) {
	h := start(t, nil)
	h.apply("prompt", `{"name":"p","text":"Help {{customer}}.","variables":["customer"]}`, "agent", `{"name":"a","type":"ai_human","reactor":"say","prompt":"p"}`)
	made, err := h.c.Send(t.Context(), "", events.CreateThread{Env: events.JSON(`{"customer":"Zoe"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, answer := h.react(t.Context(), made.ThreadID, "a"); !strings.Contains(answer, "Help Zoe.") {
		t.Error(answer)
	}
	if _, err := h.c.Send(t.Context(), made.ThreadID, events.UpdateThread{Env: events.JSON(`{"customer":"Max"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, answer := h.react(t.Context(), made.ThreadID, "a"); !strings.Contains(answer, "Help Max.") {
		t.Error(answer)
	}
}

// The loop policy of an agent's definition decides whether a run continues: EK-121.
func TestLoopOfDefinition(t *testing.T) {
	h := with(t, func(r *runtime.Registry) error {
		err := r.AddReactor("steps", runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
			out := &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(`{"type":"output_text","text":"step"}`)}}}
			for _, name := range map[int64][]string{0: {"double"}, 2: {"double", "submit"}}[in.Iteration] {
				out.ToolCalls = append(out.ToolCalls, runtime.ToolCall{CallID: in.StepID + name, Name: name, Arguments: events.JSON(`{"n":1}`)})
			}
			return out, nil
		}))
		if err != nil {
			return err
		}
		submit, err := runtime.DefineTool(runtime.ToolSpec{Name: "submit"}, func(context.Context, *runtime.ToolInput, struct{}) (bool, error) { return true, nil })
		if err != nil {
			return err
		}
		return r.AddTool(submit)
	})
	h.apply("tool", `{"name":"double","description":"Doubles.","type":"go"}`, "tool", `{"name":"submit","description":"Submits.","type":"go"}`)
	for loop, want := range map[string]int64{
		`{}`: 2, `{"continue":"calls"}`: 2, `{"continue":"never"}`: 1, `{"stopAfter":["double"]}`: 1, `{"continue":"always","stopAfter":["submit"]}`: 3,
	} {
		h.apply("agent", `{"name":"a","type":"ai_human","reactor":"steps","tools":["double","submit"],"loop":`+loop+`}`)
		x, answer := h.ask("a")
		if steps := int64(strings.Count(answer, `"step"`)); x.Status != events.ExecutionCompleted || steps != want || strings.Contains(answer, `"state":"input`) {
			t.Errorf("%s: %s %s after %d steps, not %d: %s", loop, x.Status, x.ErrorText, steps, want, answer)
		}
	}
}

// The hooks that an agent names are called around its runs, within those of the
// process; an unregistered one fails the run.
func TestHooksOfDefinition(t *testing.T) {
	var calls atomic.Int64
	h := with(t, func(r *runtime.Registry) error {
		mark := func(with string) runtime.Hooks {
			return runtime.Hooks{AfterStep: func(_ context.Context, _ runtime.ThreadState, _ *runtime.StepInput, out *runtime.Reaction) error {
				calls.Add(1)
				out.AssistantEvent.Content[0] = events.JSON(strings.Replace(string(out.AssistantEvent.Content[0]), "over", "over"+with, 1))
				return nil
			}}
		}
		if err := r.AddHooks("inner", mark("-inner")); err != nil {
			return err
		}
		return r.AddHooks("outer", mark("-outer"))
	})
	h.apply("tool", `{"name":"double","description":"Doubles.","type":"go"}`,
		"agent", `{"name":"a","type":"ai_human","reactor":"say","tools":["double"],"hooks":["outer","inner"]}`,
		"agent", `{"name":"none","type":"ai_human","reactor":"say"}`, "agent", `{"name":"lost","type":"ai_human","reactor":"say","hooks":["gone"]}`)
	if x, answer := h.ask("a"); x.Status != events.ExecutionCompleted || !strings.Contains(answer, "over-outer-inner") || calls.Load() != 4 {
		t.Errorf("%s, %d calls: %s", x.Status, calls.Load(), answer)
	}
	if h.ask("none"); calls.Load() != 4 {
		t.Errorf("the hooks of another agent were called")
	}
	if x, _ := h.ask("lost"); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "no process here has the hook gone") {
		t.Errorf("%s: %s", x.Status, x.ErrorText)
	}
}

// A message that arrives while an agent works is handled as the agent's definition
// says, unless the message or the thread says otherwise.
func TestPolicyOfDefinition(t *testing.T) {
	entered, release := make(chan string, 100), make(chan struct{})
	h := with(t, func(r *runtime.Registry) error {
		return r.AddReactor("slow", runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
			entered <- in.ThreadID
			select {
			case <-release:
			case <-ctx.Done():
			}
			return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(`{"type":"output_text","text":"done"}`)}}}, nil
		}))
	})
	// busy returns a thread whose agent works.
	busy := func(agent string) string {
		t.Helper()
		made, err := h.c.Send(t.Context(), "", events.CreateThread{AgentID: agent})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.c.Send(t.Context(), made.ThreadID, events.ReactThread{Text: new("one")}); err != nil {
			t.Fatal(err)
		}
		for id := <-entered; id != made.ThreadID; id = <-entered { // of an earlier thread, whose next turn began
		}
		return made.ThreadID
	}
	types := func(r *events.Reply) (list string) {
		for _, e := range r.Events {
			list += " " + string(e.Type)
		}
		return list
	}
	for policy, want := range map[string]string{"": "queue.pushed", "enqueue": "queue.pushed", "interrupt": "run.stopped", "steer": "item.created"} {
		def := `{"name":"a","type":"ai_human","reactor":"slow"}`
		if policy != "" {
			def = strings.Replace(def, "}", `,"policy":"`+policy+`"}`, 1)
		}
		h.apply("agent", def)
		reply, err := h.c.Send(t.Context(), busy("a"), events.ReactThread{Text: new("two")})
		if err != nil || !strings.Contains(types(reply), want) {
			t.Errorf("%q: %v, %v", policy, reply, err)
		}
	}
	h.apply("agent", `{"name":"a","type":"ai_human","reactor":"slow","policy":"reject"}`)
	id := busy("a")
	if _, err := h.c.Send(t.Context(), id, events.ReactThread{Text: new("two")}); events.AsError(err).Code != events.IllegalTransition {
		t.Errorf("rejected: %v", err)
	}
	if reply, err := h.c.Send(t.Context(), id, events.ReactThread{Text: new("two"), Policy: events.Enqueue}); err != nil || !strings.Contains(types(reply), "queue.pushed") {
		t.Errorf("what the message says: %v", err)
	}
	if _, err := h.c.Send(t.Context(), id, events.UpdateThread{Policy: new(events.Steer)}); err != nil {
		t.Fatal(err)
	}
	if reply, err := h.c.Send(t.Context(), id, events.ReactThread{Text: new("three")}); err != nil || !strings.Contains(types(reply), "item.created") {
		t.Errorf("what the thread says: %v", err)
	}
	close(release)
}

// A thread's limit of output tokens and its mode reach the reactor, also after changes.
func TestThreadTellsReactor(t *testing.T) {
	told := make(chan runtime.StepInput, 10)
	h := with(t, func(r *runtime.Registry) error {
		return r.AddReactor("hear", runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
			told <- *in
			return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{events.JSON(`{"type":"output_text","text":"yes"}`)}}}, nil
		}))
	})
	h.apply("model", `{"name":"m","model":"big","reactor":"hear","maxOutputTokens":100,"contextTokens":5000}`, "agent", `{"name":"a","type":"ai_human","model":"m"}`)
	made, err := h.c.Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		most int64
		mode string
		want int64
	}{{0, "", 100}, {50, "rush", 50}, {500, "free", 100}} {
		if c.most > 0 {
			if _, err := h.c.Send(t.Context(), made.ThreadID, events.UpdateThread{MaxTokens: new(c.most), AgentMode: &c.mode}); err != nil {
				t.Fatal(err)
			}
		}
		h.react(t.Context(), made.ThreadID, "a")
		if in := <-told; in.Model.MaxOutputTokens != c.want || in.AgentMode != c.mode || in.Model.ContextTokens != 5000 {
			t.Errorf("with %+v: %+v, %q", c, in.Model, in.AgentMode)
		}
	}
}
