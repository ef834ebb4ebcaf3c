package thread

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/events"
)

// work tells a story as a worker does.
type work struct {
	*story
	execution string
	token     int64
}

// reacting is a thread whose run was claimed, so that its first step is open.
func (k *story) reacting(agent string) *work {
	k.t.Helper()
	made := k.do(events.ReactThread{Text: to("hello"), AgentID: agent})
	w := &work{story: k, execution: k.state.Active()}
	if len(made) == 0 || w.execution == "" {
		k.t.Fatalf("no run began: %v", made)
	}
	w.claim()
	return w
}

func (w *work) claim() []events.Event {
	w.t.Helper()
	made := w.do(ClaimRun{ExecutionID: w.execution, Worker: "w-1"})
	w.token++
	return made
}

func (w *work) run() Run {
	w.t.Helper()
	r, ok := w.state.Run(w.execution)
	if !ok {
		w.t.Fatal("there is no run")
	}
	return r
}

func text(s string) events.JSON { return raw(`{"type":"output_text","text":"` + s + `"}`) }

// reaction makes what a reactor gave: a text, and calls.
func (w *work) reaction(calls ...string) ReactStep {
	d := ReactStep{
		ExecutionID: w.execution, Token: w.token, StepID: w.run().StepID, Parts: []events.JSON{text("so")}, Types: []string{"output_text"},
		After: After{Continue: len(calls) > 0},
	}
	for _, id := range calls {
		c := events.ToolCall{CallID: id, Name: "find", Arguments: raw(`{"n":1}`)}
		part, err := callPart(c)
		if err != nil {
			w.t.Fatal(err)
		}
		d.Calls, d.Parts, d.Types = append(d.Calls, c), append(d.Parts, part), append(d.Types, ToolPart+c.Name)
	}
	return d
}

func (w *work) results(calls ...string) EndCalls {
	d := EndCalls{ExecutionID: w.execution, Token: w.token, StepID: w.run().StepID, After: After{Continue: true}}
	for _, id := range calls {
		d.Results = append(d.Results, CallResult{
			CallID: id, Output: raw(`{"ok":true}`),
			Part: raw(`{"type":"tool-find","toolCallId":"` + id + `","state":"output-available","input":{"n":1},"output":{"ok":true}}`),
		})
	}
	return d
}

// waiting is a run of a dual_ai agent that is parked for an approval of call_1.
func (k *story) waiting() *work {
	k.t.Helper()
	k.do(events.ReactThread{Text: to("hello")})
	w := &work{story: k, execution: k.state.Active(), token: 1}
	k.do(ClaimRun{ExecutionID: w.execution, Worker: "w-1", Side: events.SideA})
	d := w.reaction("call_1")
	d.Approve = []string{"call_1"}
	k.do(d)
	return w
}

func kinds(made []events.Event) string {
	var out []string
	for _, e := range made {
		out = append(out, string(e.Type))
	}
	return strings.Join(out, " ")
}

func wantKinds(t *testing.T, made []events.Event, want string) {
	t.Helper()
	if got := kinds(made); got != strings.Join(strings.Fields(want), " ") {
		t.Errorf("it made\n%s\nnot\n%s", got, strings.Join(strings.Fields(want), " "))
	}
}

// The order of EK 7: EK-109..EK-119.
func TestReactInOrder(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	wantKinds(t, k.do(events.ReactThread{Text: to("hello"), ExecutionID: "exe_1", ReactionItemID: "itm_a"}), `context.resolved item.created
		thread.status.changed context.status.changed execution.created run.requested`)
	w := &work{story: k, execution: "exe_1"}
	wantKinds(t, w.claim(), `run.claimed step.created`)
	wantKinds(t, k.do(w.reaction("call_1", "call_2")), `part.created part.created part.created item.created item.created item.created`)
	wantKinds(t, k.do(w.results("call_2")), `part.updated item.created message.edited`)
	wantKinds(t, k.do(w.results("call_1")), `part.updated item.created message.edited step.status.changed step.created`)
	if r := w.run(); r.Iteration != 1 || len(r.Calls) != 0 || r.Reacted {
		t.Errorf("the second step is %+v", r)
	}
	wantKinds(t, k.do(w.reaction()), `part.created message.edited step.status.changed item.status.changed execution.status.changed
		thread.finished context.status.changed thread.status.changed`)
	if k.state.Status != events.ThreadOpen || k.state.Active() != "" {
		t.Errorf("afterwards the thread is %s, with %q active", k.state.Status, k.state.Active())
	}
	if i, _ := k.state.item("itm_a"); i.Status != events.ItemCompleted {
		t.Errorf("the reaction item is %s", i.Status)
	}
}

