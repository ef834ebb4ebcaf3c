package documents

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

const tenant = "acme"

// history is a thread that is written by decisions, as the log would hold it.
type history struct {
	testing.TB
	id      string
	state   *thread.State
	now     events.Time
	seq     uint64
	n       int
	commits []*events.Commit
}

func newHistory(t testing.TB, n int) *history {
	return &history{TB: t, id: fmt.Sprintf("T-00000000-0000-7000-8000-%012d", n), state: &thread.State{}, now: 1771581600_123456}
}

// do does commands as one commit. Each is data of a command.
func (h *history) do(data ...any) *events.Commit {
	h.Helper()
	h.n++
	h.now += 1000_000
	c := &thread.Command{ID: fmt.Sprintf("c-%d", h.n), Tenant: tenant, ThreadID: h.id, Time: h.now, Actor: "tester", Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	for _, d := range data {
		c.Parts = append(c.Parts, thread.Part{Name: fmt.Sprintf("%T", d), Data: d})
	}
	made, err := thread.Decide(h.state, c)
	if err != nil {
		h.Fatal(err)
	}
	return h.store(made)
}

// add puts events into the history that no command makes yet.
func (h *history) add(list ...events.Event) *events.Commit {
	h.Helper()
	h.n++
	h.now += 1000_000
	for i := range list {
		e := &list[i]
		e.ID = events.EventID(tenant, h.id, fmt.Sprintf("c-%d", h.n), i)
		e.Tenant, e.ThreadID, e.Time, e.Version = tenant, h.id, cmp.Or(e.Time, h.now), h.state.Version+int64(i)+1
		if e.Subject == "" {
			e.Subject = h.id
		}
	}
	return h.store(list)
}

func (h *history) store(list []events.Event) *events.Commit {
	h.Helper()
	made, err := events.NewCommit(h.state.Chain, list)
	if err != nil {
		h.Fatal(err)
	}
	h.seq += 3 // other threads write too
	c, err := events.DecodeCommit(tenant, h.id, h.seq, made.Version, made.Chain, made.Body)
	if err != nil {
		h.Fatal(err)
	}
	thread.Apply(h.state, c)
	h.commits = append(h.commits, c)
	return c
}

func raw(s string) events.JSON { return events.JSON(s) }

func to[T any](v T) *T { return &v }

func message(id, text string) events.CreateItem {
	return events.CreateItem{Item: events.NewItem{
		ID: id, Type: events.Message, Role: events.User, Content: raw(fmt.Sprintf(`[{"type":"input_text","text":%q}]`, text)),
	}}
}

// turn is a react's commands: 12 events.
func turn(n int) []any {
	id := func(kind string) string { return fmt.Sprintf("%s_%028d", kind, n) }
	item, exe, rea, stp := id("itm"), id("exe"), id("rea"), id("stp")
	return []any{
		message(item, "Where is my order? It was to be here on Monday, and it is Friday now."),
		events.SetThreadStatus{To: events.ThreadStreaming},
		events.CreateExecution{ID: exe, TriggerItemID: item, ReactionItemID: rea},
		events.CreateStep{ID: stp, ExecutionID: exe},
		events.PutPart{StepID: stp, Idx: to(int64(0)), Type: "output_text", Part: raw(`{"type":"output_text","text":"It is on its way."}`)},
		message(rea, "It is on its way, and will be with you tomorrow before noon."),
		events.SetStepStatus{StepID: stp, To: events.StepCompleted, ContinueLoop: to(false)},
		events.SetItemStatus{ItemID: item, To: events.ItemCompleted},
		events.SetItemStatus{ItemID: rea, To: events.ItemCompleted},
		events.SetExecutionStatus{ExecutionID: exe, To: events.ExecutionCompleted},
		events.SetContext{Patch: raw(fmt.Sprintf(`{"last":%q}`, rea))},
		events.SetThreadStatus{To: events.ThreadOpen},
	}
}
