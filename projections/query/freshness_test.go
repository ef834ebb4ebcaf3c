package query

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/service"
)

// A query that names a sequence or a version waits for it.
func TestWaiting(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.asker(Config{Wait: time.Minute})
	made := h.Do("thread.create", "", `{}`)
	answers := make(chan error, 3)
	for _, c := range []struct{ name, body string }{
		{"thread.get", `{"threadId":"` + made.ThreadID + `",` + seqOf(made) + `}`},
		{"context.get", `{"threadId":"` + made.ThreadID + `","minVersion":2}`},
		{"thread.list", `{` + seqOf(made) + `}`},
	} {
		go func() {
			_, err := a.q.Handle(t.Context(), acme, c.name, []byte(c.body), service.Meta{})
			answers <- err
		}()
	}
	// From the log itself it is answered at once, without any read model.
	past := ask[events.Thread](a, "thread.get", `{"threadId":"`+made.ThreadID+`","at":{"version":1},`+seqOf(made)+`}`)
	if past.Version != 1 || len(answers) != 0 {
		t.Errorf("%+v, and %d were answered without a runner", past, len(answers))
	}
	h.Run(projections.Config{})
	for range 3 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// A document that is there, but older than what a query asks for, is not shown.
func TestMinSeq_OlderDocument(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, stop := h.Run(projections.Config{})
	a := h.asker(Config{Wait: time.Millisecond})
	made := h.Do("thread.create", "", `{"title":"old"}`)
	h.AwaitRunner(r)
	stop()
	renamed := h.Do("thread.update", made.ThreadID, `{"title":"new"}`)
	if title := ask[events.Thread](a, "thread.get", `{"threadId":"`+made.ThreadID+`"}`).Title; title != "old" {
		t.Fatalf("nothing folds the log, and the title is %q", title)
	}
	for _, name := range []string{"thread.get", "item.list", "context.list", "execution.list"} {
		a.refused(events.ProjectionBehind, name, `{"threadId":"`+made.ThreadID+`",`+seqOf(renamed)+`}`)
	}
}

// A query about one thread, or about definitions, waits for their own commits up to the sequence that it
// names, not for those of others: nothing that another thread does can delay it.
func TestMinSeq_OfAnother(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, stop := h.Run(projections.Config{})
	a := h.asker(Config{Wait: time.Millisecond})
	own := h.Do("thread.create", "", `{"key":"visitor/own"}`).ThreadID
	h.React(own, 0)
	h.Do("definition.apply", "", `{"definitions":[{"kind":"policy","definition":{"name":"handoff","agent":"a"}}]}`)
	h.AwaitRunner(r)
	stop()
	other := h.Do("thread.create", "", `{"key":"visitor/other"}`)
	rows := []struct{ name, body string }{
		{"thread.get", `"threadId":"` + own + `"`}, {"thread.get", `"threadId":"key:visitor/own"`}, {"item.list", `"threadId":"` + own + `"`},
		{"message.list", `"threadId":"` + own + `"`}, {"context.get", `"threadId":"` + own + `"`}, {"execution.list", `"threadId":"` + own + `"`},
		{"definition.get", `"kind":"policy","name":"handoff"`}, {"definition.list", `"kind":"policy"`},
	}
	for _, c := range rows {
		if _, err := a.q.Handle(t.Context(), acme, c.name, []byte(`{`+c.body+`,`+seqOf(other)+`}`), service.Meta{}); err != nil {
			t.Errorf("%s %s waits for another thread: %v", c.name, c.body, err)
		}
	}
	a.refused(events.NotFound, "thread.get", `{"threadId":"key:visitor/nobody",`+seqOf(other)+`}`)
	end, err := h.NewLog().LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(rows[:6:6], []struct{ name, body string }{
		{"thread.get", `"threadId":"key:visitor/other"`}, {"thread.get", `"threadId":"` + other.ThreadID + `"`},
		{"thread.list", ``}, {"run.list", ``}, {"item.get", `"itemId":"itm_nobody"`},
	}...) {
		body := `{` + c.body + `,"minSeq":` + fmt.Sprint(end+1) + `}` // the log itself has not come so far
		a.refused(events.ProjectionBehind, c.name, strings.Replace(body, "{,", "{", 1))
	}
	changed := h.Do("thread.update", own, `{"title":"new"}`)
	applied := h.Do("definition.apply", "", `{"definitions":[{"kind":"policy","definition":{"name":"handoff","agent":"b"}}]}`)
	for i, c := range rows {
		of := changed
		if i >= 6 {
			of = applied
		}
		a.refused(events.ProjectionBehind, c.name, `{`+c.body+`,`+seqOf(of)+`}`)
	}
}

// Until the read models show the log as it was when a process began to follow them, no query of
// that process is answered from less: it waits, and then says how far they are. A thread that they
// show whole is answered. Later they may lag behind what nobody named.
func TestQueries_UntilReadModelsCaughtUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, stop := h.Run(projections.Config{})
	whole := h.Do("thread.create", "", `{"key":"visitor/whole"}`).ThreadID
	h.React(whole, 0)
	short := h.Do("thread.create", "", `{"key":"visitor/short"}`).ThreadID
	h.AwaitRunner(r)
	stop()
	shown := h.React(short, 0).Seq - 1
	h.Do("definition.apply", "", `{"definitions":[{"kind":"policy","definition":{"name":"handoff","agent":"a"}}]}`)
	last := h.Do("thread.create", "", `{"key":"visitor/new"}`)
	shared := buckets.NewProgress()
	late := h.asker(Config{Wait: time.Millisecond, Progress: shared})
	end, err := h.NewLog().LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("up to commit %d of %d", shown, end)
	h.Until(func() bool { return shared.Seq() == uint64(shown) && shared.Started() == end }, "the progress is not told")
	for _, c := range []struct{ name, body string }{
		{"thread.list", `{}`}, {"thread.list", `{"keyPrefix":"visitor/new"}`}, {"thread.list", `{"limit":1}`},
		{"run.list", `{}`}, {"approval.list", `{}`}, {"effect.list", `{}`}, {"definition.list", `{}`}, {"worker.list", `{}`},
		{"item.get", `{"itemId":"itm_nobody"}`}, {"thread.get", `{"threadId":"` + last.ThreadID + `"}`}, {"thread.get", `{"threadId":"key:visitor/new"}`},
		{"thread.get", `{"threadId":"` + short + `"}`}, {"item.list", `{"threadId":"` + short + `"}`}, {"message.list", `{"threadId":"` + short + `"}`},
		{"context.list", `{"threadId":"` + short + `"}`}, {"execution.list", `{"threadId":"` + short + `"}`},
		{"file.list", `{"threadId":"` + short + `"}`}, {"effect.list", `{"threadId":"` + short + `"}`}, {"relationship.list", `{"threadId":"` + short + `"}`},
	} {
		if e := late.refused(events.ProjectionBehind, c.name, c.body); !strings.Contains(e.Message, want) || e.Details.Seq != shown {
			t.Errorf("%s %s: %v %+v, want %s", c.name, c.body, e, e.Details, want)
		}
	}
	if n := len(ask[events.ItemList](late, "item.list", `{"threadId":"`+whole+`"}`).Items); n != 2 {
		t.Errorf("the thread that is shown has %d items", n)
	}
	if past := ask[events.Thread](late, "thread.get", `{"threadId":"`+last.ThreadID+`","at":{"version":1}}`); past.ID != last.ThreadID {
		t.Errorf("from the log: %+v", past)
	}
	another := buckets.NewProgress()
	another.Start(end) // as a process does before it answers
	patient := h.asker(Config{Wait: time.Minute, Progress: another})
	listed := make(chan int, 1)
	go func() { listed <- len(ask[events.ThreadList](patient, "thread.list", `{}`).Threads) }()
	r, stop = h.Run(projections.Config{})
	if n := <-listed; n != 3 {
		t.Errorf("%d of 3 threads are listed", n)
	}
	h.AwaitRunner(r)
	stop()
	h.Do("thread.create", "", `{}`)
	if n := len(ask[events.ThreadList](patient, "thread.list", `{}`).Threads); n != 3 {
		t.Errorf("nothing folds the log, and %d of 3 threads are listed", n)
	}
}