// A worker whose claim is not the last writes nothing, and neither does one
// whose run has ended.
func TestFence(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	slow := k.reacting("")
	late := slow.reaction("call_1")
	fast := *slow
	fast.claim()
	refused := func(d any) {
		t.Helper()
		var lost *LostRunError
		if _, err := k.try(k.command(d)); !errors.As(err, &lost) {
			t.Errorf("%T: %v", d, err)
		}
	}
	refused(late)
	refused(slow.results("call_1"))
	refused(HoldCalls{ExecutionID: slow.execution, Token: slow.token})
	refused(FailRun{ExecutionID: slow.execution, Token: slow.token})
	refused(RecordRun{ExecutionID: slow.execution, Token: slow.token})
	k.do(fast.reaction())
	refused(fast.results())
	refused(ClaimRun{ExecutionID: fast.execution})
}

// What becomes of a message that comes while a run is on: C-22, AM-79..AM-84.
func TestPolicies(t *testing.T) {
	busy := func() *work {
		k := newStory(t)
		k.do(events.CreateThread{AgentID: "triage"})
		return k.reacting("")
	}
	t.Run("reject", func(t *testing.T) {
		w := busy()
		var no *events.TransitionError
		_, err := w.try(w.command(events.ReactThread{Text: to("and?"), Policy: events.Reject}))
		if !errors.As(err, &no) && events.AsError(err).Code != events.IllegalTransition {
			t.Error(err)
		}
	})
	t.Run("enqueue", func(t *testing.T) {
		// AM-79: at most five wait. AM-80: one more is not added. AM-81: their ids.
		// AM-82: the message itself waits. AM-83: its number, and none for what is
		// refused. AM-84: first in, first out.
		w := busy()
		for i := range events.MaxQueuedMessages {
			made := w.do(events.ReactThread{Text: to(string(rune('a' + i)))})
			wantKinds(t, made, "queue.pushed")
			d := made[0].Data.(events.QueuePushed)
			id, prefixed := strings.CutPrefix(d.ID, "queued-")
			if !prefixed || uuid.Validate(id) != nil || d.MessageID != int64(i+1) || !strings.Contains(string(d.Item), `"text":"`+string(rune('a'+i))) {
				t.Errorf("message %d waits as %+v", i, d)
			}
		}
		_, err := w.try(w.command(events.ReactThread{Text: to("one too many")}))
		if e := events.AsError(err); e.Code != events.QueueFull {
			t.Error(err)
		}
		if n := w.state.Messages; n != events.MaxQueuedMessages+1 || len(w.state.Queue) != events.MaxQueuedMessages {
			t.Errorf("what was refused took a number: the next one is %d, and %d wait", n, len(w.state.Queue))
		}
		for i := range events.MaxQueuedMessages { // first in, first out, each in the commit that ends the run before it
			made := w.do(w.reaction())
			if !strings.HasSuffix(kinds(made), "queue.drained context.resolved item.created thread.status.changed context.status.changed execution.created run.requested") {
				t.Fatal(kinds(made))
			}
			said := ""
			for _, e := range made {
				if d, ok := e.Data.(events.ItemCreated); ok && d.Role == events.User {
					said += string(d.Content)
				}
			}
			if !strings.Contains(said, `"`+string(rune('a'+i))+`"`) {
				t.Errorf("run %d answers %s", i, said)
			}
			w.execution, w.token = w.state.Active(), 0
			w.claim()
		}
		if made := w.do(w.reaction()); strings.Contains(kinds(made), "queue.drained") || w.state.Active() != "" {
			t.Error(kinds(made))
		}
	})
	t.Run("interrupt", func(t *testing.T) {
		w := busy()
		w.do(events.ReactThread{Text: to("later")})
		wantKinds(t, w.do(events.ReactThread{Text: to("now"), Policy: events.Interrupt}), "queue.pushed run.stopped")
		if r := w.run(); !r.Abort {
			t.Error("it was not aborted")
		}
		made := w.do(w.reaction("call_1")) // what it gave so far is kept (C-26)
		if !strings.HasPrefix(kinds(made), "part.created part.created item.created item.created part.updated item.created message.edited step.status.changed message.edited item.status.changed execution.status.changed thread.finished") {
			t.Error(kinds(made))
		}
		i := slices.IndexFunc(made, func(e events.Event) bool { return e.Type == events.ContextResolvedType })
		if d := made[i+1].Data.(events.ItemCreated); !strings.Contains(string(d.Content), "now") {
			t.Errorf("next is %s", d.Content)
		}
	})
	t.Run("steer", func(t *testing.T) {
		w := busy()
		w.do(events.UpdateThread{Policy: to(events.Steer)})
		last := w.reaction()
		wantKinds(t, w.do(events.ReactThread{Text: to("in Oslo")}), "item.created")
		made := w.do(last)                                                                           // it ends the run, but has not seen the message
		if !strings.HasSuffix(kinds(made), "step.status.changed item.status.changed step.created") { // the next step writes an item of its own
			t.Error(kinds(made))
		}
		if w.do(w.reaction()); w.state.Active() != "" {
			t.Error("the run did not end when the message had been seen")
		}
	})
}

