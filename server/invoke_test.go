package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// results returns the results of a thread's calls, oldest first.
func (s *stage) results(st *client.ThreadState) []string {
	s.t.Helper()
	var out []string
	for _, m := range must(s.fresh(st).GetMessages(s.t.Context(), asc()))(s.t).Messages {
		if m.Role == events.FromTool {
			text := "null"
			if m.Content != nil {
				text = *m.Content
			}
			out = append(out, string(*m.ToolStatus)+" "+*m.Name+" "+text)
		}
	}
	return out
}

// SA-62, SA-63, SA-64: a call that is queued while the thread executes joins that
// execution, and returns immediately; while idle it starts one.
func TestQueueToolOnAThread(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	flows := &got[string]{}
	s.on("queue", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		flows.add(in.ExecutionID)
		return nil, in.State.QueueTool(ctx, "probe", map[string]string{"act": "later"}) // does not wait for itself
	})
	later := make(chan struct{}, 2)
	s.on("later", func(_ context.Context, in *runtime.ToolInput) (any, error) {
		flows.add(in.ExecutionID)
		later <- struct{}{}
		return "later", nil
	})
	s.play(st, []one{probe("queue")})
	<-later
	if f := flows.all(); len(f) != 2 || f[0] != f[1] {
		t.Errorf("SA-63: the executions were %v", f)
	}
	if n := s.times(); n != 2 { // after the first call, and after the queued one
		t.Errorf("the model was asked %d times", n)
	}
	if err := st.QueueTool(t.Context(), "probe", struct {
		Act string `json:"act"`
	}{"later"}); err != nil {
		t.Fatal(err)
	}
	<-later
	if f := flows.all(); len(f) != 3 || f[2] == f[0] {
		t.Errorf("SA-64: the executions were %v", f)
	}
	if err := st.QueueTool(t.Context(), "probe", []int{1}); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("arguments that are no object: %v", err)
	}
}

