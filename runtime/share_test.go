package runtime

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/events"
)

// reactAs creates a thread of a tenant and asks an agent.
func (w *world) reactAs(tenant, agent string) (id string) {
	w.t.Helper()
	made, err := w.d.Do(w.t.Context(), tenant, "thread.create", []byte(`{"data":{"agentId":"`+agent+`"}}`), commands.Meta{})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.d.Do(w.t.Context(), tenant, "thread.react", []byte(`{"threadId":"`+made.ThreadID+`","data":{"text":"hello"}}`), commands.Meta{}); err != nil {
		w.t.Fatal(err)
	}
	return made.ThreadID
}

// Calls of a hanging tool, with a timeout of a day, take no more places than their
// tenant's share: runs of another tenant continue, and the others of the same tenant
// follow when a place is free.
func TestWorker_OneTenantLeavesPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	free, hangs := make(chan struct{}), make(chan struct{}, 100)
	hang := tool{ToolSpec{Name: "hang", Timeout: 24 * time.Hour}, func(ctx context.Context, _ *ToolInput) (ToolResult, error) {
		hangs <- struct{}{}
		select {
		case <-free:
		case <-ctx.Done():
		}
		return ToolResult{Status: Success}, nil
	}}
	w.agent("hog", script(says("one moment", call("c1", "hang", "{}")), says("done")), hang)
	came := make(chan string, 100)
	w.agent("quick", ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		came <- in.ThreadID
		return says("fine"), nil
	}))
	const places, runs = 8, 20
	w.work(Config{Places: places})
	var hogs []string
	for range runs {
		hogs = append(hogs, w.reactAs("hog", "hog"))
	}
	for range places/2 + 1 { // its share
		next(t, hangs)
	}
	for range 3 {
		id := w.reactAs(tenant, "quick")
		if got := next(t, came); got != id {
			t.Fatalf("the run of %s came, want %s", got, id)
		}
	}
	if len(hangs) > 0 {
		t.Errorf("one tenant has %d places beyond its share", len(hangs))
	}
	close(free)
	for range runs - places/2 - 1 {
		next(t, hangs)
	}
	for _, id := range hogs {
		w.untilOf("hog", id, events.ThreadFinishedType)
	}
}

// untilOf waits until the log of a tenant's thread shows a type of event.
func (w *world) untilOf(tenant, id string, want events.Type) {
	w.t.Helper()
	deadline := time.Now().Add(testPatience)
	for time.Now().Before(deadline) {
		for c, err := range w.log.Thread(w.t.Context(), tenant, id, 1) {
			if err != nil {
				w.t.Fatal(err)
			}
			for i := range c.Events {
				if c.Events[i].Type == want {
					return
				}
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.t.Fatalf("thread %s never came to %s", id, want)
}

// The operator's limit ends a call whose definition permits a day.
func TestCall_OperatorsTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hang := tool{ToolSpec{Name: "hang", Timeout: 24 * time.Hour}, func(ctx context.Context, _ *ToolInput) (ToolResult, error) {
		<-ctx.Done()
		return ToolResult{}, ctx.Err()
	}}
	w.agent("a", script(says("one moment", call("c1", "hang", "{}")), says("done")), hang)
	w.work(Config{MostToolTime: 100 * time.Millisecond})
	id, execution := w.begin("a", "hello")
	for _, e := range w.finished(id, execution) {
		if raw, err := json.Marshal(e.Data); err == nil && strings.Contains(string(raw), "the tool took longer than 100ms") {
			return
		}
	}
	t.Error("the call did not end at the operator's limit")
}
