package thread

import (
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// What begins a run, event by event, with the ids that the caller brought and the
// text as it was said.
func TestReact_Events(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{})
	ctx := k.state.ContextID()
	made := k.do(events.ReactThread{Text: to("say \"é<\n"), AgentID: "triage", ExecutionID: "exe_a", ReactionItemID: "itm_a"})
	trigger := made[1].Subject
	want(t, made,
		fact{events.ContextResolvedType, ctx, "", events.ContextResolved{}},
		fact{events.ItemCreatedType, trigger, "", events.ItemCreated{
			ID: trigger, ContextID: ctx, Type: events.Message, Role: events.User, Status: events.ItemStored,
			Content: raw(`[{"type":"input_text","text":"say \"é<\n"}]`), MessageID: to(int64(0)),
		}},
		fact{events.ThreadStatusChangedType, threadID, "", events.ThreadStatusChanged{From: events.ThreadOpen, To: events.ThreadStreaming}},
		fact{events.ContextStatusChangedType, ctx, "exe_a", events.ContextStatusChanged{From: events.ContextOpen, To: events.ContextStreaming}},
		fact{events.ExecutionCreatedType, "exe_a", "exe_a", events.ExecutionCreated{
			ID: "exe_a", ContextID: ctx, TriggerItemID: trigger, ReactionItemID: "itm_a", Status: events.Executing,
		}},
		fact{events.RunRequestedType, "exe_a", "exe_a", events.RunRequested{AgentID: "triage"}},
	)
	if r := k.mustRun(t); r.Begun != made[0].Time || r.Wanted != k.state.Version || r.NextItem != 1 || r.Token != 0 || r.Agent != "triage" {
		t.Errorf("the run is %+v", r)
	}
}

// A context in which somebody streams already is not told to.
func TestReact_InAStreamingContext(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.SetContextStatus{To: events.ContextStreaming})
	wantKinds(t, k.do(events.ReactThread{Text: to("hello")}), "context.resolved item.created thread.status.changed execution.created run.requested")
}

func TestReact_Refusals(t *testing.T) {
	item := events.UserText("hello")
	same := item
	same.ID = "itm_x"
	for name, c := range map[string]struct {
		data   events.ReactThread
		code   events.Code
		detail events.ErrorDetails
	}{
		"nothing to answer":          {events.ReactThread{AgentID: "a"}, events.InvalidRequest, events.ErrorDetails{Path: "/data/item"}},
		"two things to answer":       {events.ReactThread{AgentID: "a", Text: to("x"), Item: &item}, events.InvalidRequest, events.ErrorDetails{Path: "/data"}},
		"no agent":                   {events.ReactThread{Text: to("x")}, events.InvalidRequest, events.ErrorDetails{Path: "/data/agentId"}},
		"no such context":            {events.ReactThread{AgentID: "a", Text: to("x"), ContextID: "ctx_9"}, events.NotFound, events.ErrorDetails{Entity: "context", ID: "ctx_9"}},
		"an execution that is there": {events.ReactThread{AgentID: "a", Text: to("x"), ExecutionID: "exe_1"}, events.AlreadyExists, events.ErrorDetails{Entity: "execution", ID: "exe_1"}},
		"an answer that is there":    {events.ReactThread{AgentID: "a", Text: to("x"), ReactionItemID: "itm_user"}, events.AlreadyExists, events.ErrorDetails{Entity: "item", ID: "itm_user"}},
		"an answer that is the item": {events.ReactThread{AgentID: "a", Item: &same, ReactionItemID: "itm_x"}, events.AlreadyExists, events.ErrorDetails{Entity: "item", ID: "itm_x"}},
	} {
		k := newStory(t)
		k.do(events.CreateThread{})
		k.do(message("itm_user", "hello"))
		k.do(events.CreateExecution{ID: "exe_1", TriggerItemID: "itm_user"})
		wantRefusalOf(t, name, k.refuse(c.data), c.code, c.detail)
		k.do(events.SetThreadStatus{To: events.ThreadStreaming}) // and so while it is busy
		wantRefusalOf(t, name+", busy", k.refuse(c.data), c.code, c.detail)
	}
}

func wantRefusalOf(t *testing.T, name string, got *events.Error, code events.Code, details events.ErrorDetails) {
	t.Helper()
	t.Run(name, func(t *testing.T) { wantRefusal(t, got, code, details) })
}

