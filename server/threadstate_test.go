package server_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

func written(t testing.TB, v any) string {
	t.Helper()
	return string(must(json.Marshal(v, json.Deterministic(true)))(t))
}

func asc() events.GetMessagesOptions {
	return events.GetMessagesOptions{Order: "asc", IncludeSilent: true}
}

// SA-10: one interface serves tools, hooks, effects and callers outside: the
// client's state has every method of the runtime's.
func TestOneInterface(t *testing.T) {
	t.Parallel()
	var outside any = (*client.ThreadState)(nil)
	if _, ok := outside.(runtime.ThreadState); !ok {
		t.Error("client.ThreadState is no runtime.ThreadState")
	}
	state := reflect.TypeFor[runtime.ThreadState]()
	for _, name := range []string{ // of Standard Agents
		"GetMessages", "GetMessage", "InjectMessage", "UpdateMessage", "DeleteMessage", "GetLogs", "LoadModel", "LoadPrompt", "LoadAgent",
		"GetPromptNames", "GetAgentNames", "GetModelNames", "QueueTool", "InvokeTool", "ScheduleEffect", "GetScheduledEffects",
		"RemoveScheduledEffect", "RunAgent",
		"WriteFile", "ReadFile", "ReadFileStream", "StatFile", "ReaddirFile", "UnlinkFile", "MkdirFile", "RmdirFile", "GetFileStats", "GrepFiles",
		"FindFiles", "GetFileThumbnail", "Emit", "Scratch", "Execution", "ThreadID", "AgentID", "UserID", "CreatedAt",
	} {
		if _, ok := state.MethodByName(name); !ok {
			t.Errorf("there is no %s", name)
		}
	}
}

// SA-10, SA-12, SA-13, SA-14, SA-15, SA-17, SA-19, SA-21: what a tool is
// given is the thread that callers outside have, with the same answers, and with an
// execution, which they have not. What it reads is what the run has written.
func TestStateInATool(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	outside := s.thread("script")
	done := &got[string]{}
	s.on("look", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		st := in.State
		if st.ThreadID() != outside.ThreadID() || st.ThreadID() != in.ThreadID || st.AgentID() != "script" || st.UserID() == nil || *st.UserID() != "ada" || st.CreatedAt() != outside.CreatedAt() {
			t.Errorf("the thread is %s of %s and %v, made at %d", st.ThreadID(), st.AgentID(), st.UserID(), st.CreatedAt())
		}
		if x := st.Execution(); x == nil || x.FlowID() != in.ExecutionID {
			t.Errorf("the execution is %v", x)
		}
		if outside.Execution() != nil {
			t.Error("there is an execution for callers outside")
		}
		// The run has written its trigger and the reaction with this very call.
		before := must(st.GetMessages(ctx, asc()))(t)
		if n := len(before.Messages); n != 2 || before.Messages[1].ToolCalls == nil || !strings.Contains(*before.Messages[1].ToolCalls, in.CallID) {
			t.Errorf("the tool sees %s", written(t, before.Messages))
		}
		text, edited := "from a tool", "changed"
		m := must(st.InjectMessage(ctx, events.AddMessage{Role: events.FromSystem, Content: &text, Silent: true}))(t)
		m = must(st.UpdateMessage(ctx, m.ID, events.MessageUpdates{Content: &edited}))(t)
		if same := must(st.GetMessage(ctx, m.ID))(t); same == nil || *same.Content != edited || *m.Content != edited {
			t.Errorf("the message is %s", written(t, same))
		}
		if must(st.DeleteMessage(ctx, "itm_none"))(t) || !must(st.DeleteMessage(ctx, m.ID))(t) {
			t.Error("a message was not deleted")
		}
		if logs := must(st.GetLogs(ctx, events.GetLogsOptions{}))(t); len(logs) != 0 {
			t.Errorf("the logs are %s", written(t, logs))
		}
		inside := must(st.GetMessages(ctx, asc()))(t)
		if same := must(outside.GetMessages(ctx, asc()))(t); written(t, inside) != written(t, same) {
			t.Errorf("a tool reads\n%s\nand a caller\n%s", written(t, inside), written(t, same))
		}
		done.add("looked")
		return "seen", nil
	})
	s.play(outside, []one{probe("look")})
	if len(done.all()) != 1 {
		t.Error("the tool did not run")
	}
}

