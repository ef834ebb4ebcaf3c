package commands

import (
	"strconv"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// However many threads there are, the cache stays within its bytes, and what
// fell out of it is loaded again.
func TestCacheIsBounded(t *testing.T) {
	const limit = 200_000
	w := newWorld(t, Config{CacheBytes: limit})
	ids := make([]string, 2000)
	for i, a := range together(t, len(ids), func(i int) (*events.Reply, *events.Error) { return ask(t, w.d, "thread.create", `{}`) }) {
		if a.err != nil {
			t.Fatal(a.err, a.err.Cause)
		}
		ids[i] = a.reply.ThreadID
	}
	c := w.d.cache
	check := func() {
		t.Helper()
		w.until("the end of the threads' goroutines", func() bool { // they end a little after the last answer
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, e := range c.entries {
				if e.users > 0 {
					return false
				}
			}
			return true
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		sum := int64(0)
		for _, e := range c.entries {
			sum += e.bytes
		}
		if c.bytes > limit || sum != c.bytes || len(c.entries) != c.recent.Len() {
			t.Errorf("%d bytes are counted, %d held, in %d entries (%d in the list)", c.bytes, sum, len(c.entries), c.recent.Len())
		}
	}
	check()
	if n := len(c.entries); n > 500 || n < 20 {
		t.Errorf("%d of %d threads are held in %d bytes", n, len(ids), limit)
	}
	for _, id := range ids[:50] {
		if r := must(t, w.d, "item.create", on(id, hello)); r.Version != 3 {
			t.Fatalf("%s went to version %d", id, r.Version)
		}
	}
	check()
	if c.entries[tenant+"."+ids[49]] == nil { // used last
		t.Error("the thread that was used last is not held")
	}
	must(t, w.d, "context.set", on(ids[0], `{"content":"`+strings.Repeat("x", limit)+`"}`))
	check()
	if c.entries[tenant+"."+ids[0]] != nil {
		t.Error("a thread larger than the cache is held")
	}
	w.sameAsLog(w.d, ids[0])
}

// Commands over the limit of those in flight are refused at once, with nothing written, and
// the others succeed.
func TestTooManyCommands(t *testing.T) {
	w := newWorld(t, Config{InFlight: 4})
	id := create(t, w.d)
	done := 0
	for i, a := range together(t, 100, func(i int) (*events.Reply, *events.Error) {
		return ask(t, w.d, "item.create", with("c-"+strconv.Itoa(i), id, hello))
	}) {
		switch {
		case a.err == nil:
			done++
		case a.err.Code != events.Unavailable || !a.err.Code.Retry():
			t.Errorf("%d: %v", i, a.err)
		}
	}
	if n := len(w.byCommand(id)) - 1; n != done || done == 0 || done == 100 {
		t.Errorf("%d were answered as done, and %d are in the log", done, n)
	}
	must(t, w.d, "item.create", on(id, hello))
}
