package runtime

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// largeCalls runs an agent that makes many calls at once, which all end together,
// each with a result of some bytes, and reports how many were made.
func largeCalls(t *testing.T, w *world, calls, size int) (made int64, all []events.Event) {
	t.Helper()
	var count atomic.Int64
	var together sync.WaitGroup
	together.Add(calls)
	send := tool{ToolSpec{Name: "send"}, func(context.Context, *ToolInput) (ToolResult, error) {
		count.Add(1)
		together.Done()
		together.Wait()
		return Done(jsontext.Value(`"` + strings.Repeat("x", size) + `"`)), nil
	}}
	asked := make([]ToolCall, calls)
	for i := range asked {
		asked[i] = call(fmt.Sprintf("c%d", i), "send", `{}`)
	}
	w.agent("a", script(says("x", asked...), says("y")), send)
	w.work(Config{})
	id, execution := w.begin("a", "hello")
	all = w.until(id, func(e *events.Event) bool {
		return e.Type == events.ThreadFinishedType || e.Type == events.RunParkedType
	})
	if status, text, _ := endOf(t, all); status != events.ExecutionCompleted {
		t.Fatalf("%s ended %s (%s)", execution, status, text)
	}
	return count.Load(), all
}

// results counts the results of calls, those that failed, and approvals.
func results(all []events.Event) (recorded, failed, approvals int) {
	for _, e := range all {
		switch d := e.Data.(type) {
		case events.ItemCreated:
			if d.Type == events.ActionResult {
				recorded++
				if strings.Contains(string(d.Content), `"isError":true`) {
					failed++
				}
			}
		case events.ApprovalRequested:
			approvals++
		}
	}
	return recorded, failed, approvals
}

// Calls that end together with more than one commit takes are each made once and
// all recorded, and nobody is asked about them.
func TestResults_LargerThanACommit(t *testing.T) {
	made, all := largeCalls(t, newWorld(t), 12, 250<<10)
	if recorded, failed, approvals := results(all); made != 12 || recorded != 12 || failed != 0 || approvals != 0 {
		t.Errorf("%d made, %d recorded, %d of them failed, %d approvals", made, recorded, failed, approvals)
	}
}

// On a server that takes small messages a result that no commit can hold is
// recorded as such, and the others as they are.
func TestResults_LargerThanTheServerTakes(t *testing.T) {
	made, all := largeCalls(t, newWorldOn(t, natstest.MaxPayload(128<<10)), 3, 100<<10)
	recorded, failed, approvals := results(all)
	if made != 3 || recorded != 3 || failed != 3 || approvals != 0 {
		t.Errorf("%d made, %d recorded, %d of them failed, %d approvals", made, recorded, failed, approvals)
	}
}