// The next query shows what a reply named.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	shared := buckets.NewProgress()
	h.Run(projections.Config{Progress: shared})
	a, b := h.asker(Config{Progress: shared}), h.asker(Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	for n := range 50 {
		r := h.React(id, n)
		for _, a := range []*asker{a, b} {
			doc := ask[events.Thread](a, "thread.get", fmt.Sprintf(`{"threadId":%q,"minVersion":%d}`, id, r.Version))
			if doc.Version < r.Version {
				t.Fatalf("version %d after a reply with %d", doc.Version, r.Version)
			}
			items := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`",`+seqOf(r)+`,"order":"desc","limit":1}`)
			if items.Total != int64(2*n+2) || items.Items[0].Index != int64(2*n+1) {
				t.Fatalf("%d items, the last %d, after %d turns", items.Total, items.Items[0].Index, n+1)
			}
			threads := ask[events.ThreadList](a, "thread.list", `{`+seqOf(r)+`}`)
			if threads.Threads[0].Version < r.Version {
				t.Fatalf("the list shows version %d after %d", threads.Threads[0].Version, r.Version)
			}
		}
	}
}

// At each version of a thread, queries show what the log folds to, and what the live
// documents were then.
func TestAtEveryVersion(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	au := readtest.NewAuthor(h.House.House, 3)
	au.Write(40)
	thread := au.Threads[0]
	type moment struct {
		version int64
		at      string
		thread  string
		items   string
	}
	var moments []moment
	for range 60 {
		au.Step(thread)
		h.AwaitRunner(r)
		got, err := a.q.Handle(t.Context(), acme, "thread.get", []byte(`{"threadId":"`+thread+`"}`), service.Meta{})
		if err != nil {
			break // it was deleted
		}
		doc := got.(*events.Thread)
		m := moment{version: doc.Version, at: doc.UpdatedAt, thread: readtest.Encode(t, doc)}
		m.items = readtest.Encode(t, ask[events.ItemList](a, "item.list", `{"threadId":"`+thread+`","limit":1000}`))
		moments = append(moments, m)
	}
	times := map[int64]string{} // of events, by version
	for c, err := range h.EventLog.Thread(t.Context(), acme, thread, 1) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			times[e.Version] = e.Time.ISO()
		}
	}
	for _, m := range moments {
		body := fmt.Sprintf(`{"threadId":%q,"at":{"version":%d}}`, thread, m.version)
		if got := readtest.Encode(t, ask[events.Thread](a, "thread.get", body)); got != m.thread {
			t.Errorf("version %d:\nthen %s\nnow  %s", m.version, m.thread, got)
		}
		body = fmt.Sprintf(`{"threadId":%q,"limit":1000,"at":{"version":%d}}`, thread, m.version)
		if got := readtest.Encode(t, ask[events.ItemList](a, "item.list", body)); got != m.items {
			t.Errorf("version %d:\nthen %s\nnow  %s", m.version, m.items, got)
		}
		if m.at == "" || times[m.version+1] == m.at {
			continue // another event came within the millisecond
		}
		body = fmt.Sprintf(`{"threadId":%q,"at":{"time":%q}}`, thread, m.at)
		if got := readtest.Encode(t, ask[events.Thread](a, "thread.get", body)); got != m.thread {
			t.Errorf("at %s:\nthen %s\nnow  %s", m.at, m.thread, got)
		}
	}
	if len(moments) < 2 {
		t.Fatalf("only %d versions were seen", len(moments))
	}
}

