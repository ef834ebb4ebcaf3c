package query

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
)

// chat creates a thread of n turns: a question, and the run of an agent that was stopped.
func (h *house) chat(n int) (id string, runs []string) {
	h.Helper()
	id = fmt.Sprintf("T-00000000-0000-7000-8000-1%011d", n)
	state, now := &thread.State{}, events.TimeOf(time.Now())
	for turn := range n {
		draft := thread.NewDraft(state)
		do := func(part string, data any) {
			if _, err := draft.Do(&thread.Command{
				ID: fmt.Sprintf("%s-%d", part, turn), Tenant: acme, ThreadID: id, Time: now + events.Time(turn), Parts: []thread.Part{{Name: part, Data: data}},
			}); err != nil {
				h.Fatal(err)
			}
		}
		if turn == 0 {
			do("thread.create", events.CreateThread{AgentID: "triage"})
		}
		run := fmt.Sprintf("exe_%d", turn)
		do("thread.react", events.ReactThread{Text: new("hello"), AgentID: "triage", ExecutionID: run})
		do("run.cancel", events.CancelRun{})
		runs = append(runs, run)
		c, err := events.NewCommit(state.Chain, draft.Events())
		if err != nil {
			h.Fatal(err)
		}
		if err := h.EventLog.Append(h.Context(), eventlog.Write{Commit: c, Expected: state.Seq}); err != nil {
			h.Fatal(err)
		}
		draft.Apply(c)
	}
	return id, runs
}

// A page of the executions of a thread, or of the tenant's runs, costs the same on a thread of
// 2,000 runs as on one of 50, wherever it is.
func TestExecutionList_PageOfALongThread(t *testing.T) {
	h := newHouse(t)
	short, _ := h.chat(50)
	long, runs := h.chat(2000)
	r, _ := h.Run(projections.Config{})
	h.AwaitRunner(r)
	a := h.asker(Config{Progress: r.Progress()})

	page := ask[events.ExecutionList](a, "execution.list", fmt.Sprintf(`{"threadId":%q,"limit":1000}`, long))
	if len(page.Executions) != 1000 || page.NextCursor == "" || page.Executions[999].ID != runs[999] {
		t.Fatalf("%d executions, the last one %s", len(page.Executions), page.Executions[len(page.Executions)-1].ID)
	}
	middle := fmt.Sprintf(`{"threadId":%q,"limit":20,"cursor":%q}`, long, page.NextCursor)
	all, cursor := []string{}, ""
	for range 3 {
		list := ask[events.RunList](a, "run.list", fmt.Sprintf(`{"limit":15,"cursor":%q}`, cursor))
		for _, one := range list.Runs {
			all = append(all, one.ExecutionID)
		}
		cursor = list.NextCursor
	}
	for n, id := range all { // of the thread that changed last, the newest first
		if want := runs[len(runs)-1-n]; id != want {
			t.Fatalf("run %d is %s, not %s", n, id, want)
		}
	}
	base := a.allocates(func() {
		ask[events.ExecutionList](a, "execution.list", fmt.Sprintf(`{"threadId":%q,"limit":20}`, short))
	})
	for name, query := range map[string]func(){
		"first page": func() {
			ask[events.ExecutionList](a, "execution.list", fmt.Sprintf(`{"threadId":%q,"limit":20}`, long))
		},
		"middle page": func() { ask[events.ExecutionList](a, "execution.list", middle) },
		"last page": func() {
			ask[events.ExecutionList](a, "execution.list", fmt.Sprintf(`{"threadId":%q,"limit":20,"order":"desc"}`, long))
		},
		"running": func() {
			ask[events.ExecutionList](a, "execution.list", fmt.Sprintf(`{"threadId":%q,"limit":20,"status":"executing"}`, long))
		},
		"runs": func() { ask[events.RunList](a, "run.list", `{"limit":20}`) },
	} {
		if bytes := a.allocates(query); bytes > 2*base {
			t.Errorf("%s: allocates %.0f bytes, of the short thread %.0f", name, bytes, base)
		}
	}
}

// allocates returns how many bytes a query allocates.
func (a *asker) allocates(query func()) float64 {
	const times = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		query()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / times
}
