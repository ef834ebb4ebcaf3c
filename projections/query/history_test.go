package query

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/events"
)

// logOf reads all of the log in pages of a size, and checks their order.
func logOf(a *asker, body string, limit int) (types []string, broken int) {
	a.Helper()
	seq, version := uint64(1), int64(0)
	for {
		page := ask[events.HistoryList](a, "history.list", fmt.Sprintf(`{%s"fromSeq":%d,"afterVersion":%d,"limit":%d}`, body, seq, version, limit))
		for _, e := range page.Entries {
			if e.Broken {
				broken++
				continue
			}
			event, err := events.DecodeEvent(e.Event)
			if err != nil {
				a.Fatal(err)
			}
			if event.Tenant != acme {
				a.Fatalf("an event of %s", event.Tenant)
			}
			types = append(types, string(event.Type))
		}
		if len(page.Entries) > limit {
			a.Fatalf("%d entries, of at most %d", len(page.Entries), limit)
		}
		if page.NextSeq == 0 {
			return types, broken
		}
		if page.NextSeq < int64(seq) || page.NextSeq == int64(seq) && page.NextVersion <= version {
			a.Fatalf("the page after %d, %d begins at %d, %d", seq, version, page.NextSeq, page.NextVersion)
		}
		seq, version = uint64(page.NextSeq), page.NextVersion
	}
}

// Pages of any size show the same log: each event once, in order, of this tenant only; an
// unreadable commit is reported, and hides no other.
func TestLogByPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	one := h.Do("thread.create", "", `{"key":"k"}`).ThreadID
	if _, err := h.Dispatcher.Do(t.Context(), "globex", "thread.create", []byte(`{}`), commands.Meta{}); err != nil {
		t.Fatal(err)
	}
	two := h.Do("thread.create", "", `{}`).ThreadID
	for range 4 {
		h.Do("item.create", two, `{"item":{"type":"message","role":"user","content":[]}}`)
	}
	if _, err := h.EventLog.Conn().Request("skein.log."+acme+".T-01900000-0000-7000-8000-000000000000", []byte("nonsense"), time.Minute); err != nil {
		t.Fatal(err)
	}
	h.Do("item.create", one, `{"item":{"type":"message","role":"user","content":[]}}`)
	a := h.asker(Config{})
	whole, broken := logOf(a, "", 1000)
	if want := "thread.created context.created key.claimed key.claimed thread.created context.created item.created item.created item.created item.created item.created"; strings.Join(whole, " ") != want || broken != 1 {
		t.Errorf("the log is %v, and %d that cannot be read", whole, broken)
	}
	for _, limit := range []int{1, 2, 3, 7} {
		if got, broken := logOf(a, "", limit); strings.Join(got, " ") != strings.Join(whole, " ") || broken != 1 {
			t.Errorf("by pages of %d: %v, and %d", limit, got, broken)
		}
	}
	if got, _ := logOf(a, `"threadId":"key:k",`, 2); strings.Join(got, " ") != "thread.created context.created key.claimed item.created" {
		t.Errorf("of one thread: %v", got)
	}
	end := ask[events.HistoryEnd](a, "history.get", `{}`)
	if last, err := h.EventLog.LastSeq(t.Context()); err != nil || end.LastSeq != int64(last) || last == 0 {
		t.Errorf("the log ends at %d, not %d: %v", end.LastSeq, last, err)
	}
	a.refused(events.NotFound, "history.list", `{"threadId":"key:nobody"}`)
	a.refused(events.InvalidRequest, "history.list", `{"threadId":"*"}`)
	a.refused(events.InvalidRequest, "history.list", `{"limit":1001}`)
}

// Chunks are found by their number, without reading those long before it.
func TestChunksByNumber(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	thread := h.Do("thread.create", "", `{}`).ThreadID
	w, err := chunks.NewWriter(h.EventLog, chunks.Run{Tenant: acme, Thread: thread, Execution: "exe_1", Token: 1, Version: 2})
	if err != nil {
		t.Fatal(err)
	}
	const chunks = 60
	for i := range chunks { // of a kind that is not merged
		if err := w.Emit(t.Context(), "", "data-n", []byte(fmt.Sprintf(`{"n":%d}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := h.asker(Config{})
	numbers := func(body string) (first, last int64, next uint64) {
		page := ask[events.ChunkList](a, "chunk.list", `{"threadId":"`+thread+`","executionId":"exe_1"`+body+`}`)
		for i, c := range page.Chunks {
			e, err := events.DecodeEvent(c.Event)
			if err != nil {
				t.Fatal(err)
			}
			if last = e.Data.(events.ChunkEmitted).Index; i == 0 {
				first = last
			}
		}
		return first, last, uint64(page.NextSeq)
	}
	if first, last, next := numbers(""); first != 0 || last != chunks-1 || next != 0 {
		t.Errorf("all of them: %d to %d, then %d", first, last, next)
	}
	first, last, next := numbers(`,"limit":10,"fromIndex":40`)
	if first != 39 || last != 48 || next == 0 { // the one before shows that nothing is missing
		t.Errorf("from 40 on: %d to %d, then %d", first, last, next)
	}
	if first, last, next = numbers(fmt.Sprintf(`,"limit":10,"fromSeq":%d`, next)); first != 49 || last != 58 || next == 0 {
		t.Errorf("the page after: %d to %d, then %d", first, last, next)
	}
	if list := ask[events.ChunkList](a, "chunk.list", `{"threadId":"`+thread+`","executionId":"exe_2"}`); len(list.Chunks) != 0 {
		t.Errorf("another execution has %d", len(list.Chunks))
	}
}