// The message's own policy goes first, then the thread's, then that of the agent
// that works; without any, it waits.
func TestReact_PolicyInOrder(t *testing.T) {
	for _, c := range []struct {
		own, thread, agent events.Policy
		refused            bool
	}{
		{"", "", "", false},
		{"", "", events.Reject, true},
		{"", events.Enqueue, events.Reject, false},
		{"", events.Reject, events.Enqueue, true},
		{events.Enqueue, events.Reject, events.Reject, false},
		{events.Reject, events.Enqueue, events.Enqueue, true},
	} {
		w := atWork(t)
		if c.thread != "" {
			w.do(events.UpdateThread{Policy: to(c.thread)})
		}
		cmd := w.command(events.ReactThread{Text: to("and?"), Policy: c.own})
		cmd.Policy = c.agent
		made, err := w.try(cmd)
		switch {
		case !c.refused:
			wantKinds(t, made, "queue.pushed")
		case err == nil:
			t.Errorf("%+v: it made %s", c, kinds(made))
		default:
			wantRefusal(t, events.AsError(err), events.IllegalTransition, events.ErrorDetails{
				Entity: "thread", ID: threadID, From: "streaming", To: "streaming", Allowed: []string{"open", "closed", "failed"},
			})
			if !strings.Contains(err.Error(), "a run is in progress, and the policy is reject: wait for its end") {
				t.Errorf("%+v: it does not say what to do: %v", c, err)
			}
		}
	}
}

// Where somebody outside streams there is no run to stop or to steer: the message
// waits, an interrupting one in front.
func TestReact_WhileAClientStreams(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.SetThreadStatus{To: events.ThreadStreaming})
	for _, policy := range []events.Policy{events.Enqueue, events.Steer, events.Interrupt} {
		made := k.do(events.ReactThread{Text: to(string(policy)), Policy: policy})
		wantKinds(t, made, "queue.pushed")
		if first := made[0].Data.(events.QueuePushed).First; first != (policy == events.Interrupt) {
			t.Errorf("%s: first %v", policy, first)
		}
	}
	if first := k.state.Queued()[0]; !strings.Contains(string(first.Item), "interrupt") {
		t.Errorf("in front waits %s", first.Item)
	}
}

// What waits holds all that its run needs.
func TestReact_QueuedEvent(t *testing.T) {
	w := atWork(t)
	w.do(events.CreateContext{ID: "ctx_a"})
	item := events.UserText("later")
	item.ID = "itm_later"
	made := w.do(events.ReactThread{Item: &item, ContextID: "ctx_a", AgentID: "billing", ExecutionID: "exe_b", ReactionItemID: "itm_b"})
	id := made[0].Subject
	want(t, made, fact{events.QueuePushedType, id, "", events.QueuePushed{
		ID: id, Item: raw(`{"id":"itm_later","type":"message","role":"user","content":[{"type":"input_text","text":"later"}]}`),
		ContextID: "ctx_a", AgentID: "billing", MessageID: 1, ExecutionID: "exe_b", ReactionItemID: "itm_b",
	}})
	if derived := "queued-" + events.EventID(tenant, threadID, made[0].CommandID, -1); id != derived {
		t.Errorf("it waits as %s, and not as %s", id, derived)
	}
	got := w.state.Queued()
	if len(got) != 1 || got[0].ID != id || got[0].ContextID != "ctx_a" || got[0].AgentID != "billing" || got[0].MessageID != 1 || got[0].ExecutionID != "exe_b" || got[0].ReactionItemID != "itm_b" {
		t.Errorf("what waits is %+v", got)
	}
	ended := w.do(w.reaction())
	want(t, ended[len(ended)-7:len(ended)-5],
		fact{events.QueueDrainedType, id, "", events.QueueDrained{IDs: []string{id}}},
		fact{events.ContextResolvedType, "ctx_a", "", events.ContextResolved{}})
	if r := w.mustRun(t); r.ExecutionID != "exe_b" || r.ReactionItemID != "itm_b" || r.TriggerItemID != "itm_later" || r.ContextID != "ctx_a" || r.Agent != "billing" {
		t.Errorf("the next run is %+v", r)
	}
}

// Messages that wait are counted; calls of tools that wait are not among them.
func TestReact_QueueLimitCountsMessages(t *testing.T) {
	w := atWork(t)
	for range events.MaxQueuedMessages + 1 {
		w.do(events.QueueTool{Name: "find", Once: true})
	}
	for range events.MaxQueuedMessages {
		w.do(events.ReactThread{Text: to("x")})
	}
	if e := w.refuse(events.ReactThread{Text: to("x")}); e.Code != events.QueueFull {
		t.Errorf("refused with %v", e)
	}
	if e := w.refuse(events.ReactThread{Text: to("x"), Policy: events.Interrupt}); e.Code != events.QueueFull {
		t.Errorf("refused with %v", e)
	}
}