// A query that says how new its answer must be is never answered with not_found by
// read models that claim more than they show, or more than the log has. What the log
// does not have, or has deleted, is not found.
func TestFresh_NotFoundIsConfirmedByTheLog(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	claimed := buckets.NewProgress()
	a := h.asker(Config{Wait: 50 * time.Millisecond, Progress: claimed})
	made := h.Do("thread.create", "", `{}`)
	gone := h.Do("thread.create", "", `{}`)
	deleted := h.Do("thread.delete", gone.ThreadID, `{}`)
	code := func(thread, fresh string) events.Code {
		t.Helper()
		_, err := a.q.Handle(t.Context(), acme, "thread.get", []byte(`{"threadId":"`+thread+`",`+fresh+`}`), service.Meta{})
		return events.AsError(err).Code
	}
	claimed.Raise(uint64(deleted.Seq)) // and no document is there
	const unknown = "T-01900000-0000-7000-8000-000000000000"
	for _, c := range []struct {
		name, thread, fresh string
		want                events.Code
	}{
		{"a thread that the log has", made.ThreadID, seqOf(made), events.ProjectionBehind},
		{"its version", made.ThreadID, `"minVersion":1`, events.ProjectionBehind},
		{"a deleted thread", gone.ThreadID, seqOf(deleted), events.NotFound},
		{"no thread", unknown, seqOf(made), events.NotFound},
	} {
		if got := code(c.thread, c.fresh); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
	claimed.Raise(uint64(deleted.Seq + 100))
	if got := code(unknown, seqOf(made)); got != events.ProjectionBehind {
		t.Errorf("read models that show more than the log has: %s", got)
	}
}

// not_found is not the answer where the log has what the read models do not show yet, also where
// a query asks for nothing newer: it waits for them, or says that they are behind.
func TestNotFound_IsConfirmed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.asker(Config{Wait: 20 * time.Millisecond})
	id := h.Do("thread.create", "", `{"key":"k"}`).ThreadID
	thread, none := fmt.Sprintf(`{"threadId":%q}`, id), fmt.Sprintf(`{"threadId":%q}`, events.DeriveThreadID(acme, "none"))
	a.refused(events.ProjectionBehind, "thread.get", thread)
	a.refused(events.ProjectionBehind, "thread.get", `{"threadId":"key:k"}`)
	a.refused(events.NotFound, "thread.get", none)

	r, stop := h.Run(projections.Config{})
	h.AwaitRunner(r)
	stop()
	h.Await(a.q.cfg.Progress)
	ask[events.Thread](a, "thread.get", thread)
	added := h.Do("message.add", id, `{"role":"user","content":"one"}`)
	item := fmt.Sprintf(`{"threadId":%q,"itemId":%q}`, id, added.Result.ItemID)
	a.refused(events.ProjectionBehind, "item.get", item)

	patient := h.asker(Config{})
	answered := make(chan error, 1)
	go func() {
		_, err := patient.q.Handle(h.Context(), acme, "item.get", []byte(item), service.Meta{})
		answered <- err
	}()
	r, _ = h.Run(projections.Config{})
	if err := <-answered; err != nil {
		t.Errorf("while a runner catches up: %v", err)
	}
	h.Do("thread.delete", id, `{}`)
	h.AwaitRunner(r)
	patient.refused(events.NotFound, "item.get", item)
	patient.refused(events.NotFound, "thread.get", thread)
}

