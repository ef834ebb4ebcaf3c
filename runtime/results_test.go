package runtime

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// largeCalls runs an agent that makes many calls concurrently, which all end together
// with results of a size, and returns how many were made.
func largeCalls(t *testing.T, w *world, calls, size int) (made int64, all []events.Event) {
	t.Helper()
	var count atomic.Int64
	var together sync.WaitGroup
	together.Add(calls)
	send := tool{ToolSpec{Name: "send"}, func(context.Context, *ToolInput) (ToolResult, error) {
		count.Add(1)
		together.Done()
		together.Wait()
		return Done(events.JSON(`"` + strings.Repeat("x", size) + `"`)), nil
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

// Calls that end together with more than one commit holds are each made once and all
// recorded, and no person is asked about them.
func TestResults_LargerThanACommit(t *testing.T) {
	t.Parallel()
	made, all := largeCalls(t, newWorld(t), 12, 250<<10)
	if recorded, failed, approvals := results(all); made != 12 || recorded != 12 || failed != 0 || approvals != 0 {
		t.Errorf("%d made, %d recorded, %d of them failed, %d approvals", made, recorded, failed, approvals)
	}
}

// On a server with a small message limit a result that fits into no commit is recorded
// as such, and the others unchanged.
func TestResults_LargerThanServerLimit(t *testing.T) {
	t.Parallel()
	for size, failures := range map[int]int{124 << 10: 3, 100 << 10: 0} { // the second fits, but no two of them in one event
		made, all := largeCalls(t, newWorldOn(t, natstest.MaxPayload(128<<10)), 3, size)
		recorded, failed, approvals := results(all)
		if made != 3 || recorded != 3 || failed != failures || approvals != 0 {
			t.Errorf("%d bytes: %d made, %d recorded, %d of them failed, %d approvals", size, made, recorded, failed, approvals)
		}
		for _, e := range all {
			if len(e.Raw()) > 128<<10 {
				t.Errorf("%d bytes: %s is larger than a message of the timeline", size, e.Type)
			}
		}
	}
}

// The log stores a large result once, in the call's part; reads show the result in the
// part, in the item of the result, and in the answer.
func TestResults_StoredOnce(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	w := newWorld(t)
	_, all := largeCalls(t, w, 2, size)
	output := strings.Repeat("x", size)
	whole, stored, shown := 0, 0, 0
	for _, e := range all {
		whole, stored = whole+len(e.Raw()), stored+len(e.Stored())
		shown += strings.Count(string(e.Raw()), output)
	}
	if shown != 6 || whole < 6*size {
		t.Errorf("two results are shown %d times, in %d bytes", shown, whole)
	}
	if most := 2*size + 64<<10; stored > most {
		t.Errorf("the log holds %d bytes, more than %d; whole they are %d", stored, most, whole)
	}
	t.Logf("%d bytes a call in the log, %d if every event held its own", stored/2, whole/2)
}
