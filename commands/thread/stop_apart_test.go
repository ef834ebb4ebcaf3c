package thread

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// apart is a run whose calls wait: call_1 for a run on another thread, the others, if there are
// any, for a person.
func apart(t *testing.T, others ...string) *work {
	t.Helper()
	w := atWork(t)
	d := w.reaction(append([]string{"call_1"}, others...)...)
	d.Approve = others
	w.do(d)
	w.do(HoldCalls{ExecutionID: "exe_a", Token: w.token, StepID: w.run().StepID, Wait: []string{"call_1"}})
	return w
}

// A run that is to stop ends with the result of the run on another thread that its call waits for,
// and not before. People may no longer answer it, and it does not wait for them.
func TestStopRun_WaitsForOtherThreads(t *testing.T) {
	w := apart(t, "call_2")
	if !w.run().Parked {
		t.Fatal("it does not wait")
	}
	for range 2 {
		wantKinds(t, w.do(events.StopRun{Reason: "enough"}), "run.stopped")
	}
	for _, d := range []any{events.GrantApproval{CallID: "call_2"}, events.DenyApproval{CallID: "call_2"}, events.ResolveApproval{CallID: "call_2", Result: raw(`1`)}, WakeRun{ExecutionID: "exe_a"}} {
		if e := w.refuse(d); e.Code != events.NotFound {
			t.Errorf("%T is refused with %v", d, e)
		}
	}
	if r := w.run(); r.Status != events.Executing || !r.Parked || !r.Stop {
		t.Errorf("the run is %+v", r)
	}
	wantKinds(t, w.do(ResumeCalls{CallIDs: []string{"call_1"}}), "run.resumed run.requested")
	wantKinds(t, w.claim(), "run.claimed")
	if made := w.do(ParkRun{ExecutionID: "exe_a", Token: w.token}); len(made) > 0 { // there is a result to record
		t.Errorf("it made %s", kinds(made))
	}
	made := kinds(w.do(w.results("call_1")))
	if !strings.Contains(made, "part.updated") || !strings.Contains(made, "thread.finished") || strings.Contains(made, "run.parked") {
		t.Errorf("the result made %s", made)
	}
	if x, _ := w.state.execution("exe_a"); x.Status != events.ExecutionCompleted {
		t.Errorf("it is %s", x.Status)
	}
}

// A call that a dead worker has left does not keep a run that is to stop: it waits for the other
// thread alone, and ends then.
func TestStopRun_LeavesCallsOfADeadWorker(t *testing.T) {
	w := atWork(t)
	w.do(w.reaction("call_1", "call_2"))
	w.do(HoldCalls{ExecutionID: "exe_a", Token: 1, StepID: w.run().StepID, Wait: []string{"call_1"}})
	w.do(events.StopRun{})
	wantKinds(t, w.claim(), "run.claimed")
	wantKinds(t, w.do(ParkRun{ExecutionID: "exe_a", Token: w.token}), "run.parked")
	w.do(ResumeCalls{CallIDs: []string{"call_1"}})
	w.claim()
	wantKinds(t, w.do(w.results("call_1")), "part.updated item.created message.edited")
	if made := kinds(w.do(ParkRun{ExecutionID: "exe_a", Token: w.token})); !strings.Contains(made, "thread.finished") {
		t.Errorf("it made %s", made)
	}
}

// A run that is cancelled waits for nothing, and tells for whom its calls waited.
func TestCancelRun_LeavesOtherThreads(t *testing.T) {
	w := apart(t)
	w.do(events.StopRun{})
	if got := w.run().Left; got != nil {
		t.Errorf("it has left %v", got)
	}
	if made := kinds(w.do(events.CancelRun{})); !strings.Contains(made, "thread.finished") {
		t.Errorf("it made %s", made)
	}
	if r, _ := w.state.Run("exe_a"); r.Status != events.ExecutionFailed || len(r.Left) != 1 || r.Left[0] != "call_1" {
		t.Errorf("it is %s, and has left %v", r.Status, r.Left)
	}
}

// A run that is to stop, and that a worker holds, ends as soon as its other calls wait for people
// alone.
func TestStopRun_WaitsForNoPerson(t *testing.T) {
	w := asking(t)
	w.do(events.StopRun{})
	if made := kinds(w.do(w.results("call_2"))); !strings.Contains(made, "thread.finished") {
		t.Errorf("it made %s", made)
	}
}
