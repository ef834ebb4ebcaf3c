package readtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// Fill puts threads with turns of 12 events into the log: one commit to create a
// thread, and one a turn.
func (h *House) Fill(threads, turns int) []string {
	h.Helper()
	ids := make([]string, threads)
	var writers sync.WaitGroup
	const lanes = 64
	for lane := range lanes {
		writers.Go(func() {
			for n := lane; n < threads; n += lanes {
				ids[n] = fmt.Sprintf("T-00000000-0000-7000-8000-%012d", n)
				h.FillThread(ids[n], turns)
			}
		})
	}
	writers.Wait()
	return ids
}

// FilledIDs returns the ids of the threads that Fill creates.
func (h *House) FilledIDs(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("T-00000000-0000-7000-8000-%012d", i))
	}
	return ids
}

// FillThread puts a thread into the log.
func (h *House) FillThread(id string, turns int) {
	state := &thread.State{}
	now := events.TimeOf(time.Now())
	put := func(n int, parts []thread.Part) {
		made, err := thread.Decide(state, &thread.Command{
			ID: fmt.Sprintf("c-%d", n), Tenant: Acme, ThreadID: id, Time: now, Actor: "bench", Parts: parts,
		})
		if err != nil {
			h.Error(err)
			return
		}
		c, err := events.NewCommit(state.Chain, made)
		if err != nil {
			h.Error(err)
			return
		}
		if err := h.EventLog.Append(h.Context(), eventlog.Write{Commit: c, Expected: state.Seq}); err != nil {
			h.Error(err)
			return
		}
		thread.Apply(state, c)
	}
	put(0, []thread.Part{{Name: "thread.create", Data: events.CreateThread{Title: "a thread"}}})
	for n := range turns {
		name := func(kind string) string { return fmt.Sprintf("%s_%s_%04d", kind, id[24:], n) }
		put(n+1, TurnParts(h, name))
	}
}

// TurnParts returns the commands of one turn: 12 events.
func TurnParts(t testing.TB, id func(string) string) []thread.Part {
	v := events.CommitThread{}
	Unmarshal(t, Turn(id), &v)
	parts := make([]thread.Part, len(v.Commands))
	for i, c := range v.Commands {
		row, _ := events.LookupCommand(c.Command)
		data, err := row.Decode(c.Data)
		if err != nil {
			t.Fatal(err)
		}
		parts[i] = thread.Part{Name: c.Command, Data: data}
	}
	return parts
}
