package query

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/service"
)

// waits receives whenever a query begins to wait for a place.
type waits chan struct{}

func (w waits) Places(_ string, _, waiting int) {
	if waiting > 0 {
		w <- struct{}{}
	}
}

func (waits) PlaceRefused(string, string) {}

// A query of a thread as it was has the whole thread in memory: it waits for a place, and
// returns it once it is answered, or refused.
func TestPast_WaitsForAPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	waiting := make(waits, 8)
	places := quota.NewPool("past", quota.Places{Total: 1}, waiting)
	a := h.asker(Config{Past: places})
	id := h.Do("thread.create", "", `{}`).ThreadID
	past := []byte(`{"threadId":"` + id + `","at":{"version":1}}`)
	free := func() func() {
		t.Helper()
		leave, err := places.Try("noisy")
		if err != nil {
			t.Fatalf("the place is not free: %v", err)
		}
		return leave
	}
	leave := free()
	answered := make(chan error, 2)
	send := func(ctx context.Context) {
		_, err := a.q.Handle(ctx, acme, "thread.get", past, service.Meta{})
		answered <- err
	}
	ctx, giveUp := context.WithCancel(t.Context())
	go send(ctx)
	select {
	case <-waiting:
	case err := <-answered:
		t.Fatalf("it was answered without a place: %v", err)
	}
	giveUp()
	var refused *events.Error
	if err := <-answered; !errors.As(err, &refused) || refused.Code != events.Unavailable {
		t.Errorf("a query that gave up: %v", err)
	}
	go send(t.Context())
	<-waiting
	leave()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	free()()
	if _, err := a.q.Handle(t.Context(), acme, "thread.get", []byte(`{"threadId":"`+id+`","at":{"version":99}}`), service.Meta{}); err == nil {
		t.Error("a version that is not there was shown")
	}
	free()()
}

// foldTo puts back a fold of a thread, up to a bound, that has read its first commits only, and in
// which the thread has a title that the log does not say.
func (a *asker) foldTo(of pastOf, commits int, title string) {
	a.Helper()
	if _, err := a.q.pasts.Take(a.Context(), of); err != nil {
		a.Fatal(err)
	}
	f := a.q.models.NewFold(of.until)
	ended := errors.New("its time is over")
	err := f.Continue(func(yield func(*events.Commit, error) bool) {
		for c, err := range a.EventLog.Thread(a.Context(), of.tenant, of.thread, 1) {
			if commits--; commits < 0 {
				yield(nil, ended)
				return
			}
			if !yield(c, err) {
				return
			}
		}
	}, nil)
	if !errors.Is(err, ended) {
		a.Fatal(err)
	}
	doc := f.Memory.Get(documents.Place{Kind: documents.Threads, Thread: documents.ThreadName(of.tenant, of.thread)})
	doc.(*events.Thread).Title = title
	a.q.pasts.Put(of, f, f.Bytes)
}

// A query of a thread as it was continues with what an earlier one about the same version has
// folded, also if that had no time to finish; one about another version does not.
func TestPast_ContinuesWhatWasFolded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{"title":"by the log"}`).ThreadID
	for range 5 {
		h.Do("item.create", id, `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}}`)
	}
	at := func(version int64) (title string, items int) {
		t.Helper()
		where := fmt.Sprintf(`{"threadId":%q,"at":{"version":%d}}`, id, version)
		return ask[events.Thread](a, "thread.get", where).Title, len(ask[events.ItemList](a, "item.list", where).Items)
	}
	last := h.Folded(id, documents.Until{}).Version
	of := pastOf{tenant: acme, thread: id, until: documents.Until{Version: last}}
	a.foldTo(of, 3, "as it was folded")
	for range 2 {
		if title, items := at(last); title != "as it was folded" || items != 5 {
			t.Errorf("its title is %q, and it has %d items: it was folded again, or not to its end", title, items)
		}
	}
	if title, _ := at(last - 1); title != "by the log" {
		t.Errorf("another version has what was folded of this one: %q", title)
	}
	if f, err := a.q.pasts.Take(t.Context(), of); err != nil || f == nil || f.Bytes == 0 {
		t.Errorf("nothing is kept: %+v, %v", f, err)
	}
}

// What was folded of a thread that was deleted since is not shown: its events may be erased.
func TestPast_ErasedSince(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{"title":"by the log"}`).ThreadID
	version := h.Do("item.create", id, `{"item":{"type":"message","role":"user","content":[]}}`).Version
	a.foldTo(pastOf{tenant: acme, thread: id, until: documents.Until{Version: version}}, 1, "as it was folded")
	body := fmt.Sprintf(`{"threadId":%q,"at":{"version":%d}}`, id, version)
	if title := ask[events.Thread](a, "thread.get", body).Title; title != "as it was folded" {
		t.Fatalf("its title is %q", title)
	}
	h.Do("thread.delete", id, `{"purge":true}`)
	out, err := a.q.Handle(t.Context(), acme, "thread.get", []byte(body), service.Meta{})
	if got, ok := out.(*events.Thread); ok && got.Title != "by the log" { // nobody has erased it yet
		t.Errorf("it shows what was folded before: %+v, %v", got, err)
	}
}

// What a query does to its answer does not change what the next one shows.
func TestPast_AnswersAreCopies(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.Do("thread.create", "", `{"title":"one"}`).ThreadID
	p := &past{h.Models, h.Folded(id, documents.Until{})}
	place := documents.Place{Kind: documents.Threads, Thread: documents.ThreadName(acme, id)}
	get := func() ([]found, error) { return p.get(t.Context(), place) }
	find := func() ([]found, error) { return p.find(t.Context(), documents.Threads, place.Thread) }
	for range 2 {
		for name, read := range map[string]func() ([]found, error){"get": get, "find": find} {
			out, err := read()
			if err != nil || len(out) != 1 || out[0].doc.(*events.Thread).Title != "one" {
				t.Fatalf("%s: %+v, %v", name, out, err)
			}
			out[0].doc.(*events.Thread).Title = "two"
		}
	}
}