// A message that steers is an item of the run; what follows it in the same commit
// is not. It is refused where the run's context is closed.
func TestReact_Steers(t *testing.T) {
	w := atWork(t)
	made := w.do(events.ReactThread{Text: to("in Oslo"), Policy: events.Steer}, message("itm_n", "x"))
	steering, next := made[0].Data.(events.ItemCreated), made[1].Data.(events.ItemCreated)
	if steering.ReactionItemID == "" || steering.ReactionItemID == "itm_a" || made[0].Correlation != "exe_a" || next.ReactionItemID != "" || made[1].Correlation != "" {
		t.Errorf("it made %+v", facts(made))
	}
	w.do(events.SetContextStatus{To: events.ContextClosed})
	wantRefusal(t, w.refuse(events.ReactThread{Text: to("x"), Policy: events.Steer}), events.IllegalTransition,
		events.ErrorDetails{Entity: "context", ID: w.state.ContextID(), From: "closed", Allowed: []string{}})
}

// What waits goes to the default context if its own was closed meanwhile, and
// waits on if no context can take it; a call of a tool goes before messages.
func TestNext_WaitsForAnOpenContext(t *testing.T) {
	w := atWork(t)
	w.do(events.CreateContext{ID: "ctx_a"})
	w.do(events.ReactThread{Text: to("for ctx_a"), ContextID: "ctx_a", ExecutionID: "exe_b"})
	w.do(events.QueueTool{CallID: "call_q", Name: "find", Once: true})
	w.do(events.SetContextStatus{ContextID: "ctx_a", To: events.ContextClosed})
	w.do(w.reaction())
	if r := w.mustRun(t); r.ContextID != w.state.ContextID() || len(w.state.Queue) != 1 || w.state.Queue[0].ID == "call_q" {
		t.Errorf("the run is %+v, and %+v waits", r, w.state.Queued())
	}
	w.execution, w.token = w.state.Active(), 0
	w.claim()
	w.do(w.results("call_q"))
	if r := w.mustRun(t); r.ExecutionID != "exe_b" || r.ContextID != w.state.ContextID() {
		t.Errorf("the run is %+v", r)
	}

	w = atWork(t)
	w.do(events.ReactThread{Text: to("later")})
	w.do(events.SetContextStatus{To: events.ContextClosed})
	w.do(w.reaction())
	if w.state.Active() != "" || len(w.state.Queue) != 1 {
		t.Errorf("%q is active, and %d wait", w.state.Active(), len(w.state.Queue))
	}
}

// Nothing that waits begins as long as a thread streams; it begins when somebody opens the thread,
// and is removed when somebody closes it: nothing runs there any more, and no call is queued.
func TestNext_WhenTheThreadIsFree(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.SetThreadStatus{To: events.ThreadStreaming})
	k.do(events.ReactThread{Text: to("later"), ExecutionID: "exe_later"})
	k.do(events.QueueTool{Name: "find"})
	made := k.do(events.SetThreadStatus{To: events.ThreadClosed})
	if got := kinds(made); got != "thread.status.changed queue.removed queue.removed" || k.state.Active() != "" || len(k.state.Queue) != 0 {
		t.Errorf("closing made %s; %q is active, and %d wait", got, k.state.Active(), len(k.state.Queue))
	}
	if d, _ := made[1].Data.(events.QueueRemoved); d.ExecutionID != "exe_later" {
		t.Errorf("removed: %+v", made[1].Data)
	}
	for _, once := range []bool{false, true} {
		wantRefusal(t, k.refuse(events.QueueTool{Name: "find", Once: once}), events.IllegalTransition,
			events.ErrorDetails{Entity: "thread", ID: k.command().ThreadID, From: "closed", To: "streaming", Allowed: []string{}})
	}
	for _, end := range []events.ThreadStatus{events.ThreadOpen, events.ThreadFailed} {
		k := newStory(t)
		k.do(events.CreateThread{AgentID: "triage"})
		k.do(events.SetThreadStatus{To: events.ThreadStreaming})
		k.do(events.ReactThread{Text: to("later")})
		made := kinds(k.do(events.SetThreadStatus{To: end}))
		if k.state.Active() == "" || !strings.HasPrefix(made, "thread.status.changed queue.drained") {
			t.Errorf("with the thread %s it made %s", end, made)
		}
	}
}

// An empty text is none.
func TestReact_EmptyText(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	wantRefusal(t, k.refuse(events.ReactThread{Text: to("")}), events.InvalidRequest, events.ErrorDetails{Path: "/data/item"})
	item := events.UserText("hello")
	k.do(events.ReactThread{Text: to(""), Item: &item})
}

