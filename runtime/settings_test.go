package runtime

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// recorder is a reactor that keeps its inputs.
type recorder struct {
	mu    sync.Mutex
	steps []*StepInput
	next  []*Reaction
}

func (r *recorder) React(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, in)
	if len(r.next) == 0 {
		return says("done"), nil
	}
	one := r.next[0]
	r.next = r.next[1:]
	return one, nil
}

func (r *recorder) step(n int) *StepInput {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps[n]
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.steps)
}

func toolNames(list []ToolSpec) string {
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

// The reactor of a run receives the run's settings with those of its agent; the next run has
// none of them.
func TestSettings_ReachTheReactor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := &recorder{}
	a := w.agent("triage", r, tool{spec: ToolSpec{Name: "find"}})
	a.A.Prompt.Text = "Be brief."
	a.A.Model = Model{Name: "m", Model: "big", Params: events.JSON(`{"top_p":0.5,"seed":7}`)}
	w.work(Config{})
	id := w.must("thread.create", "", events.CreateThread{AgentID: "triage"}).ThreadID
	text, hot := "hello", 1.5
	x := w.must("thread.react", id, events.ReactThread{Text: &text, Settings: &events.RunSettings{
		Instructions: "Answer in French.", MaxOutputTokens: 50, Temperature: &hot, Params: events.JSON(`{"top_p":0.9}`), Metadata: events.JSON(`{"a":1}`),
		Tools: []events.CallerTool{{Name: "weather", Description: "The weather.", Parameters: events.JSON(`{"type":"object"}`), Strict: true}},
	}}).Result.ExecutionID
	w.finished(id, x)
	in := r.step(0)
	if in.Instructions != "Be brief.\n\nAnswer in French." || *in.Model.Temperature != 1.5 || in.Model.MaxOutputTokens != 50 || string(in.Metadata) != `{"a":1}` {
		t.Errorf("%q %+v %s", in.Instructions, in.Model, in.Metadata)
	}
	if string(in.Model.Params) != `{"seed":7,"top_p":0.9}` || toolNames(in.Tools) != "find weather" || !in.Tools[1].Caller || !in.Tools[1].Strict || in.Tools[0].Caller {
		t.Errorf("%s %+v", in.Model.Params, in.Tools)
	}
	w.finished(id, w.must("thread.react", id, events.ReactThread{Text: &text}).Result.ExecutionID)
	if in := r.step(1); in.Instructions != "Be brief." || len(in.Tools) != 1 || in.Metadata != nil || string(in.Model.Params) != `{"top_p":0.5,"seed":7}` || in.Model.MaxOutputTokens != 0 {
		t.Errorf("the next run has them, too: %+v", in)
	}
	w.lawful(id)
}

// A call of a caller's tool ends the run; the result, an item of its own, is what the next run's
// reactor sees, after the call.
func TestSettings_CallOfTheCallerEndsTheRun(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) { callOfTheCaller(t) })
	t.Run("with one of the agent's", func(t *testing.T) { callOfTheCaller(t, call("c2", "find", `{}`)) })
}

// callOfTheCaller has a step with a call of the caller, and others.
func callOfTheCaller(t *testing.T, others ...ToolCall) {
	w := newWorld(t)
	made := 0
	r := &recorder{next: []*Reaction{says("Let me look.", append([]ToolCall{call("c1", "weather", `{"city":"Paris"}`)}, others...)...), says("It rains.")}}
	w.agent("triage", r, tool{ToolSpec{Name: "find"}, func(context.Context, *ToolInput) (ToolResult, error) {
		made++
		return Done(events.JSON(`"found"`)), nil
	}}).Continue = func(Outcome) bool { return true }
	w.agents.agents["triage"].Limits.Iterations = 3
	w.work(Config{})
	id := w.must("thread.create", "", events.CreateThread{AgentID: "triage"}).ThreadID
	text := "The weather?"
	set := &events.RunSettings{Tools: []events.CallerTool{{Name: "weather"}}, Params: events.JSON(`{"tool_choice":"required"}`)}
	x := w.must("thread.react", id, events.ReactThread{Text: &text, Settings: set}).Result.ExecutionID
	all := w.finished(id, x)
	if r.count() != 1 || made != len(others) {
		t.Fatalf("the reactor was called %d times, and the tool %d times", r.count(), made)
	}
	status := ""
	for _, e := range all {
		if d, ok := e.Data.(events.ExecutionStatusChanged); ok {
			status = string(d.To)
		}
	}
	if status != "completed" {
		t.Errorf("the run is %s", status)
	}
	w.agents.agents["triage"].Continue = nil
	result := events.NewItem{Type: events.ActionResult, Content: events.JSON(`{"callId":"c1","output":"rain"}`)}
	w.finished(id, w.must("thread.react", id, events.ReactThread{Item: &result, Settings: set}).Result.ExecutionID)
	in := r.step(1)
	kinds := []string{}
	for _, i := range in.Items {
		kinds = append(kinds, string(i.Type)+" "+string(i.Role))
	}
	if !slices.Equal(kinds, []string{"message user", "message assistant", "action_result "}) || !strings.Contains(string(in.Items[1].Content), `"state":"input-available"`) ||
		strings.Contains(string(in.Items[1].Content), `"output":"found"`) != (len(others) > 0) {
		t.Errorf("%v: %s", kinds, in.Items[1].Content)
	}
	w.lawful(id)
}