// A failed run leaves the thread failed, and the next one opens it: C-25, C-41,
// C-42.
func TestFailedRun(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	wantKinds(t, k.do(FailRun{ExecutionID: w.execution, Token: w.token, ErrorText: "the model is away"}), `step.status.changed item.created
		item.status.changed execution.status.changed thread.finished context.status.changed thread.status.changed`)
	if k.state.Status != events.ThreadFailed {
		t.Error(k.state.Status)
	}
	wantKinds(t, k.do(events.ReactThread{Text: to("again")}), `context.resolved item.created thread.status.changed thread.status.changed
		context.status.changed execution.created run.requested`)
}

// The text of a failure that is too long for its event is cut between two characters: the
// commit with it can be encoded.
func TestFailRun_LongText(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	made := k.do(FailRun{ExecutionID: w.execution, Token: w.token, ErrorText: "a" + strings.Repeat("é", 3000)})
	if _, err := events.NewCommit("", made); err != nil {
		t.Error(err)
	}
}

// Stop, cancel: SA-148, SA-149, C-26.
func TestStopAndCancel(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	wantKinds(t, k.do(events.StopRun{}), "run.stopped")
	k.do(w.reaction("call_1")) // its calls are not made
	if x, _ := k.state.execution(w.execution); x.Status != events.ExecutionCompleted || k.state.Status != events.ThreadOpen {
		t.Errorf("a stopped run is %s, the thread %s", x.Status, k.state.Status)
	}
	w = k.reacting("")
	k.do(events.CancelRun{})
	k.do(FailRun{ExecutionID: w.execution, Token: w.token, ErrorText: "whatever"})
	if x, _ := k.state.execution(w.execution); x.Status != events.ExecutionFailed || k.state.Status != events.ThreadOpen {
		t.Errorf("a cancelled run is %s, the thread %s", x.Status, k.state.Status)
	}
	if _, err := k.try(k.command(events.StopRun{})); events.AsError(err).Code != events.NotFound {
		t.Error(err)
	}
	// A run that nobody has claimed, and one that waits, end at once.
	k.do(events.ReactThread{Text: to("x")})
	k.do(events.CancelRun{})
	if k.state.Status != events.ThreadOpen {
		t.Error(k.state.Status)
	}
	k.waiting()
	k.do(events.StopRun{})
	if k.state.Status != events.ThreadOpen {
		t.Error(k.state.Status)
	}
}

// A call waits for its approval, held by no worker.
func TestApproval(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	d := w.reaction("call_1", "call_2")
	d.Approve = []string{"call_2"}
	if made := k.do(d); !strings.HasSuffix(kinds(made), "approval.requested") {
		t.Error(kinds(made))
	}
	if made := k.do(w.results("call_1")); !strings.HasSuffix(kinds(made), "run.parked") || !w.run().Parked {
		t.Error(kinds(made))
	}
	if _, err := k.try(k.command(events.GrantApproval{CallID: "call_1"})); events.AsError(err).Code != events.NotFound {
		t.Error(err)
	}
	wantKinds(t, k.do(events.DenyApproval{CallID: "call_2", Comment: "no"}), "approval.denied run.requested")
	wantKinds(t, w.claim(), "run.claimed")
	if r := w.run(); !r.Calls[0].Done || !r.Calls[1].Denied {
		t.Errorf("%+v", r.Calls)
	}
	k.do(w.results("call_2"))
	if w.run().Iteration != 1 {
		t.Error("no step followed")
	}
}