// SA-65, SA-66, SA-67, SA-68: a caller outside calls a tool and waits; no agent is
// asked. A failure is a result, and so is an unknown tool.
func TestInvokeToolFromOutside(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("") // it has no agent, and needs none
	s.on("add", func(context.Context, *runtime.ToolInput) (any, error) { return map[string]int{"sum": 3}, nil })
	s.on("fail", func(context.Context, *runtime.ToolInput) (any, error) { return nil, errors.New("no database") })
	for name, c := range map[string]struct {
		tool string
		args any
		want events.ToolResult
	}{
		"a success":     {"probe", map[string]string{"act": "add"}, events.ToolResult{Status: "success", Result: []byte(`{"sum":3}`)}},
		"a failure":     {"probe", map[string]string{"act": "fail"}, events.ToolResult{Status: "error", Error: "no database"}},
		"an unknown":    {"nothing", nil, events.ToolResult{Status: "error", Error: "tool not found: nothing"}},
		"bad arguments": {"probe", map[string]int{"act": 1}, events.ToolResult{Status: "error", Error: "/act"}},
	} {
		result, err := st.InvokeTool(t.Context(), c.tool, c.args)
		if err != nil || result.Status != c.want.Status || string(result.Result) != string(c.want.Result) || !strings.Contains(result.Error, c.want.Error) {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
	if n := s.times(); n != 0 {
		t.Errorf("an agent was asked %d times", n)
	}
	if doc := must(client.Read(t.Context(), s.latest(), events.GetThread{ThreadID: st.ThreadID()}))(t); doc.Status != events.ThreadOpen {
		t.Errorf("the thread is %s", doc.Status)
	}
	// The caller reads what the call wrote.
	before := len(s.results(st))
	must(st.InvokeTool(t.Context(), "probe", map[string]string{"act": "add"}))(t)
	list := must(st.GetMessages(t.Context(), events.GetMessagesOptions{}))(t)
	if list.Messages[0].Role != events.FromTool || len(s.results(st)) != before+1 {
		t.Errorf("the newest message is %s", written(t, list.Messages[0]))
	}
	// A caller that leaves does not end it.
	entered, leave := make(chan struct{}), make(chan struct{})
	s.on("slow", func(context.Context, *runtime.ToolInput) (any, error) { close(entered); <-leave; return "late", nil })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	if _, err := st.InvokeTool(ctx, "probe", map[string]string{"act": "slow"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that went away: %v", err)
	}
	// A second one waits for the first, and the end of a run without a result is
	// reported.
	second := make(chan events.ToolResult, 1)
	go func() {
		result, _ := st.InvokeTool(t.Context(), "probe", map[string]string{"act": "add"})
		second <- result
	}()
	s.until(st, string(events.QueuePushedType), 7)
	close(leave)
	if r := <-second; r.Status != events.ToolSuccess {
		t.Errorf("the second call: %+v", r)
	}
	s.on("cancelled", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		must(s.Send(t.Context(), in.ThreadID, events.CancelRun{}))(t)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if r, err := st.InvokeTool(t.Context(), "probe", map[string]string{"act": "cancelled"}); err != nil || r.Status != events.ToolError || !strings.Contains(r.Error, "aborted") {
		t.Errorf("a call whose run was cancelled: %+v, %v", r, err)
	}
}

// until waits until a thread has a number of events of a type.
func (s *stage) until(st *client.ThreadState, of string, n int) {
	s.t.Helper()
	timeline := must(s.Timeline(s.t.Context(), client.SubscribeOptions{Thread: st.ThreadID(), Types: []string{of}}))(s.t)
	defer timeline.Close()
	for range n {
		must(timeline.Next(s.t.Context()))(s.t)
	}
}

// SA-65, SA-66, SA-68, SA-77: a tool calls a tool, in place: the arguments are held
// to the schema, what goes wrong is a result, and it is recorded as a span under
// the call from which it was made. None waits for what its own run would have to do.
func TestInvokeToolInATool(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.thread("script")
	s.define(events.ToolDefinition{Name: "colleague", Description: "Another agent.", Type: events.AgentTool, Agent: "broken"},
		events.AgentDefinition{Name: "broken", Type: events.AIHuman, Reactor: "broken"})
	inner := &got[runtime.ToolInput]{}
	s.on("inner", func(_ context.Context, in *runtime.ToolInput) (any, error) {
		inner.add(*in)
		n, _ := in.State.Scratch().Load("n")
		in.State.Scratch().Store("n", 1)
		return n, nil
	})
	s.on("deep", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		r, err := in.State.InvokeTool(ctx, "probe", map[string]string{"act": "deep"})
		if err != nil {
			return nil, err
		}
		return r, nil
	})
	outer := ""
	s.on("outer", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		outer = in.CallID
		for name, c := range map[string]struct {
			tool string
			args any
			want string
		}{
			"an unknown":    {"nothing", nil, "tool not found: nothing"},
			"bad arguments": {"probe", map[string]int{"act": 1}, "/act"},
			"an approval":   {"manual", map[string]string{"act": "inner"}, "approval"},
			"an agent":      {"colleague", nil, "takes the thread over"},
			"too deep":      {"probe", map[string]string{"act": "deep"}, "deep"},
		} {
			r, err := in.State.InvokeTool(ctx, c.tool, c.args)
			if err != nil || r.Status != events.ToolError || !strings.Contains(r.Error, c.want) {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		first := must(in.State.InvokeTool(ctx, "probe", map[string]string{"act": "inner"}))(t)
		second := must(in.State.InvokeTool(ctx, "probe", map[string]string{"act": "inner"}))(t)
		if string(first.Result) != "null" || string(second.Result) != "1" { // they share the store of the run
			t.Errorf("the calls gave %+v and %+v", first, second)
		}
		return "done", nil
	})
	reply := s.begin(st, []one{probe("outer")})
	x := s.end(reply)
	if got := s.results(st); len(got) != 1 || got[0] != "success probe done" {
		t.Errorf("the conversation shows %q", got)
	}
	calls := inner.all()
	if len(calls) != 2 || calls[0].ExecutionID != x.ID || calls[0].Key == calls[1].Key || !strings.HasPrefix(calls[0].CallID, outer+".") {
		t.Errorf("the calls were %+v", calls)
	}
	spans, parents := 0, map[string]string{}
	list := must(client.Read(t.Context(), s.latest(), events.ListEvents{ThreadID: st.ThreadID(), Types: []string{string(events.TraceRecordedType)}}))(t)
	for _, raw := range list.Events {
		d, ok := must(events.DecodeEvent(raw))(t).Data.(events.TraceRecorded)
		if !ok || d.Kind != events.TraceSpanKind {
			continue
		}
		parents[d.SpanID] = d.ParentID
		if strings.Contains(string(d.Data), `"invoked":true`) {
			spans++
		}
	}
	if spans < 7 { // five that failed (one of them at many depths), and two
		t.Errorf("%d calls were recorded", spans)
	}
	for id, parent := range parents {
		if _, known := parents[parent]; !known && !strings.HasPrefix(parent, "stp_") {
			t.Errorf("span %s is under %s, which is none", id, parent)
		}
	}
}

// SA-69: an agent works on the thread, and the caller waits until its run has ended.
func TestRunAgent(t *testing.T) {
	s := newStage(t)
	st := s.thread("")
	before := s.times()
	if err := st.RunAgent(t.Context(), "script"); err != nil { // a reactor of the server's
		t.Fatal(err)
	}
	list := must(st.GetMessages(t.Context(), events.GetMessagesOptions{}))(t)
	if s.times() != before+1 || list.Total != 1 || *list.Messages[0].Content != "done by script" {
		t.Errorf("after the run: %s", written(t, list))
	}
	if st = s.fresh(st); st.AgentID() != "" {
		t.Errorf("the agent was put in charge: %s", st.AgentID())
	}
	s.define(events.AgentDefinition{Name: "defined", Type: events.AIHuman, Reactor: "script"}, events.AgentDefinition{Name: "failing", Type: events.AIHuman, Reactor: "broken"})
	st = s.fresh(st) // what it reads shows the definitions
	if err := st.RunAgent(t.Context(), "defined"); err != nil {
		t.Fatal(err)
	}
	version := must(client.Read(t.Context(), s.latest(), events.GetThread{ThreadID: st.ThreadID()}))(t).Version
	for _, name := range []string{"nobody", "", "no name!"} {
		if err := st.RunAgent(t.Context(), name); events.AsError(err).Code != events.NotFound {
			t.Errorf("an unknown agent %q: %v", name, err)
		}
	}
	if now := must(client.Read(t.Context(), s.latest(), events.GetThread{ThreadID: st.ThreadID()}))(t).Version; now != version {
		t.Errorf("an unknown agent left %d events", now-version)
	}
	var failed *client.RunFailedError
	if err := st.RunAgent(t.Context(), "failing"); !errors.As(err, &failed) || failed.Text != "the model is away" {
		t.Errorf("an agent that fails: %v", err)
	}
	// It waits for an active run, whatever the thread's policy; within a run it is
	// refused.
	entered, leave := make(chan struct{}), make(chan struct{})
	s.on("wait", func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		close(entered)
		<-leave
		start := time.Now()
		err := in.State.RunAgent(ctx, "defined")
		if events.AsError(err).Code != events.IllegalTransition || !strings.Contains(err.Error(), "queue it") || time.Since(start) > 30*time.Second {
			t.Errorf("within a run: %v", err)
		}
		if err := in.State.RunAgent(ctx, "nobody"); events.AsError(err).Code != events.NotFound {
			t.Errorf("within a run, an unknown agent: %v", err)
		}
		return nil, nil
	})
	must(s.Send(t.Context(), st.ThreadID(), events.UpdateThread{Policy: new(events.Reject)}))(t)
	text := `[[{"tool":"probe","args":{"act":"wait"}}]]`
	reply := must(s.Send(t.Context(), st.ThreadID(), events.ReactThread{Text: &text, AgentID: "script"}))(t)
	<-entered
	waited := make(chan error, 1)
	go func() { waited <- st.RunAgent(t.Context(), "defined") }()
	s.until(st, string(events.QueuePushedType), 1)
	close(leave)
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if x := s.end(reply); x.Status != events.ExecutionCompleted {
		t.Errorf("the run before ended %s", x.Status)
	}
}

// SA-4, SA-5, SA-6, SA-8, SA-13: handoffs of several hops stay in one thread, with its
// whole history; the run's tools see who is in charge, and by hand an agent is queued
// as a tool.
func TestHandoffs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, name := range []string{"support", "billing"} {
		s.define(events.ToolDefinition{Name: name, Description: "Takes over.", Type: events.AgentTool, Agent: name}, events.AgentDefinition{Name: name, Type: events.AIHuman, Reactor: "script"})
	}
	st := s.thread("script")
	charge := &got[string]{}
	s.on("who", func(_ context.Context, in *runtime.ToolInput) (any, error) {
		charge.add(in.State.AgentID())
		return nil, nil
	})
	s.play(st, []one{probe("who")}, []one{{Tool: "support"}}, []one{probe("who")}, []one{{Tool: "billing"}}, []one{probe("who")})
	if got := strings.Join(charge.all(), " "); got != "script support billing" {
		t.Errorf("in charge were %s", got)
	}
	st = s.fresh(st)
	list := must(st.GetMessages(t.Context(), asc()))(t)
	if st.AgentID() != "billing" || *list.Messages[0].Content == "" || len(s.results(st)) != 5 {
		t.Errorf("%s has the thread, with %s", st.AgentID(), written(t, list))
	}
	answer := *list.Messages[1].Content
	if answer != "done by billing" {
		t.Errorf("it was answered %q", answer)
	}
	// By hand (SA-6).
	hello := "hello"
	must(st.InjectMessage(t.Context(), events.AddMessage{Role: events.FromUser, Content: &hello}))(t)
	before := list.Total + 1
	if err := st.QueueTool(t.Context(), "support", nil); err != nil {
		t.Fatal(err)
	}
	s.until(st, string(events.ThreadFinishedType), 2)
	if st = s.fresh(st); st.AgentID() != "support" || must(st.GetMessages(t.Context(), asc()))(t).Total <= before {
		t.Errorf("%s has the thread", st.AgentID())
	}
}