// A tool of the caller cannot take the name of one of the agent's, whose calls are trusted to
// run here.
func TestSettings_NameOfAnAgentsTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("triage", &recorder{}, tool{spec: ToolSpec{Name: "find"}})
	w.work(Config{})
	id := w.must("thread.create", "", events.CreateThread{AgentID: "triage"}).ThreadID
	text := "hello"
	x := w.must("thread.react", id, events.ReactThread{Text: &text, Settings: &events.RunSettings{Tools: []events.CallerTool{{Name: "find"}}}}).Result.ExecutionID
	for _, e := range w.finished(id, x) {
		if d, ok := e.Data.(events.ExecutionStatusChanged); ok && (d.To != events.ExecutionFailed || !strings.Contains(d.ErrorText, "has the name of a tool of agent triage")) {
			t.Errorf("%+v", d)
		}
	}
	if _, err := w.ask("thread.react", id, events.ReactThread{Text: &text, Settings: &events.RunSettings{Tools: []events.CallerTool{{Name: "a"}, {Name: "a"}}}}); err == nil || !strings.Contains(err.Error(), "two tools have the name a") {
		t.Errorf("%v", err)
	}
}

// A tool_choice that demands a call holds for the first step only.
func TestSettings_ToolChoiceOfTheFirstStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := &recorder{next: []*Reaction{says("", call("c1", "find", `{}`))}}
	w.agent("triage", r, tool{ToolSpec{Name: "find"}, func(context.Context, *ToolInput) (ToolResult, error) { return Done(nil), nil }})
	w.work(Config{})
	id := w.must("thread.create", "", events.CreateThread{AgentID: "triage"}).ThreadID
	text := "hello"
	w.finished(id, w.must("thread.react", id, events.ReactThread{Text: &text, Settings: &events.RunSettings{Params: events.JSON(`{"tool_choice":"required"}`)}}).Result.ExecutionID)
	if a, b := string(r.step(0).Model.Params), string(r.step(1).Model.Params); a != `{"tool_choice":"required"}` || b != `{}` {
		t.Errorf("%s, then %s", a, b)
	}
}

// What a tool_choice forbids is not called, in no step, even if the model does not obey it, and no
// person is asked; what it allows may be called in all of them.
func TestSettings_ToolChoiceForbids(t *testing.T) {
	t.Parallel()
	text := "hello"
	const all, find = "find c1, find c3, refund c2", "find c1, find c3"
	for choice, c := range map[string]struct{ made, later string }{
		`"none"`: {"", `{"tool_choice":"none"}`},
		`"auto"`: {all, `{"tool_choice":"auto"}`},
		`{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"find"}]}`: {
			find, `{"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"find"}]}}`},
		`{"type":"allowed_tools","mode":"none","tools":[{"type":"function","name":"find"}]}`: {
			"", `{"tool_choice":{"type":"allowed_tools","mode":"none","tools":[{"type":"function","name":"find"}]}}`},
		`{"type":"function","name":"find"}`: {all, `{}`},
		`7`:                                 {all, `{}`},
	} {
		w := newWorld(t)
		var k counter
		r := &recorder{next: []*Reaction{says("", call("c1", "find", `{}`), call("c2", "refund", `{}`)), says("", call("c3", "find", `{}`))}}
		w.agent("triage", r, k.tool("find", false), k.tool("refund", c.made != all)) // which would ask a person
		w.work(Config{})
		id := w.must("thread.create", "", events.CreateThread{AgentID: "triage"}).ThreadID
		w.must("thread.react", id, events.ReactThread{Text: &text, Settings: &events.RunSettings{Params: events.JSON(`{"tool_choice":` + choice + `}`)}})
		w.until(id, func(e *events.Event) bool {
			return e.Type == events.ThreadFinishedType || e.Type == events.RunParkedType
		})
		slices.Sort(k.calls)
		if got := k.made(); got != c.made || r.count() != 3 {
			t.Errorf("%s: made %q, in %d steps", choice, got, r.count())
			continue
		}
		if got := string(r.step(1).Model.Params); got != c.later {
			t.Errorf("%s: the second step was asked with %s", choice, got)
		}
	}
}

// A message with settings never steers a run: it waits for its own, which has them; a retry has
// those of the run that failed, and no other run's are kept.
func TestSettings_WaitAndRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, release := make(chan struct{}, 4), make(chan struct{})
	var seen []string
	w.agent("triage", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		seen = append(seen, in.Instructions)
		begun <- struct{}{}
		<-release
		if in.Instructions == "fail" && len(seen) == 2 {
			return nil, context.DeadlineExceeded
		}
		return says("ok"), nil
	}))
	w.work(Config{})
	id := w.must("thread.create", "", events.CreateThread{AgentID: "triage"}).ThreadID
	text := "hello"
	first := w.must("thread.react", id, events.ReactThread{Text: &text, Settings: &events.RunSettings{Instructions: "one"}}).Result
	<-begun
	second := w.must("thread.react", id, events.ReactThread{Text: &text, Policy: events.Steer, Settings: &events.RunSettings{Instructions: "fail"}}).Result
	if second.QueuedID == "" {
		t.Fatalf("it does not wait: %+v", second)
	}
	close(release)
	w.finished(id, first.ExecutionID)
	w.finished(id, second.ExecutionID)
	third := w.must("run.retry", id, events.RetryRun{}).Result
	w.finished(id, third.ExecutionID)
	if !slices.Equal(seen, []string{"one", "fail", "fail"}) {
		t.Errorf("%q", seen)
	}
	w.look(id, func(s *thread.State) {
		for _, x := range []string{first.ExecutionID, second.ExecutionID, third.ExecutionID} {
			if r, _ := s.Run(x); r.Settings != nil {
				t.Errorf("the settings of %s are kept: %+v", x, r.Settings)
			}
		}
	})
	w.lawful(id)
}