// A call that waits for another agent, on a thread of its own, is completed by that
// agent: nobody can grant, deny or resolve it, and a call that waits for a person is
// not resumed by a thread.
func TestApproval_CallWaitsForThread(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	d := w.reaction("call_1", "call_2")
	d.Approve = []string{"call_2"}
	k.do(d)
	k.do(HoldCalls{ExecutionID: w.execution, Token: w.token, StepID: w.run().StepID, Wait: []string{"call_1"}})
	for name, answer := range map[string]any{
		"grant": events.GrantApproval{CallID: "call_1"}, "deny": events.DenyApproval{CallID: "call_1"},
		"resolve": events.ResolveApproval{CallID: "call_1", Result: raw(`1`)}, "resolve with a grant": events.ResolveApproval{CallID: "call_1", Grant: true},
	} {
		_, err := k.try(k.command(answer))
		if e := events.AsError(err); e.Code != events.InvalidRequest || e.Details == nil || e.Details.Path != "/data/callId" || !strings.Contains(e.Message, "another agent") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := k.try(k.command(ResumeCalls{ExecutionID: w.execution, CallIDs: []string{"call_2"}})); events.AsError(err).Code != events.NotFound {
		t.Errorf("a thread resumed a call that waits for a person: %v", err)
	}
	wantKinds(t, k.do(events.ResolveApproval{CallID: "call_2", Result: raw(`1`)}), "approval.resolved run.requested")
	wantKinds(t, k.do(ResumeCalls{ExecutionID: w.execution, CallIDs: []string{"call_1"}}), "run.resumed")
}

// Calls that callers queue join the active run, and start one on an idle thread: SA-62, SA-63,
// SA-64.
func TestQueueTool(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	made := k.do(events.QueueTool{Name: "find", Arguments: raw(`{"n":1}`), CallID: "call_q"})
	wantKinds(t, made, `queue.pushed queue.drained context.resolved item.created thread.status.changed context.status.changed execution.created run.requested`)
	if d := made[3].Data.(events.ItemCreated); d.Type != events.ActionExecute {
		t.Errorf("the trigger is %s", d.Type)
	}
	w := &work{story: k, execution: k.state.Active()}
	wantKinds(t, w.claim(), "run.claimed step.created part.created item.created")
	if r := w.run(); !r.Reacted || len(r.Calls) != 1 || r.Calls[0].CallID != "call_q" {
		t.Errorf("%+v", r)
	}
	k.do(events.QueueTool{Name: "pay", CallID: "call_r"})
	made = k.do(w.results("call_q"))
	if !strings.HasSuffix(kinds(made), "step.status.changed queue.drained step.created part.created message.edited item.created") {
		t.Error(kinds(made))
	}
	if r := w.run(); len(r.Calls) != 1 || r.Calls[0].Name != "pay" {
		t.Errorf("%+v", r)
	}
}

// A call with once ends its run, does not join the active run, and does not count as a step of
// a reactor: SA-65, SA-139, SA-140.
func TestCallOnce(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	once := func(id string) { k.do(events.QueueTool{Name: "find", CallID: id, Once: true}) }
	once("call_1")
	w := &work{story: k, execution: k.state.Active()}
	w.claim()
	if r := w.run(); len(r.Calls) != 1 || r.Steps != 0 || r.SideASteps != 0 {
		t.Errorf("the run is %+v", r)
	}
	once("call_2") // waits for the end of the first
	if made := k.do(w.results("call_1")); !strings.HasSuffix(kinds(made), "queue.drained context.resolved item.created thread.status.changed context.status.changed execution.created run.requested") {
		t.Error(kinds(made))
	}
	w.execution, w.token = k.state.Active(), 0
	w.claim()
	k.do(w.results("call_2"))
	if k.state.Active() != "" || k.state.Status != events.ThreadOpen {
		t.Errorf("the thread is %s, %q is active", k.state.Status, k.state.Active())
	}
	// One that comes while an agent answers waits for its end; another call joins it.
	w = k.reacting("")
	once("call_3")
	k.do(events.QueueTool{Name: "find", CallID: "call_4"})
	k.do(w.reaction())
	if r := w.run(); len(r.Calls) != 1 || r.Calls[0].CallID != "call_4" || r.Steps != 1 {
		t.Errorf("the second step is %+v", r)
	}
	k.do(w.results("call_4"))
	if r := w.run(); r.Steps != 2 || r.SideASteps != 2 || r.Iteration != 2 {
		t.Errorf("the third step is %+v", r)
	}
	k.do(w.reaction())
	if r := (&work{story: k, execution: k.state.Active()}); r.claim() == nil || len(r.run().Calls) != 1 || r.run().Calls[0].CallID != "call_3" {
		t.Errorf("the next run is %+v", r.run())
	}
	// A message that steers it is answered.
	w = &work{story: k, execution: k.state.Active(), token: 1}
	k.do(events.ReactThread{Text: to("and now?"), Policy: events.Steer})
	k.do(w.results("call_3"))
	if r := w.run(); r.StepID == "" || len(r.Calls) != 0 {
		t.Errorf("it was not steered: %+v", r)
	}
	k.do(w.reaction("call_5"))
	k.do(w.results("call_5"))
	if r := w.run(); r.StepID == "" {
		t.Error("nobody goes on from the call of a reactor")
	}
}

// A run whose reactor nobody serves is parked without a call that waits, and is woken
// once; one that waits for nothing is neither.
func TestPark_ReactorNotServed(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	park, wake := ParkRun{ExecutionID: w.execution, Token: w.token}, WakeRun{ExecutionID: w.execution}
	if _, err := k.try(k.command(park)); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("a run that waits for nothing was parked: %v", err)
	}
	k.do(AwaitWorkers{ExecutionID: w.execution, Token: w.token, For: []events.WaitFor{{Kind: events.ReactorWorker, Name: "triage"}}})
	since := w.run().UnavailableSince
	if _, err := k.try(k.command(wake)); since == 0 || events.AsError(err).Code != events.NotFound {
		t.Errorf("a run that a worker holds was woken: %v; away since %d", err, since)
	}
	wantKinds(t, k.do(park), "run.parked")
	wantKinds(t, k.do(wake), "run.requested")
	if _, err := k.try(k.command(wake)); events.AsError(err).Code != events.NotFound {
		t.Errorf("it was woken twice: %v", err)
	}
	wantKinds(t, w.claim(), "run.claimed")
	if w.run().UnavailableSince != since {
		t.Errorf("the next claim finds it away since %d, and not %d", w.run().UnavailableSince, since)
	}
	park.Token = w.token
	k.do(AwaitWorkers{ExecutionID: w.execution, Token: w.token, For: []events.WaitFor{{Kind: events.ReactorWorker, Name: "triage"}}})
	k.do(park)
	wantKinds(t, k.do(events.CancelRun{})[:1], "run.stopped")
	if r := w.run(); r.Status == events.Executing {
		t.Error("a parked run that was cancelled goes on")
	}
}