// SA-11: everything that works on a thread has its state: a tool and an effect in their
// input, and each hook as its first argument.
func TestState_ForToolsEffectsAndHooks(t *testing.T) {
	t.Parallel()
	given, over, effect := &got[string]{}, make(chan struct{}), make(chan struct{})
	note := func(who string, st runtime.ThreadState) {
		if st == nil {
			who += " nothing"
		} else {
			who += " " + st.ThreadID()
		}
		given.add(who)
	}
	s := newStage(t, func(c *server.Config) {
		c.Hooks = runtime.Hooks{
			BeforeRun: func(_ context.Context, st runtime.ThreadState) error { note("before a run", st); return nil },
			BeforeStep: func(_ context.Context, st runtime.ThreadState, _ *runtime.StepInput) error {
				note("before a step", st)
				return nil
			},
			AfterStep: func(_ context.Context, st runtime.ThreadState, _ *runtime.StepInput, _ *runtime.Reaction) error {
				note("after a step", st)
				return nil
			},
			BeforeTool: func(_ context.Context, st runtime.ThreadState, _ *runtime.ToolInput) (*runtime.ToolResult, error) {
				note("before a tool", st)
				return nil, nil
			},
			AfterTool: func(_ context.Context, st runtime.ThreadState, _ *runtime.ToolInput, _ *runtime.ToolResult) error {
				note("after a tool", st)
				return nil
			},
			AfterRun: func(_ context.Context, st runtime.ThreadState, _ string) { note("after a run", st); close(over) },
		}
		addEffect(c, "remind", runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
			note("an effect", in.State)
			close(effect)
			return nil
		}))
	})
	st := s.thread("script")
	s.on("look", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		note("a tool", in.State)
		return in.State.ScheduleEffect(ctx, "remind", nil, 0)
	})
	s.play(st, []one{probe("look")})
	<-over
	<-effect
	list := given.all()
	slices.Sort(list)
	var want []string
	for _, who := range []string{"a tool", "after a run", "after a step", "after a tool", "an effect", "before a run", "before a step", "before a tool"} {
		want = append(want, who+" "+st.ThreadID())
	}
	if list = slices.Compact(list); !slices.Equal(list, want) {
		t.Errorf("given:\n%s\nnot\n%s", strings.Join(list, "\n"), strings.Join(want, "\n"))
	}
}

// SA-20: a hook receives the thread with its execution.
func TestStateInAHook(t *testing.T) {
	t.Parallel()
	seen, over := &got[string]{}, make(chan struct{}) // the hook after a run is called after its end
	s := newStage(t, func(c *server.Config) {
		c.Hooks.BeforeStep = func(ctx context.Context, st runtime.ThreadState, in *runtime.StepInput) error {
			list, err := st.GetMessages(ctx, asc())
			if err != nil {
				return err
			}
			if x := st.Execution(); x == nil || x.FlowID() != in.ExecutionID || x.StepCount() != in.Iteration+1 {
				t.Errorf("the execution is %v", st.Execution())
			}
			seen.add(*list.Messages[0].Content)
			return nil
		}
		c.Hooks.AfterRun = func(ctx context.Context, st runtime.ThreadState, _ string) {
			defer close(over)
			result, err := st.InvokeTool(ctx, "probe", map[string]any{"act": "tidy"})
			seen.add(string(result.Result) + result.Error)
			if err != nil {
				t.Error(err)
			}
		}
	})
	s.on("tidy", func(context.Context, *runtime.ToolInput) (any, error) { return "tidied", nil })
	s.play(s.thread("script"))
	<-over
	if got := strings.Join(seen.all(), "|"); got != `[]|"tidied"` { // what was said to it is [], no steps
		t.Errorf("the hooks saw %s", got)
	}
}

