package query

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/skein-threads/skein/events"
)

// A summary counts the messages and the changes of files, and knows when a user last spoke.
func TestThreadHistory(t *testing.T) { // AM-94 AM-97 AM-100 AM-101 AM-119
	a := documentAsker(t)
	one := a.Do("thread.create", "", `{}`)
	two := a.Do("thread.create", "", `{"title":"Order 42"}`)
	three := a.Do("thread.create", "", `{}`)
	a.Do("thread.update", three.ThreadID, `{"archived":true}`)
	var last *events.Reply
	for _, c := range []struct{ name, data string }{
		{"item.create", `{"item":{"type":"message","role":"user","createdAt":"2026-02-20T10:00:00.123456Z","content":[]}}`},
		{"item.create", `{"item":{"type":"message","role":"user","createdAt":"2026-02-20T09:00:00Z","content":[]}}`},
		{"item.create", `{"item":{"type":"message","role":"assistant","content":[]}}`},
		{"item.create", `{"item":{"type":"message","role":"user","content":[],"silent":true}}`},
		{"item.create", `{"item":{"type":"message","role":"user","content":[],"depth":1}}`},
		{"file.write", fmt.Sprintf(`{"path":"/a","external":"https://example.com/a","metadata":{"x":%q}}`, base64.StdEncoding.EncodeToString([]byte("a")))},
		{"file.write", `{"path":"/b","external":"https://example.com/b"}`},
		{"file.write", `{"path":"/a","external":"https://example.com/c"}`},
		{"file.delete", `{"path":"/b"}`},
		{"directory.create", `{"path":"/d"}`},
	} {
		last = a.Do(c.name, two.ThreadID, c.data)
	}
	list := ask[events.ThreadHistory](a, "thread.history", `{`+seqOf(last)+`}`)
	if len(list.Threads) != 2 || list.Threads[0].ID != two.ThreadID || list.Threads[1].ID != one.ThreadID || list.NextCursor != "" {
		t.Fatalf("the threads are %+v", list.Threads)
	}
	got := list.Threads[0]
	if *got.Title != "Order 42" || got.UserLastInteractedAt != 1771581600123 || got.SummaryStats.MessageCount != 3 || got.V != 10 {
		t.Errorf("the summary is %+v", got)
	}
	if want := (events.DiffStats{Added: 2, Changed: 1, Deleted: 1}); got.SummaryStats.DiffStats != want {
		t.Errorf("the changes of files are %+v, want %+v", got.SummaryStats.DiffStats, want)
	}
	if quiet := list.Threads[1]; quiet.Title != nil || quiet.UserLastInteractedAt != quiet.Created || quiet.Created == 0 {
		t.Errorf("without a message the summary is %+v", quiet)
	}
	if doc := a.documentOf(last); int64(len(doc.Messages)) != got.SummaryStats.MessageCount {
		t.Errorf("the document has %d messages, the summary %d", len(doc.Messages), got.SummaryStats.MessageCount)
	}
	for body, want := range map[string]string{`{}`: two.ThreadID, `{"archived":false}`: two.ThreadID, `{"archived":true}`: three.ThreadID} {
		if list := ask[events.ThreadHistory](a, "thread.history", body); list.Threads[0].ID != want {
			t.Errorf("the history %s begins with %s", body, list.Threads[0].ID)
		}
		if list := ask[events.ThreadList](a, "thread.list", body); list.Threads[0].ID != want || len(list.Threads) == 3 {
			t.Errorf("the list %s begins with %s", body, list.Threads[0].ID)
		}
	}
	page := ask[events.ThreadHistory](a, "thread.history", `{"limit":1}`)
	next := ask[events.ThreadHistory](a, "thread.history", fmt.Sprintf(`{"limit":1,"cursor":%q}`, page.NextCursor))
	if len(page.Threads) != 1 || len(next.Threads) != 1 || next.Threads[0].ID != one.ThreadID || next.NextCursor != "" {
		t.Errorf("the pages are %+v and %+v", page, next)
	}
	a.refused(events.InvalidRequest, "thread.list", fmt.Sprintf(`{"cursor":%q}`, page.NextCursor))
}
