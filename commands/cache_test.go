package commands

import (
	"strconv"
	"strings"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
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
		sum, window := int64(0), int64(0)
		for _, e := range c.entries {
			if sum += e.bytes; !e.kept {
				window += e.bytes
			}
		}
		if listed := c.recent.Len() + c.kept.Len(); c.bytes > limit || sum != c.bytes || window != c.window || len(c.entries) != listed {
			t.Errorf("%d bytes are counted, %d held, in %d entries (%d in the lists); %d of them recent, counted %d", c.bytes, sum, len(c.entries), listed, window, c.window)
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
	used := c.acquire(tenant, ids[1])
	w.d.Forget()
	if len(c.entries) != 1 || c.entries[tenant+"."+ids[1]] != used || c.bytes != used.bytes {
		t.Errorf("%d threads of %d bytes are held, want the one in use", len(c.entries), c.bytes)
	}
	c.release(used)
	w.sameAsLog(w.d, ids[0])
}

// Where the threads in use take more than the cache has, it still has a good part of them, in
// whatever order they are used; and those that are used often stay, however many pass.
func TestCache_ThreadsInTurn(t *testing.T) {
	size := entryBytes + (&thread.State{}).Bytes()
	for _, c := range []struct {
		name          string
		threads, hot  int // in units of a hundredth of what fits
		atLeast, most float64
	}{
		{"as many as fit", 100, 0, 1, 1},
		{"a tenth more than fit", 110, 0, 0.6, 0.95},
		{"twice as many as fit", 200, 0, 0.35, 0.5},
		{"ten times as many as fit", 1000, 0, 0.02, 0.1},
		{"some are used often, among ten times as many as fit", 1000, 20, 0.95, 1},
	} {
		const unit = 5
		cache := newCache(100*unit*size, NoMetrics{})
		use := func(n int) (had bool) {
			e := cache.acquire(tenant, "T-"+strconv.Itoa(n))
			if had = e.state != nil; !had {
				e.state = &thread.State{}
			}
			cache.release(e)
			return had
		}
		had, used := 0, 0
		for round := range 40 {
			for n := range c.threads * unit {
				one := use(n)
				if round < 20 { // until it knows
					continue
				}
				if c.hot == 0 {
					used++
				}
				if one && c.hot == 0 {
					had++
				}
				if c.hot > 0 && n%2 == 0 {
					if used++; use(-1 - n/2%(c.hot*unit)) {
						had++
					}
				}
			}
		}
		if share := float64(had) / float64(used); share < c.atLeast || share > c.most || cache.bytes > cache.limit {
			t.Errorf("%s: %.2f were cached, want %.2f to %.2f; %d bytes of %d", c.name, share, c.atLeast, c.most, cache.bytes, cache.limit)
		}
	}
}

// A thread that takes most of the cache stays in it while it is used.
func TestCache_LargeThread(t *testing.T) {
	size := entryBytes + (&thread.State{}).Bytes()
	cache := newCache(3*size/2, NoMetrics{})
	for i := range 20 {
		e := cache.acquire(tenant, "T-large")
		if (e.state != nil) != (i > 0) {
			t.Fatalf("use %d: cached %v", i, e.state != nil)
		}
		e.state = &thread.State{}
		cache.release(e)
	}
	other := cache.acquire(tenant, "T-other")
	other.state = &thread.State{}
	cache.release(other)
	if cache.bytes > cache.limit || len(cache.entries) != 1 {
		t.Errorf("%d bytes of %d in %d entries", cache.bytes, cache.limit, len(cache.entries))
	}
}

// One large thread in use pushes out those that stay, rather than being loaded for each command.
func TestCache_LargeThreadAmongSmallOnes(t *testing.T) {
	size := entryBytes + (&thread.State{}).Bytes()
	large := &thread.State{}
	create := &thread.Command{ID: "c", Tenant: tenant, ThreadID: "T-large", Time: 1, Parts: []thread.Part{
		{Name: "thread.create", Data: events.CreateThread{}},
		{Name: "context.set", Data: events.SetContext{Content: events.JSON(`"` + strings.Repeat("x", int(20*size)) + `"`)}},
	}}
	made, err := thread.Decide(large, create)
	if err != nil {
		t.Fatal(err)
	}
	for i := range made {
		thread.Evolve(large, &made[i])
	}
	cache := newCache(40*size, NoMetrics{})
	for n := range 60 * 40 { // in turn, until most stay
		e := cache.acquire(tenant, "T-"+strconv.Itoa(n%60))
		e.state = &thread.State{}
		cache.release(e)
	}
	if cache.kept.Len() < 20 {
		t.Fatalf("%d entries stay", cache.kept.Len())
	}
	for i := range 3 {
		e := cache.acquire(tenant, "T-large")
		if (e.state != nil) != (i > 0) {
			t.Fatalf("use %d: cached %v", i, e.state != nil)
		}
		e.state = large
		cache.release(e)
	}
	if cache.bytes > cache.limit {
		t.Errorf("%d bytes of %d", cache.bytes, cache.limit)
	}
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
		case a.err.Code != events.Unavailable || !a.err.Retry():
			t.Errorf("%d: %v", i, a.err)
		}
	}
	if n := len(w.byCommand(id)) - 1; n != done || done == 0 || done == 100 {
		t.Errorf("%d were answered as done, and %d are in the log", done, n)
	}
	must(t, w.d, "item.create", on(id, hello))
}