// SA-55, SA-56, SA-57, SA-58, SA-59, SA-60, SA-61: definitions, for a tool and for
// a caller alike; an unknown name is a not_found.
func TestDefinitionsInATool(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.define(events.ModelDefinition{Name: "fast", Model: "gpt-5-mini"}, events.PromptDefinition{Name: "support", Text: "You help."},
		events.AgentDefinition{Name: "helper", Type: events.AIHuman, Model: "fast", Prompt: "support"})
	check := func(ctx context.Context, st runtime.ThreadState) {
		if m := must(st.LoadModel(ctx, "fast"))(t); m.Model != "gpt-5-mini" {
			t.Errorf("SA-55: %+v", m)
		}
		if p := must(st.LoadPrompt(ctx, "support"))(t); p.Text != "You help." {
			t.Errorf("SA-56: %+v", p)
		}
		if a := must(st.LoadAgent(ctx, "helper"))(t); a.Prompt != "support" {
			t.Errorf("SA-57: %+v", a)
		}
		own := must(client.LoadAgent[struct {
			Model string `json:"model"`
		}](ctx, st, "helper"))(t) // typed by the caller
		if own.Model != "fast" {
			t.Errorf("SA-57: %+v", own)
		}
		for id, names := range map[string][2][]string{
			"SA-58": {must(st.GetPromptNames(ctx))(t), {"support"}},
			"SA-59": {must(st.GetAgentNames(ctx))(t), {"helper"}},
			"SA-60": {must(st.GetModelNames(ctx))(t), {"fast"}},
		} {
			if !reflect.DeepEqual(names[0], names[1]) {
				t.Errorf("%s: %v, want %v", id, names[0], names[1])
			}
		}
		_, noModel := st.LoadModel(ctx, "none")
		_, noPrompt := st.LoadPrompt(ctx, "none")
		_, noAgent := st.LoadAgent(ctx, "none")
		for _, err := range []error{noModel, noPrompt, noAgent} {
			if events.AsError(err).Code != events.NotFound {
				t.Errorf("SA-61: %v", err)
			}
		}
	}
	st := s.thread("script")
	must(0, st.Refresh(t.Context()))(t)
	check(t.Context(), s.fresh(st))
	s.on("load", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		check(ctx, in.State)
		return nil, nil
	})
	s.play(st, []one{probe("load")})
}

// fresh returns the state again, showing everything written before.
func (s *stage) fresh(st *client.ThreadState) *client.ThreadState {
	s.t.Helper()
	return must(s.latest().Thread(s.t.Context(), st.ThreadID()))(s.t)
}

// SA-87, SA-88, SA-89: what a tool emits reaches subscribers, in order.
func TestEmitInATool(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	live := must(s.LiveEvents(t.Context(), st.ThreadID()))(t)
	defer live.Close()
	s.on("emit", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		for n := range 3 {
			if err := in.State.Emit(ctx, "progress", map[string]int{"step": n}); err != nil {
				return nil, err
			}
		}
		if err := in.State.Emit(ctx, "progress", func() {}); events.AsError(err).Code != events.InvalidRequest {
			t.Errorf("SA-89: what is no JSON: %v", err)
		}
		return nil, nil
	})
	s.play(st, []one{probe("emit")})
	for n := range 3 {
		e := must(live.Next(t.Context()))(t)
		if e.Event != "progress" || e.N != int64(n+1) || string(e.Data) != `{"step":`+string(rune('0'+n))+`}` {
			t.Errorf("event %d is %+v", n, e)
		}
	}
}