// A query whose sender waits for a shorter time than a query may is told how far the read models
// are while it still waits.
func TestBehind_IsToldWhileTheSenderWaits(t *testing.T) {
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{Wait: time.Minute})
	made := h.Do("thread.create", "", `{}`)
	h.AwaitRunner(r)
	h.Await(a.q.cfg.Progress)
	ask[events.ThreadList](a, "thread.list", `{`+seqOf(made)+`}`)
	thread := fmt.Sprintf(`{"threadId":%q,`, made.ThreadID)
	for _, c := range []struct{ name, body, want string }{
		{"thread.list", `{"minSeq":99999}`, fmt.Sprintf("the log up to %d, not yet 99999", made.Seq)},
		{"thread.get", thread + `"minSeq":99999}`, fmt.Sprintf("the log up to %d, not yet 99999", made.Seq)},
		{"thread.get", thread + `"minVersion":9999}`, fmt.Sprintf("the thread at version %d, not yet 9999", made.Version)},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
		_, err := a.q.Handle(ctx, acme, c.name, []byte(c.body), service.Meta{})
		if e := events.AsError(err); e.Code != events.ProjectionBehind || !strings.Contains(e.Message, c.want) || ctx.Err() != nil {
			t.Errorf("%s %s: %v, and its sender: %v", c.name, c.body, err, ctx.Err())
		}
		cancel()
	}
}

// What a query waited for one thing is not left for another.
func TestBehind_OneTimeForAllWaits(t *testing.T) {
	patience := time.Minute
	a := &asking{ctx: t.Context(), patience: &patience}
	for range 3 {
		ctx, done := a.waiting()
		before, _ := ctx.Deadline()
		time.Sleep(2 * time.Millisecond)
		done()
		again, done := a.waiting()
		done()
		if after, _ := again.Deadline(); after.Sub(before) > time.Millisecond {
			t.Errorf("the second wait ends %v after the first", after.Sub(before))
		}
	}
}
