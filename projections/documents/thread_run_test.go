package documents

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// TestThread_ShowsTheActiveRun: what the thread's run waits for, as each event changes
// it; events of another run change nothing.
func TestThread_ShowsTheActiveRun(t *testing.T) {
	h := newHistory(t, 50)
	h.do(events.CreateThread{})
	s := NewModels().NewMemory(nil)
	if err := s.Apply(h.commits[0]); err != nil {
		t.Fatal(err)
	}
	until := h.now.ISO()
	asked := h.now + 8_000_000 // of the first approval
	const (
		thread1, thread2 = `{"kind":"thread","callId":"c1"}`, `{"kind":"thread","callId":"c2"}`
		tool, other      = `{"kind":"worker","worker":"tool","name":"t","callId":"c3"}`, `{"kind":"worker","worker":"tool","name":"u","callId":"c3"}`
	)
	pay := `{"kind":"approval","name":"pay","callId":"c4","since":"` + asked.ISO() + `"}`
	again := `{"kind":"approval","name":"pay","callId":"c5","since":"` + (asked + 1_000_000).ISO() + `"}`
	is := func(waits, more string) string { return `{"executionId":"e","waitingFor":[` + waits + `]` + more + `}` }
	awaits := func(name string) events.RunAwaited {
		return events.RunAwaited{For: []events.WaitFor{{Kind: events.ToolWorker, Name: name, CallID: "c3"}}, Until: until}
	}
	for i, step := range []struct {
		typ  events.Type
		run  string
		data any
		want string
	}{
		{events.RunParkedType, "e", events.RunParked{}, ""},
		{events.RunRequestedType, "e", events.RunRequested{}, `{"executionId":"e"}`},
		{events.RunSuspendedType, "e", events.RunSuspended{Calls: []string{"c1", "c2"}}, is(thread1+","+thread2, "")},
		{events.RunAwaitedType, "e", awaits("t"), is(thread1+","+thread2+","+tool, `,"until":"`+until+`"`)},
		{events.RunAwaitedType, "e", awaits("u"), is(thread1+","+thread2+","+other, `,"until":"`+until+`"`)},
		{events.RunParkedType, "e", events.RunParked{}, is(thread1+","+thread2+","+other, `,"until":"`+until+`","parked":true`)},
		{events.RunClaimedType, "e", events.RunClaimed{}, is(thread1+","+thread2, "")},
		{events.ApprovalRequestedType, "e", events.ApprovalRequested{CallID: "c4", Name: "pay"}, is(thread1+","+thread2+","+pay, "")},
		{events.ApprovalRequestedType, "e", events.ApprovalRequested{CallID: "c5", Name: "pay"}, is(thread1+","+thread2+","+pay+","+again, "")},
		{events.RunSuspendedType, "e", events.RunSuspended{Calls: []string{"c1"}}, is(thread2+","+pay+","+again+","+thread1, "")},
		{events.ApprovalDeniedType, "e", events.ApprovalDenied{CallID: "c2"}, is(thread2+","+pay+","+again+","+thread1, "")},
		{events.RunResumedType, "e", events.RunResumed{Calls: []string{"c4", "c1"}}, is(thread2+","+pay+","+again, "")},
		{events.RunParkedType, "x", events.RunParked{}, is(thread2+","+pay+","+again, "")},
		{events.ApprovalGrantedType, "x", events.ApprovalGranted{CallID: "c4"}, is(thread2+","+pay+","+again, "")},
		{events.ApprovalGrantedType, "e", events.ApprovalGranted{CallID: "c4"}, is(thread2+","+again, "")},
		{events.RunParkedType, "e", events.RunParked{}, is(thread2+","+again, `,"parked":true`)},
		{events.RunRequestedType, "e", events.RunRequested{}, is(thread2+","+again, "")},
		{events.ApprovalResolvedType, "e", events.ApprovalResolved{CallID: "c5", Result: raw(`1`)}, is(thread2, "")},
		{events.RunResumedType, "e", events.RunResumed{Calls: []string{"c2"}}, `{"executionId":"e"}`},
		{events.ApprovalRequestedType, "e", events.ApprovalRequested{CallID: "c6", Name: "ask"}, is(`{"kind":"approval","name":"ask","callId":"c6","since":"`+(h.now+20_000_000).ISO()+`"}`, "")},
		{events.ApprovalDeniedType, "e", events.ApprovalDenied{CallID: "c6"}, `{"executionId":"e"}`},
		{events.ExecutionStatusChangedType, "x", events.ExecutionStatusChanged{To: events.ExecutionFailed}, `{"executionId":"e"}`},
		{events.ExecutionStatusChangedType, "e", events.ExecutionStatusChanged{To: events.Executing}, `{"executionId":"e"}`},
		{events.ExecutionStatusChangedType, "e", events.ExecutionStatusChanged{To: events.ExecutionFailed}, ""},
		{events.RunRequestedType, "e", events.RunRequested{}, `{"executionId":"e"}`},
		{events.RunParkedType, "e", events.RunParked{}, `{"executionId":"e","parked":true}`},
		{events.RunRequestedType, "f", events.RunRequested{}, `{"executionId":"f"}`},
	} {
		place := Place{Thread: ThreadName(tenant, h.id)}
		before := s.Get(place).(*events.Thread).Run
		was, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		e := events.Event{Type: step.typ, Subject: step.run, Data: step.data}
		switch step.typ {
		case events.ApprovalRequestedType, events.ApprovalGrantedType, events.ApprovalDeniedType, events.ApprovalResolvedType:
			e.Subject, e.Correlation = "call", step.run
		}
		if err := s.Apply(h.add(e)); err != nil {
			t.Fatal(err)
		}
		got := ""
		if run := s.Get(place).(*events.Thread).Run; run != nil {
			b, err := json.Marshal(run)
			if err != nil {
				t.Fatal(err)
			}
			got = string(b)
		}
		if got != step.want && !sameJSON(got, step.want) {
			t.Errorf("%d: after %s of %s:\nis   %s\nwant %s", i, step.typ, step.run, got, step.want)
		}
		if now, err := json.Marshal(before); err != nil || string(now) != string(was) {
			t.Errorf("%d: what a reader had, %s, has become %s", i, was, now)
		}
	}
}