// A caller does not move a thread whose run Skein executes: another run would begin next to it.
func TestSetThreadStatus_DuringARun(t *testing.T) {
	w := atWork(t)
	w.do(events.ReactThread{Text: to("later")})
	for _, to := range []events.ThreadStatus{events.ThreadOpen, events.ThreadFailed, events.ThreadClosed} {
		if e := w.refuse(events.SetThreadStatus{To: to}); e.Code != events.IllegalTransition || !strings.Contains(e.Message, "exe_a") || !strings.Contains(e.Message, "run.stop") {
			t.Errorf("%s: refused with %v", to, e)
		}
	}
}

// A call has an id of its own, among those that wait and those of the open step; one that an older
// version has queued twice is made once.
func TestQueueTool_SameID(t *testing.T) {
	w := atWork(t)
	w.do(events.QueueTool{CallID: "call_q", Name: "find"})
	taken := events.ErrorDetails{Entity: "call", ID: "call_q"}
	wantRefusal(t, w.refuse(events.QueueTool{CallID: "call_q", Name: "pay", Once: true}), events.AlreadyExists, taken)
	w.do(w.reaction())
	wantRefusal(t, w.refuse(events.QueueTool{CallID: "call_q", Name: "find"}), events.AlreadyExists, taken)

	w = atWork(t)
	pushed := w.do(events.QueueTool{CallID: "call_q", Name: "find"})[0]
	Evolve(w.state, &pushed)
	if len(w.state.Queue) != 2 {
		t.Fatalf("%d wait", len(w.state.Queue))
	}
	made, err := Decide(w.state, w.command(w.reaction()))
	calls := slices.DeleteFunc(slices.Clone(made), func(e events.Event) bool {
		d, ok := e.Data.(events.ItemCreated)
		return !ok || d.Type != events.ActionExecute
	})
	if err != nil || len(calls) != 1 {
		t.Errorf("%d calls are made: %s, %v", len(calls), kinds(made), err)
	}
}

// A waiting item whose parent was deleted meanwhile begins without one; an agent
// that was not named is the one in charge when it begins.
func TestNext_WhatIsGone(t *testing.T) {
	w := atWork(t)
	w.do(message("itm_p", "x"))
	item := events.UserText("later")
	item.ParentItemID = "itm_p"
	kept := events.UserText("last")
	kept.ParentItemID = w.trigger("exe_a")
	w.do(events.ReactThread{Item: &item})
	w.do(events.ReactThread{Item: &kept})
	w.do(events.DeleteMessage{ItemID: "itm_p"})
	w.do(events.AssignAgent{AgentID: "billing"})
	for _, parent := range []string{"", kept.ParentItemID} {
		made := w.do(w.reaction())
		r := w.mustRun(t)
		if r.Agent != "billing" {
			t.Errorf("the agent is %s", r.Agent)
		}
		found := false
		for _, e := range made {
			if d, ok := e.Data.(events.ItemCreated); ok && d.ID == r.TriggerItemID {
				found = true
				if d.ParentItemID != parent {
					t.Errorf("its parent is %q, want %q", d.ParentItemID, parent)
				}
			}
		}
		if !found {
			t.Errorf("its item was not made: %s", kinds(made))
		}
		w.execution, w.token = r.ExecutionID, 0
		w.claim()
	}
}

// A call that is queued waits with its own id, or one that is derived, and with
// arguments; it names the agent that goes on from there.
func TestQueueTool_Events(t *testing.T) {
	w := atWork(t)
	made := w.do(events.QueueTool{CallID: "call_q", Name: "find", Arguments: raw(`{"n":1}`), AgentID: "billing", Once: true})
	d := made[0].Data.(events.QueuePushed)
	q, err := w.state.Queue[0].item()
	if err != nil {
		t.Fatal(err)
	}
	if d.ID != "call_q" || made[0].Subject != "call_q" || d.AgentID != "billing" || !d.Once || d.MessageID != 0 || d.ExecutionID != "" ||
		string(q.Content) != `{"callId":"call_q","name":"find","arguments":{"n":1}}` || q.Type != events.ActionExecute || q.Status != events.ItemCompleted || q.ID == "" {
		t.Errorf("it waits as %+v", d)
	}
	made = w.do(events.QueueTool{Name: "find"})
	if d := made[0].Data.(events.QueuePushed); !strings.HasPrefix(d.ID, "call_") || !strings.Contains(string(d.Item), `"arguments":{}`) || d.Once {
		t.Errorf("it waits as %+v", d)
	}
	if w.state.Messages != 1 {
		t.Errorf("a call takes a message's number: the next is %d", w.state.Messages)
	}
}
