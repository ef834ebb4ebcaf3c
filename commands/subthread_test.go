package commands

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// added returns the threads that a thread records as working for it.
func (w *world) added(id string) []string {
	w.t.Helper()
	var ids []string
	for _, c := range w.commits(id) {
		for i := range c.Events {
			if d, ok := c.Events[i].Data.(events.SubthreadAdded); ok {
				ids = append(ids, d.ThreadID)
			}
		}
	}
	return ids
}

// AM-22, AM-85: a thread that works for another is recorded there in the batch that creates it,
// however it is created, and a deleted thread takes none. The main thread's state does not grow.
func TestSubthread_IsRecordedOnTheMainThread(t *testing.T) {
	w := newWorld(t, Config{})
	main := create(t, w.d)
	size := func() (n int64) {
		if err := w.d.Look(t.Context(), tenant, main, func(s *thread.State) { n = s.Bytes() }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	request := `{"commandId":"one","data":{"mainThreadId":"` + main + `"}}`
	one := must(t, w.d, "thread.create", request)
	two := must(t, w.d, "thread.resolve", `{"data":{"key":"two","mainThreadId":"`+main+`"}}`)
	three := must(t, w.d, "thread.commit", `{"data":{"commands":[{"command":"thread.create","data":{"mainThreadId":"`+main+`"}},{"command":"item.create","data":`+hello+`}]}}`)
	four, err := w.d.Run(t.Context(), &thread.Command{ID: "four", Tenant: tenant, ThreadID: events.DeriveThreadID(tenant, "four"), Parts: []thread.Part{
		{Name: "thread.create", Data: events.CreateThread{MainThreadID: main}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(w.added(main), " "), strings.Join([]string{one.ThreadID, two.ThreadID, three.ThreadID, four.Thread}, " "); got != want {
		t.Errorf("it records %s, want %s", got, want)
	}
	if one.Seq <= 1 || w.commits(main)[1].Seq > uint64(one.Seq) {
		t.Errorf("the reply is of %d, and the record of %d", one.Seq, w.commits(main)[1].Seq)
	}
	// Repeats, and a key that is held, record nothing.
	for _, d := range []*Dispatcher{w.d, w.another(Config{})} {
		if again := must(t, d, "thread.create", request); again.ThreadID != one.ThreadID || again.Seq != one.Seq {
			t.Errorf("the repeat made %+v", again)
		}
		if again := must(t, d, "thread.resolve", `{"data":{"key":"two","mainThreadId":"`+main+`"}}`); again.ThreadID != two.ThreadID {
			t.Errorf("it was resolved to %s", again.ThreadID)
		}
	}
	if n := len(w.added(main)); n != 4 {
		t.Errorf("it records %d", n)
	}
	w.lawful(main, one.ThreadID, two.ThreadID, three.ThreadID)
	w.sameAsLog(w.d, main)
	// A thread that is held takes a record: it is no change of what it shows.
	token := must(t, w.d, "writer.claim", on(main, `{"holder":"ada","ttlMs":300000}`)).Result.Token
	must(t, w.d, "thread.create", `{"data":{"mainThreadId":"`+main+`"}}`)
	must(t, w.d, "writer.release", on(main, `{"token":"`+token+`"}`))
	// One that does not exist is no reason to refuse, itself is, and a deleted one is.
	other := events.DeriveThreadID(tenant, "other")
	must(t, w.d, "thread.create", `{"data":{"mainThreadId":"`+other+`"}}`)
	if len(w.commits(other)) > 0 {
		t.Error("a thread that was never created has a record")
	}
	if _, err := ask(t, w.d, "thread.create", on(other, `{"mainThreadId":"`+other+`"}`)); err == nil || err.Code != events.InvalidRequest {
		t.Errorf("a thread that works for itself: %v", err)
	}
	before := size()
	for range 40 {
		must(t, w.d, "thread.create", `{"data":{"mainThreadId":"`+main+`"}}`)
	}
	if after := size(); after > before {
		t.Errorf("40 threads that work for it made its state %d bytes larger", after-before)
	}
	must(t, w.d, "thread.delete", on(main, `{}`))
	at := w.lastSeq()
	for name, body := range map[string]string{
		"thread.create": `{"data":{"mainThreadId":"` + main + `"}}`, "thread.resolve": `{"data":{"key":"new","mainThreadId":"` + main + `"}}`,
		"thread.commit": `{"data":{"commands":[{"command":"thread.create","data":{"mainThreadId":"` + main + `"}}]}}`,
	} {
		for _, d := range []*Dispatcher{w.d, w.another(Config{})} {
			if _, err := ask(t, d, name, body); err == nil || err.Code != events.NotFound || !strings.Contains(err.Message, main) {
				t.Errorf("%s for a deleted thread: %v", name, err)
			}
		}
	}
	if must(t, w.d, "thread.create", request).ThreadID != one.ThreadID || w.lastSeq() != at {
		t.Errorf("%d commits were written", w.lastSeq()-at)
	}
}