// SA-16, SA-91, SA-92, SA-93, SA-94: what a tool puts into the store of the
// execution a later one finds, of whatever type and size; the next execution begins
// with none. What is to stay goes into a message.
func TestScratch(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	type user struct{ name string }
	found := &got[any]{}
	s.on("put", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		in.State.Scratch().Store("user", user{"Alice"})
		in.State.Scratch().Store("large", make([]byte, 10<<20))
		_, err := in.State.InjectMessage(ctx, events.AddMessage{Role: events.FromSystem, Silent: true, Metadata: events.JSON(`{"user":"Alice"}`)})
		return nil, err
	})
	s.on("get", func(_ context.Context, in *runtime.ToolInput) (any, error) {
		v, _ := in.State.Scratch().Load("user")
		found.add(v)
		if large, ok := in.State.Scratch().Load("large"); ok && len(large.([]byte)) != 10<<20 {
			t.Error("a large value was cut")
		}
		return nil, nil
	})
	s.play(st, []one{probe("put")}, []one{probe("get")})
	s.play(st, []one{probe("get")})
	if got := found.all(); len(got) != 2 || got[0] != any(user{"Alice"}) || got[1] != nil {
		t.Errorf("found %v", got)
	}
	kept := false
	for _, m := range must(s.fresh(st).GetMessages(t.Context(), asc()))(t).Messages {
		kept = kept || string(m.Metadata) == `{"user":"Alice"}`
	}
	if !kept {
		t.Error("SA-94: what was put into a message is gone")
	}
}

// SA-150, SA-151, SA-155, SA-156: the values of the process that a tool that is not
// portable, and only such a one, finds.
func TestRuntimeContext_OnlyForNotPortableTools(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(c *server.Config) { c.Env = map[string]any{"DATABASE": "orders"} })
	st := s.thread("script")
	seen := &got[any]{}
	s.on("env", func(_ context.Context, in *runtime.ToolInput) (any, error) {
		open, ok := in.State.(client.NotPortable)
		if !ok {
			seen.add(nil)
			return runtime.Failed("Database not available"), nil
		}
		values := open.RuntimeContext()
		if c, ok := values["threadInstance"].(*client.Client); !ok || c.Tenant() != "acme" {
			t.Errorf("threadInstance is %T", values["threadInstance"])
		}
		seen.add(values["env"].(map[string]any)["DATABASE"])
		return "done", nil
	})
	s.play(st, []one{{"open", map[string]any{"act": "env"}}}, []one{probe("env")})
	if got := seen.all(); len(got) != 2 || got[0] != "orders" || got[1] != nil {
		t.Errorf("the tools found %v", got)
	}
	var said []string // what a tool does without, it says, and the model is shown that
	for _, m := range must(s.fresh(st).GetMessages(t.Context(), asc()))(t).Messages {
		if m.Role == events.FromTool {
			said = append(said, string(*m.ToolStatus)+" "+*m.Content)
		}
	}
	if got := strings.Join(said, "|"); got != "success done|error Database not available" {
		t.Errorf("the results are %s", got)
	}
	if env, ok := st.RuntimeContext()["env"]; ok {
		t.Errorf("a caller outside finds env %v", env)
	}
}

// SA-10, SA-94, SA-95, SA-112, SA-113: a file that one tool writes a later run
// reads, and a caller outside.
func TestFilesInATool(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	read := &got[string]{}
	s.on("write", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		_, err := in.State.WriteFile(ctx, "/data/config.json", []byte(`{"key":"value"}`), "application/json", events.WriteFileOptions{})
		return nil, err
	})
	s.on("read", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		data, err := in.State.ReadFile(ctx, "/data/config.json")
		read.add(string(data))
		if none, err := in.State.ReadFile(ctx, "/none"); none != nil || err != nil {
			t.Errorf("a file that is not there: %q, %v", none, err)
		}
		return nil, err
	})
	s.play(st, []one{probe("write")}, []one{probe("read")})
	s.play(st, []one{probe("read")})
	if got := strings.Join(read.all(), "|"); got != `{"key":"value"}|{"key":"value"}` {
		t.Errorf("the tools read %s", got)
	}
	if data := must(s.fresh(st).ReadFile(t.Context(), "/data/config.json"))(t); string(data) != `{"key":"value"}` {
		t.Errorf("a caller reads %s", data)
	}
}
