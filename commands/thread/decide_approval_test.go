package thread

import (
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// asking is a run whose call_1 waits for an approval, and whose call_2 does not.
func asking(t *testing.T) *work {
	t.Helper()
	w := atWork(t)
	d := w.reaction("call_1", "call_2")
	d.Approve = []string{"call_1"}
	made := w.do(d)
	want(t, made[len(made)-1:], fact{events.ApprovalRequestedType, "call_1", "exe_a", events.ApprovalRequested{
		CallID: "call_1", StepID: d.StepID, Name: "find", Arguments: raw(`{"n":1}`), Reason: events.ApprovalManual,
	}})
	return w
}

// phases returns how a worker sees the run's calls.
func (w *work) phases() string {
	var out []string
	for _, c := range w.run().Calls {
		is := "open"
		for name, so := range map[string]bool{"waits": c.Waits, "granted": c.Granted && !c.Fresh, "granted afresh": c.Fresh, "denied": c.Denied, "solved": c.Solved, "ended": c.Ended, "done": c.Done} {
			if so {
				is = name
			}
		}
		out = append(out, is)
	}
	return strings.Join(out, ", ")
}

func (w *work) wantPhases(want string) {
	w.t.Helper()
	if got := w.phases(); got != want {
		w.t.Errorf("the calls are %s, want %s", got, want)
	}
}

// Each answer to a request is recorded as it was given, and the call stands so; a
// run that a worker holds is not asked for again.
func TestApproval_Answers(t *testing.T) {
	for _, c := range []struct {
		answer any
		event  fact
		phase  string
	}{
		{events.GrantApproval{CallID: "call_1", Arguments: raw(`{"n":2}`), Comment: "fine"},
			fact{events.ApprovalGrantedType, "call_1", "exe_a", events.ApprovalGranted{CallID: "call_1", Arguments: raw(`{"n":2}`), Comment: "fine"}}, "granted afresh"},
		{events.DenyApproval{CallID: "call_1", Comment: "no"},
			fact{events.ApprovalDeniedType, "call_1", "exe_a", events.ApprovalDenied{CallID: "call_1", Comment: "no"}}, "denied"},
		{events.ResolveApproval{CallID: "call_1", Grant: true, Arguments: raw(`{"n":2}`), Reason: "fine"},
			fact{events.ApprovalGrantedType, "call_1", "exe_a", events.ApprovalGranted{CallID: "call_1", Arguments: raw(`{"n":2}`), Comment: "fine"}}, "granted afresh"},
		{events.ResolveApproval{CallID: "call_1", Deny: true, Reason: "no"},
			fact{events.ApprovalDeniedType, "call_1", "exe_a", events.ApprovalDenied{CallID: "call_1", Comment: "no"}}, "denied"},
		{events.ResolveApproval{CallID: "call_1", Result: raw(`{"ok":true}`)},
			fact{events.ApprovalResolvedType, "call_1", "exe_a", events.ApprovalResolved{CallID: "call_1", Result: raw(`{"ok":true}`)}}, "solved"},
	} {
		w := asking(t)
		w.wantPhases("waits, open")
		want(t, w.do(c.answer), c.event)
		w.wantPhases(c.phase + ", open")
		want(t, w.do(c.answer)) // a repeat
		other := []any{
			events.GrantApproval{CallID: "call_1"}, events.DenyApproval{CallID: "call_1", Comment: "never"}, events.GrantApproval{CallID: "call_1", Arguments: raw(`{"n":3}`)},
			events.ResolveApproval{CallID: "call_1", Result: raw(`{"ok":false}`)},
		}
		for _, d := range other {
			wantRefusal(t, w.refuse(d), events.IllegalTransition, events.ErrorDetails{Entity: "answered call", ID: "call_1"})
		}
		// Also when its run has ended.
		w.claim()
		w.do(events.CancelRun{})
		want(t, w.do(c.answer))
		for _, d := range other {
			wantRefusal(t, w.refuse(d), events.IllegalTransition, events.ErrorDetails{Entity: "answered call", ID: "call_1"})
		}
		// Answered while it was parked, the run goes on, with its own agent.
		w = asking(t)
		w.do(w.results("call_2"))
		want(t, w.do(c.answer), c.event, fact{events.RunRequestedType, "exe_a", "exe_a", events.RunRequested{AgentID: "triage"}})
		if w.run().Parked {
			t.Error("it is still parked")
		}
	}
}

// A call that was granted while a worker held it may have been begun by that one;
// granted while nobody held it, it is the next claim's.
func TestApproval_GrantedForAClaim(t *testing.T) {
	w := asking(t)
	w.do(events.GrantApproval{CallID: "call_1"})
	w.wantPhases("granted afresh, open")
	w.claim()
	w.wantPhases("granted, open")

	w = asking(t)
	w.do(w.results("call_2"))
	w.do(events.GrantApproval{CallID: "call_1"})
	w.wantPhases("granted, done")
	w.claim()
	w.wantPhases("granted afresh, done")
	w.claim()
	w.wantPhases("granted, done")
}

// What waits for no approval, and what no run waits with, is not found.
func TestApproval_NotFound(t *testing.T) {
	k := begun(t) // somebody outside runs the execution
	answers := []any{
		events.GrantApproval{CallID: "call_2"}, events.DenyApproval{CallID: "call_2"}, events.ResolveApproval{CallID: "call_2", Result: raw(`1`)},
		events.ResolveApproval{CallID: "call_2", Grant: true}, events.ResolveApproval{CallID: "call_2", Deny: true},
	}
	for _, s := range []*story{k, asking(t).story} {
		for _, d := range answers {
			wantRefusal(t, s.refuse(d), events.NotFound, events.ErrorDetails{Entity: "waiting call", ID: "call_2"})
		}
	}
}

// Calls that wait for something else let the run be parked with those that wait
// for an approval, and go on when it has come about.
func TestHoldCalls_AndResume(t *testing.T) {
	w := atWork(t)
	w.do(w.reaction("call_1", "call_2", "call_3"))
	step := w.run().StepID
	hold := HoldCalls{ExecutionID: "exe_a", Token: 1, StepID: step, Wait: []string{"call_2", "call_3"}}
	want(t, w.do(hold), fact{events.RunSuspendedType, "exe_a", "exe_a", events.RunSuspended{Calls: []string{"call_2", "call_3"}}})
	w.wantPhases("open, waits, waits")
	asked := events.ApprovalRequested{CallID: "call_1", StepID: step, Name: "find", Reason: events.ApprovalMayHaveRun}
	want(t, w.do(HoldCalls{ExecutionID: "exe_a", Token: 1, StepID: step, Approve: []events.ApprovalRequested{asked}}),
		fact{events.ApprovalRequestedType, "call_1", "exe_a", asked},
		fact{events.RunParkedType, "exe_a", "exe_a", events.RunParked{Token: 1, Calls: []string{"call_1", "call_2", "call_3"}}})
	resume := ResumeCalls{CallIDs: []string{"call_2"}}
	want(t, w.do(resume),
		fact{events.RunResumedType, "exe_a", "exe_a", events.RunResumed{Calls: []string{"call_2"}}},
		fact{events.RunRequestedType, "exe_a", "exe_a", events.RunRequested{AgentID: "triage"}})
	w.wantPhases("waits, ended, waits")
	wantRefusal(t, w.refuse(resume), events.NotFound, events.ErrorDetails{Entity: "waiting call", ID: "call_2"})
	wantRefusal(t, w.refuse(ResumeCalls{ExecutionID: "exe_a", CallIDs: []string{"call_3", "call_9"}}), events.NotFound, events.ErrorDetails{Entity: "waiting call", ID: "call_9"})
	w.claim()
	want(t, w.do(ResumeCalls{ExecutionID: "exe_a", CallIDs: []string{"call_3"}}), // a worker holds it
		fact{events.RunResumedType, "exe_a", "exe_a", events.RunResumed{Calls: []string{"call_3"}}})
	if e := begun(t).refuse(resume); e.Code != events.NotFound {
		t.Errorf("refused with %v", e)
	}
}

// A run is parked when all that is left of its step waits, and not before, nor when
// nothing waits.
func TestPark_OnlyWhenAllCallsWait(t *testing.T) {
	for name, c := range map[string]struct {
		answer any
		parked bool
	}{
		"nothing was answered": {nil, true},
		"a grant":              {events.GrantApproval{CallID: "call_1"}, false},
		"a refusal":            {events.DenyApproval{CallID: "call_1"}, false},
		"a result":             {events.ResolveApproval{CallID: "call_1", Result: raw(`1`)}, false},
	} {
		w := atWork(t)
		d := w.reaction("call_1", "call_2", "call_3")
		d.Approve = []string{"call_1", "call_3"}
		w.do(d)
		if c.answer != nil {
			w.do(c.answer)
		}
		w.do(w.results("call_2"))
		if w.run().Parked != c.parked {
			t.Errorf("%s: parked %v", name, w.run().Parked)
		}
	}
	w := atWork(t)
	w.do(w.reaction("call_1"))
	if made := w.do(HoldCalls{ExecutionID: "exe_a", Token: 1, StepID: w.run().StepID}); len(made) != 0 {
		t.Errorf("holding nothing made %v", kinds(made))
	}
}

// Arguments that the tool does not take are refused, with their place, and the call waits on. A
// process that does not know the tool's parameters leaves the check to the run.
func TestApproval_ArgumentsMustFit(t *testing.T) {
	for _, answer := range []any{
		events.GrantApproval{CallID: "call_1", Arguments: raw(`{"n":2}`)}, events.ResolveApproval{CallID: "call_1", Grant: true, Arguments: raw(`{"n":2}`)},
	} {
		w := asking(t)
		try := func(of Called, wrong error) error {
			c := w.command(answer)
			c.Takes = map[Called]func(events.JSON) error{of: func(events.JSON) error { return wrong }}
			_, err := w.try(c)
			return err
		}
		find := Called{Agent: "triage", Tool: "find"}
		err := try(find, errors.New("/n: it is 2"))
		if err == nil {
			t.Fatalf("%+v was done", answer)
		}
		wantRefusal(t, events.AsError(err), events.InvalidRequest, events.ErrorDetails{Path: "/data/arguments"})
		if !strings.Contains(err.Error(), "the tool find: /n: it is 2") {
			t.Errorf("%v", err)
		}
		w.wantPhases("waits, open")
		if err := try(Called{Tool: "find"}, errors.New("another tool")); err != nil {
			t.Error(err)
		}
	}
}
