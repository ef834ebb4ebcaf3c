package thread

import (
	"errors"
	"testing"

	"github.com/skein-threads/skein/events"
)

// failed is a thread whose run has failed.
func failed(t *testing.T) *work {
	t.Helper()
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.CreateContext{ID: "ctx_a"})
	k.do(events.ReactThread{Text: to("hello"), ContextID: "ctx_a", AgentID: "billing", ExecutionID: "exe_a"})
	w := &work{story: k, execution: "exe_a"}
	w.claim()
	w.do(FailRun{ExecutionID: "exe_a", Token: w.token, ErrorText: "the model is away"})
	return w
}

// The failed run stays as it is; another execution answers the same item, in the
// same context and by the same agent.
func TestRetryRun_AnswersTheSameItem(t *testing.T) {
	for _, d := range []events.RetryRun{{}, {ExecutionID: "exe_a"}} {
		w := failed(t)
		was, _ := w.state.Run("exe_a")
		made := w.do(d)
		run, ok := w.state.Run(w.state.Active())
		if !ok || run.ExecutionID == "exe_a" || run.ReactionItemID == was.ReactionItemID {
			t.Fatalf("the active run is %+v", run)
		}
		want(t, made,
			fact{events.ContextResolvedType, "ctx_a", "", events.ContextResolved{}},
			fact{events.ThreadStatusChangedType, threadID, "", events.ThreadStatusChanged{From: events.ThreadFailed, To: events.ThreadOpen}},
			fact{events.ThreadStatusChangedType, threadID, "", events.ThreadStatusChanged{From: events.ThreadOpen, To: events.ThreadStreaming}},
			fact{events.ContextStatusChangedType, "ctx_a", run.ExecutionID, events.ContextStatusChanged{From: events.ContextOpen, To: events.ContextStreaming}},
			fact{events.ExecutionCreatedType, run.ExecutionID, run.ExecutionID, events.ExecutionCreated{
				ID: run.ExecutionID, ContextID: "ctx_a", TriggerItemID: was.TriggerItemID, ReactionItemID: run.ReactionItemID, Status: events.Executing,
			}},
			fact{events.RunRequestedType, run.ExecutionID, run.ExecutionID, events.RunRequested{AgentID: "billing", RetryOf: "exe_a"}},
		)
	}
}

// A call of a tool whose run was cancelled before it began is made by the run that
// takes it up again.
func TestRetryRun_KeepsTheCallsThatWereNotMade(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.QueueTool{CallID: "call_q", Name: "find", Once: true})
	k.do(events.CancelRun{})
	made := k.do(events.RetryRun{})
	asked := made[len(made)-1].Data.(events.RunRequested)
	trigger := k.mustRun(t).TriggerItemID
	if len(asked.Calls) != 1 || asked.Calls[0].CallID != "call_q" || asked.Calls[0].ItemID != trigger || !asked.Once {
		t.Errorf("it asks for %+v, with the trigger %s", asked, trigger)
	}
	w := &work{story: k, execution: k.state.Active()}
	w.claim()
	if r := w.run(); len(r.Calls) != 1 || r.Calls[0].CallID != "call_q" {
		t.Errorf("its first step is %+v", r)
	}
}

func (k *story) mustRun(t *testing.T) Run {
	t.Helper()
	r, ok := k.state.Run(k.state.Active())
	if !ok {
		t.Fatal("no run is active")
	}
	return r
}

func TestRetryRun_InTheDefaultContextIfItsOwnWasClosed(t *testing.T) {
	w := failed(t)
	w.do(events.SetContextStatus{ContextID: "ctx_a", To: events.ContextClosed})
	w.do(events.RetryRun{})
	if r := w.mustRun(t); r.ContextID != w.state.ContextID() {
		t.Errorf("it goes on in the context %s", r.ContextID)
	}
}