// A run whose remaining calls lack a process that serves their tool is parked with those calls
// unmade, so that the next claim may make them; under a later one they may have been made.
func TestPark_ToolNotServed(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	k.do(w.reaction("call_1", "call_2", "call_3"))
	lacks := func(calls ...string) {
		t.Helper()
		var list []events.WaitFor
		for _, c := range calls {
			list = append(list, events.WaitFor{Kind: events.ToolWorker, Name: "find", CallID: c})
		}
		k.do(AwaitWorkers{ExecutionID: w.execution, Token: w.token, For: list})
	}
	park := func(calls ...string) ParkRun { return ParkRun{ExecutionID: w.execution, Token: w.token, Unmade: calls} }
	if _, err := k.try(k.command(park("call_1"))); events.AsError(err).Code != events.NotFound {
		t.Errorf("a call whose tool is served was left unmade: %v", err)
	}
	lacks("call_1")
	since := w.run().Calls[0].UnavailableSince
	lacks("call_1", "call_2")
	if made := k.do(park("call_1", "call_2")); len(made) != 0 {
		t.Errorf("it was parked although call_3 can be made: %s", kinds(made))
	}
	k.do(HoldCalls{ExecutionID: w.execution, Token: w.token, StepID: w.run().StepID, Approve: []events.ApprovalRequested{{
		CallID: "call_3", StepID: w.run().StepID, Name: "find", Arguments: raw(`{}`), Reason: events.ApprovalManual,
	}}})
	wantKinds(t, k.do(park("call_1", "call_2")), "run.parked")
	wantKinds(t, k.do(WakeRun{ExecutionID: w.execution}), "run.requested")
	wantKinds(t, w.claim(), "run.claimed")
	calls := w.run().Calls
	if !calls[0].Fresh || !calls[1].Fresh || calls[2].Fresh || since == 0 || calls[0].UnavailableSince != since {
		t.Errorf("the next claim finds %+v, away since %d", calls, since)
	}
	lacks("call_1", "call_2")
	lacks("call_2") // call_1 is served
	if got := w.run().Calls; got[0].UnavailableSince != 0 || got[1].UnavailableSince == 0 {
		t.Errorf("after call_1 was served: %+v", got)
	}
	w.claim() // that worker died
	if got := w.run().Calls; got[0].Fresh || got[1].Fresh {
		t.Errorf("calls that a worker which died may have made: %+v", got)
	}
}

