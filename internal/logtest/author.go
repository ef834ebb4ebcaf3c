package logtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// Author writes the commits of one thread, each after the one before.
type Author struct {
	Thread  string
	Version int64
	Seq     uint64
	Chain   string
}

// NewAuthor returns the author of a thread of its own for each number.
func NewAuthor(n int) *Author {
	return &Author{Thread: fmt.Sprintf("T-00000000-0000-7000-8000-%012d", n)}
}

// Next makes the author's next commit, of n small events.
func (a *Author) Next(t testing.TB, n int) eventlog.Write {
	t.Helper()
	command := fmt.Sprintf("c-%d", a.Version)
	pad := events.JSON(`"` + strings.Repeat("x", 20) + `"`)
	list := make([]events.Event, n)
	for i := range list {
		list[i] = events.Event{
			ID: events.EventID(Tenant, a.Thread, command, i), Type: events.ProfileChangedType, Subject: a.Thread,
			Time: events.TimeOf(time.Unix(1771588800, 0)), Tenant: Tenant, ThreadID: a.Thread, Version: a.Version + int64(i) + 1,
			CommandID: command, Data: events.ProfileChanged{Metadata: pad},
		}
		if i%2 == 1 {
			list[i].Type, list[i].Data = events.ItemCreatedType, events.ItemCreated{ID: "itm_1", ContextID: "ctx_1", Content: pad}
		}
	}
	c, err := events.NewCommit(a.Chain, list)
	if err != nil {
		t.Fatal(err)
	}
	return eventlog.Write{Commit: c, Expected: a.Seq}
}

// Write appends n commits of some events each.
func (a *Author) Write(t testing.TB, l *eventlog.Log, n, events int) {
	t.Helper()
	for range n {
		w := a.Next(t, events)
		if err := l.Append(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		a.Version, a.Seq, a.Chain = w.Commit.Version, w.Commit.Seq, w.Commit.Chain
	}
}