func TestRetryRun_Refusals(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*work)
		data   events.RetryRun
		code   events.Code
		detail events.ErrorDetails
	}{
		"an execution that never was": {nil, events.RetryRun{ExecutionID: "exe_9"}, events.NotFound, events.ErrorDetails{Entity: "run of execution", ID: "exe_9"}},
		"an execution of somebody outside": {func(w *work) {
			w.do(events.CreateExecution{ID: "exe_b", TriggerItemID: w.trigger("exe_a")})
			w.do(events.SetExecutionStatus{ExecutionID: "exe_b", To: events.ExecutionFailed})
		}, events.RetryRun{ExecutionID: "exe_b"}, events.NotFound, events.ErrorDetails{Entity: "run of execution", ID: "exe_b"}},
		"an active one": {func(w *work) {
			w.do(events.ReactThread{Text: to("again"), ExecutionID: "exe_b"})
		}, events.RetryRun{ExecutionID: "exe_b"}, events.InvalidRequest, events.ErrorDetails{Path: "/data/executionId"}},
		"one after which there was another": {func(w *work) {
			w.do(events.ReactThread{Text: to("again"), ExecutionID: "exe_b"})
			w.do(events.StopRun{})
		}, events.RetryRun{ExecutionID: "exe_a"}, events.InvalidRequest, events.ErrorDetails{Path: "/data/executionId"}},
		"one whose message was deleted": {func(w *work) {
			w.do(events.DeleteMessage{ItemID: w.trigger("exe_a")})
		}, events.RetryRun{}, events.NotFound, events.ErrorDetails{Entity: "item"}},
		"one for which no context is open": {func(w *work) {
			w.do(events.SetContextStatus{ContextID: "ctx_a", To: events.ContextClosed})
			w.do(events.SetContextStatus{To: events.ContextClosed})
		}, events.RetryRun{}, events.IllegalTransition, events.ErrorDetails{Entity: "context", ID: "ctx_a", From: "closed", To: "streaming", Allowed: []string{}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := failed(t)
			if c.before != nil {
				c.before(w)
			}
			if c.detail.Entity == "item" {
				c.detail.ID = w.trigger("exe_a")
			}
			wantRefusal(t, w.refuse(c.data), c.code, c.detail)
		})
	}
	t.Run("the last run has not failed", func(t *testing.T) {
		k := newStory(t)
		k.do(events.CreateThread{AgentID: "triage"})
		w := k.reacting("")
		w.do(w.reaction())
		if e := k.refuse(events.RetryRun{}); e.Code != events.NotFound {
			t.Errorf("refused with %v", e)
		}
	})
	t.Run("it works for a call on another thread", func(t *testing.T) {
		k := newStory(t)
		k.do(events.CreateThread{AgentID: "triage"})
		k.do(ReactFor{ReactThread: events.ReactThread{Text: to("hello"), ExecutionID: "exe_c"}, Parent: events.Parent{ThreadID: otherID, ExecutionID: "exe_p", CallID: "call_p"}})
		w := &work{story: k, execution: "exe_c"}
		w.claim()
		w.do(FailRun{ExecutionID: "exe_c", Token: w.token, ErrorText: "no"})
		wantRefusal(t, k.refuse(events.RetryRun{}), events.InvalidRequest, events.ErrorDetails{Path: "/data/executionId"})
	})
}

func (w *work) trigger(execution string) string {
	x, _ := w.state.execution(execution)
	return x.Trigger
}

// What a run waits for is recorded once, and no more when it is served: by the
// reactor's answer, or by a call's result.
func TestAwaitWorkers(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	reactor := []events.WaitFor{{Kind: events.ReactorWorker, Name: "triage"}}
	await := AwaitWorkers{ExecutionID: w.execution, Token: w.token, For: reactor, Until: (dawn + day).String()}
	want(t, w.do(await), fact{events.RunAwaitedType, w.execution, w.execution, events.RunAwaited{For: reactor, Until: await.Until}})
	if made := w.do(await); len(made) != 0 {
		t.Errorf("asked again, it made %v", made)
	}
	made := w.do(w.reaction("call_1", "call_2"))
	want(t, made[:1], fact{events.RunAwaitedType, w.execution, w.execution, events.RunAwaited{For: []events.WaitFor{}}})

	one := events.WaitFor{Kind: events.ToolWorker, Name: "find", CallID: "call_1"}
	two := events.WaitFor{Kind: events.ToolWorker, Name: "find", CallID: "call_2"}
	await.For = []events.WaitFor{one, two}
	w.do(await)
	made = w.do(w.results("call_1"))
	want(t, made[:1], fact{events.RunAwaitedType, w.execution, w.execution, events.RunAwaited{For: []events.WaitFor{two}}})
	w.claim() // what takes it over asks again
	if made := w.do(w.results("call_2")); made[0].Type == events.RunAwaitedType {
		t.Error("a claim waits for what the one before it lacked")
	}

	stale := await
	var lost *LostRunError
	if _, err := w.try(w.command(stale)); !errors.As(err, &lost) || lost.Token != 1 || lost.Now != 2 || lost.Ended {
		t.Errorf("a stale claim was answered with %v", err)
	}
}

// The settings of a run are kept as long as it can be retried: until another one has ended.
func TestRetryRun_KeepsTheSettings(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	settings := func(execution string) string {
		x, _ := k.state.execution(execution)
		if x.Run.Settings == nil {
			return ""
		}
		return x.Run.Settings.Instructions
	}
	run := func(id string) *work {
		k.do(events.ReactThread{Text: to("hello"), ExecutionID: id, Settings: &events.RunSettings{Instructions: "be brief in " + id}})
		w := &work{story: k, execution: id}
		w.claim()
		return w
	}
	fail := func(w *work) { w.do(FailRun{ExecutionID: w.execution, Token: 1, ErrorText: "the model is away"}) }
	fail(run("exe_1"))
	if settings("exe_1") != "be brief in exe_1" {
		t.Error("a failed run has lost its settings")
	}
	before := k.state.Bytes()
	fail(run("exe_2"))
	if settings("exe_1") != "" || settings("exe_2") != "be brief in exe_2" {
		t.Errorf("after another one has failed: %q, and %q", settings("exe_1"), settings("exe_2"))
	}
	if grown := k.state.Bytes() - before; grown <= 0 || grown > 4096 {
		t.Errorf("another failed run takes %d bytes", grown)
	}
	w := run("exe_3")
	w.do(w.reaction())
	if settings("exe_2") != "" || settings("exe_3") != "" || k.state.head.Failed != "" {
		t.Errorf("after one that ended well: %q, %q, and %q can be retried", settings("exe_2"), settings("exe_3"), k.state.head.Failed)
	}
	fail(run("exe_4"))
	made := k.do(events.RetryRun{})
	if asked := made[len(made)-1].Data.(events.RunRequested); asked.Settings == nil || asked.Settings.Instructions != "be brief in exe_4" {
		t.Errorf("it is retried with %+v", asked.Settings)
	}
}
