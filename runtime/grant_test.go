package runtime

import (
	"context"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// A granted call whose worker then died may have been made: it is asked about again,
// with the granted arguments, unless its tool is idempotent. EK-124.
func TestCall_GrantedAfterHandover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var paid, looked []string
	pay := tool{ToolSpec{Name: "pay", Manual: true}, func(_ context.Context, in *ToolInput) (ToolResult, error) {
		paid = append(paid, string(in.Arguments))
		return Done(nil), nil
	}}
	look := tool{ToolSpec{Name: "look", Manual: true, Idempotent: true}, func(_ context.Context, in *ToolInput) (ToolResult, error) {
		looked = append(looked, string(in.Arguments))
		return Done(nil), nil
	}}
	w.agent("a", script(says("x", call("c1", "pay", `{"eur":5}`), call("c2", "look", `{}`)), says("y")), pay, look)
	_, stop := w.worker(Config{})
	id, execution := w.begin("a", "hello")
	w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType })
	stop()
	w.must("approval.grant", id, events.GrantApproval{CallID: "c1", Arguments: []byte(`{"eur":4}`)})
	w.must("approval.grant", id, events.GrantApproval{CallID: "c2"})
	// A worker takes it, and dies before it records the outcome of the calls.
	w.claim(id, execution, "dead")
	var before int64
	w.look(id, func(s *thread.State) { before = s.Version })
	w.work(Config{})
	asked := 0
	for _, e := range w.until(id, func(e *events.Event) bool {
		return e.Version > before && (e.Type == events.RunParkedType || e.Type == events.ThreadFinishedType)
	}) {
		if d, ok := e.Data.(events.ApprovalRequested); ok && e.Version > before {
			if asked++; d.CallID != "c1" || string(d.Arguments) != `{"eur":4}` {
				t.Errorf("call %s was asked about, with %s", d.CallID, d.Arguments)
			}
		}
	}
	if asked != 1 {
		t.Errorf("%d calls were asked about again, and not one", asked)
	}
	if len(paid) != 0 || len(looked) != 1 {
		t.Fatalf("calls were made: %v, %v", paid, looked)
	}
	w.must("approval.grant", id, events.GrantApproval{CallID: "c1"})
	all := w.finished(id, execution)
	if len(paid) != 1 || paid[0] != `{"eur":4}` || len(looked) != 1 {
		t.Errorf("calls were made: %v, %v", paid, looked)
	}
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Errorf("it ended %s (%s)", status, text)
	}
}