// A run that lacks an MCP server is parked with its claim: no step begins, and calls that the claim
// could have made stay unmade. Its time counts from the first such claim.
func TestClaim_ServerIsDown(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.ReactThread{Text: to("hello")})
	w := &work{story: k, execution: k.state.Active()}
	lacks := []MissingServer{{WaitFor: events.WaitFor{Kind: events.ToolWorker, Name: "mcp:shop"}, Wait: time.Minute}}
	down := func(wait time.Duration) []events.Event {
		w.token++
		lacks[0].Wait = wait
		return k.do(ClaimRun{ExecutionID: w.execution, Worker: "w-1", Missing: lacks})
	}
	wantKinds(t, down(time.Minute), "run.claimed run.awaited run.parked")
	since := w.run().ServerMissingSince
	wantKinds(t, k.do(WakeRun{ExecutionID: w.execution}), "run.requested")
	wantKinds(t, down(time.Minute), "run.claimed run.awaited run.parked")
	if got := w.run(); since == 0 || got.ServerMissingSince != since || got.StepID != "" {
		t.Errorf("it is down since %d, and not %d: %+v", got.ServerMissingSince, since, got)
	}
	k.do(WakeRun{ExecutionID: w.execution})
	wantKinds(t, down(time.Microsecond), "run.claimed") // its time is over
	wantKinds(t, down(0), "run.claimed")
	wantKinds(t, w.claim(), "run.claimed step.created")
	if got := w.run(); got.ServerMissingSince != 0 {
		t.Errorf("the next step is down since %d", got.ServerMissingSince)
	}

	// A call that was granted while the run was parked is made by the claim that finds the server.
	d := w.reaction("call_1")
	d.Approve = []string{"call_1"}
	k.do(d)
	k.do(events.GrantApproval{CallID: "call_1"})
	for range 2 {
		wantKinds(t, down(time.Minute), "run.claimed run.awaited run.parked")
		k.do(WakeRun{ExecutionID: w.execution})
	}
	w.claim()
	if c := w.run().Calls[0]; !c.Fresh {
		t.Errorf("the call that was granted is %+v", c)
	}
	wantKinds(t, down(time.Minute), "run.claimed run.awaited run.parked")
	if k.do(WakeRun{ExecutionID: w.execution}); w.run().Calls[0].Fresh {
		t.Error("the claim before may have made the call")
	}
}

// A run that lacks an MCP server and is stopped ends, once results of other threads are recorded.
func TestStop_ServerIsDown(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	lack := MissingServer{WaitFor: events.WaitFor{Kind: events.ToolWorker, Name: "mcp:shop"}, Wait: time.Minute}
	k.do(w.reaction("call_1", "call_2"))
	k.do(HoldCalls{ExecutionID: w.execution, Token: w.token, StepID: w.run().StepID, Wait: []string{"call_1"}})
	k.do(ResumeCalls{ExecutionID: w.execution, CallIDs: []string{"call_1"}})
	w.token++
	wantKinds(t, k.do(ClaimRun{ExecutionID: w.execution, Worker: "w-2", Missing: []MissingServer{lack}}), "run.claimed run.awaited run.parked")
	wantKinds(t, k.do(events.StopRun{}), "run.stopped run.requested")
	w.token++
	wantKinds(t, k.do(ClaimRun{ExecutionID: w.execution, Worker: "w-2", Missing: []MissingServer{lack}}), "run.claimed")

	other := newStory(t)
	other.do(events.CreateThread{AgentID: "triage"})
	other.do(events.ReactThread{Text: to("hello")})
	execution := other.state.Active()
	other.do(ClaimRun{ExecutionID: execution, Worker: "w-1", Missing: []MissingServer{lack}})
	if made := kinds(other.do(events.StopRun{})); !strings.Contains(made, "thread.finished") {
		t.Errorf("a run that only waits was stopped with %s", made)
	}
}
