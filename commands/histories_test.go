package commands

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// pageShelf stores a page for each value of next, and says which.
type pageShelf struct {
	shelf
	next   chan struct{}
	stored chan string // digests
}

func newPageShelf() *pageShelf {
	return &pageShelf{next: make(chan struct{}, 1000), stored: make(chan string, 1000)}
}

func (s *pageShelf) KeepPage(ctx context.Context, _, _ string, page []byte) error {
	select {
	case <-s.next:
		s.stored <- fmt.Sprintf("%x", sha256.Sum256(page))
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// large adds a message of which a page of a history holds one, and returns the version.
func (w *world) large(id string) int64 {
	w.t.Helper()
	return must(w.t, w.d, "item.create", on(id, strings.Replace(hello, "hello", strings.Repeat("x", 129<<10), 1))).Version
}

// A fork whose time is over before its parent's history is read is continued by its repeat, which
// waits for it: nothing is read or stored twice, so that the fork is made at last.
func TestFork_ContinuesWhatTookTooLong(t *testing.T) {
	shelf := newPageShelf()
	w := newWorld(t, Config{Contents: shelf})
	id := create(t, w.d)
	for range 5 * pagesAtOnce {
		w.large(id)
	}
	request := with("c-1", id, `{"messageIndex":30}`)
	first, repeat := make(chan error, 1), make(chan error, 1)
	fork := func(ctx context.Context, done chan<- error) {
		_, err := w.d.Do(ctx, tenant, "thread.fork", []byte(request), Meta{})
		done <- err
	}
	short, end := context.WithCancel(t.Context())
	go fork(short, first)
	seen := map[string]bool{}
	for range 2 * pagesAtOnce {
		shelf.next <- struct{}{}
		seen[<-shelf.stored] = true
	}
	over, giveUp := context.WithCancel(t.Context())
	giveUp()
	if h, err := w.d.openHistory(over, historyOf{tenant: tenant, thread: id}); err == nil {
		w.d.closeHistory(h)
		t.Fatal("two forks read the history at the same time")
	}
	go fork(t.Context(), repeat)
	end()
	if err := <-first; err == nil {
		t.Fatal("the first one was done in time")
	}
	close(shelf.next)
	if err := <-repeat; err != nil {
		t.Fatal(err)
	}
	if len(shelf.stored) < pagesAtOnce {
		t.Errorf("the repeat stored %d pages", len(shelf.stored))
	}
	for len(shelf.stored) > 0 {
		if digest := <-shelf.stored; seen[digest] {
			t.Errorf("page %s was stored again", digest)
		}
	}
}

// A page that could not be stored is stored by the next fork, and a fork that waits for another
// one's history ends with its time.
func TestFork_StoresWhatWasNotStored(t *testing.T) {
	shelf := newPageShelf()
	w := newWorld(t, Config{Contents: shelf})
	id := create(t, w.d)
	for range 3 * pagesAtOnce {
		w.large(id)
	}
	of := historyOf{tenant: tenant, thread: id}
	h, err := w.d.openHistory(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := w.d.beginFork(ended, h); err == nil {
		t.Fatal("it reads without time")
	}
	over := make(chan error, 1)
	go func() {
		_, err := w.d.openHistory(ended, of)
		over <- err
	}()
	if err := <-over; events.AsError(err).Code != events.Unavailable {
		t.Errorf("a fork without time waits: %v", err)
	}
	if err := w.d.readHistory(t.Context(), h, w.commits(id)[pagesAtOnce].Seq); err != nil {
		t.Fatal(err)
	}
	made := len(h.fresh)
	if _, err := w.d.storePages(ended, h, false); err == nil || len(h.fresh) != made || made == 0 {
		t.Fatalf("%d pages of %d are still to be stored: %v", len(h.fresh), made, err)
	}
	w.d.closeHistory(h)
	close(shelf.next)
	must(t, w.d, "thread.fork", on(id, `{"messageIndex":20}`))
	if len(shelf.stored) < 2*pagesAtOnce {
		t.Errorf("%d pages were stored", len(shelf.stored))
	}
}

// A history is kept for forks up to the same version, unless it was folded in part because its log
// is broken.
func TestHistories_Kept(t *testing.T) {
	w := newWorld(t, Config{})
	open := func(upTo int64) *history {
		t.Helper()
		h, err := w.d.openHistory(t.Context(), historyOf{tenant: tenant, thread: "T-1", upTo: upTo})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, broken := range []bool{false, true} {
		h := open(0)
		h.pages, h.broken = make([]events.HistoryPart, 1), broken
		w.d.closeHistory(h)
		early := open(5)
		if early == h {
			t.Fatal("a fork of an earlier version has a later history")
		}
		w.d.closeHistory(early)
		next := open(0)
		if (next == h) == broken {
			t.Errorf("broken: %v, kept: %v", broken, next == h)
		}
		w.d.closeHistory(next)
	}
}

// A fork at an early version reads no later commits.
func TestFork_ReadsNoLaterCommits(t *testing.T) {
	shelf := newPageShelf()
	close(shelf.next)
	w := newWorld(t, Config{Contents: shelf})
	id := create(t, w.d)
	var then int64
	for range 8 {
		then = w.large(id)
	}
	for range 8 {
		w.large(id)
	}
	must(t, w.d, "thread.fork", on(id, fmt.Sprintf(`{"version":%d}`, then)))
	h, err := w.d.openHistory(t.Context(), historyOf{tenant: tenant, thread: id, upTo: then})
	if err != nil || h.version != then || h.seq != w.commits(id)[8].Seq {
		t.Errorf("it has read up to commit %d, version %d, of %d", h.seq, h.version, then)
	}
}
