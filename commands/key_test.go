package commands

import (
	"strconv"
	"sync"
	"testing"

	"github.com/skein-threads/skein/events"
)

// A key is taken once, by whichever dispatcher, and names its thread from then
// on (EK-17, C-2).
func TestKeys(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	first := must(t, w.d, "thread.create", `{"data":{"key":"support/42 * > .","title":"Order"}}`)
	for _, d := range []*Dispatcher{w.d, other} {
		taken := refused(t, d, events.AlreadyExists, "thread.create", `{"data":{"key":"support/42 * > ."}}`)
		if taken.Details == nil || taken.Details.Entity != "thread key" {
			t.Errorf("the refusal says %+v", taken.Details)
		}
		named := must(t, d, "item.create", on("key:support/42 * > .", hello))
		if named.ThreadID != first.ThreadID {
			t.Errorf("the key names %s, want %s", named.ThreadID, first.ThreadID)
		}
		refused(t, d, events.NotFound, "item.create", on("key:support", hello))
	}
	refused(t, w.d, events.InvalidRequest, "thread.create", on("key:other", `{}`))
	if list := w.commits(events.KeyAggregate("support/42 * > .")); len(list) != 1 {
		t.Errorf("the key's own aggregate has %d commits", len(list))
	}
}

// The key of a deleted thread may be taken again, and then names the new one.
func TestKeys_AreReleased(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	var last string
	for range 3 {
		r := must(t, w.d, "thread.create", `{"data":{"key":"k"}}`)
		if r.ThreadID == last {
			t.Error("the same thread was made again")
		}
		last = r.ThreadID
		must(t, other, "item.create", on("key:k", hello))
		must(t, other, "thread.delete", on("key:k", `{}`))
		refused(t, w.d, events.NotFound, "item.create", on("key:k", hello))
		refused(t, w.d, events.NotFound, "item.create", on(r.ThreadID, hello))
		refused(t, w.d, events.AlreadyExists, "thread.create", on(r.ThreadID, `{}`))
	}
	list := w.commits(events.KeyAggregate("k"))
	if len(list) != 6 || list[5].Events[0].Type != events.KeyReleasedType {
		t.Errorf("the key's aggregate has %d commits", len(list))
	}
}

// Of twenty that want one key at once, from two dispatchers, one gets it.
func TestOneOfManyGetsTheKey(t *testing.T) {
	w := newWorld(t, Config{})
	ds := []*Dispatcher{w.d, w.another(Config{})}
	for round := range 3 {
		body := `{"data":{"key":"k` + strconv.Itoa(round) + `"}}`
		won, codes := 0, map[events.Code]int{}
		for _, a := range together(t, 20, func(i int) (*events.Reply, *events.Error) { return ask(t, ds[i%2], "thread.create", body) }) {
			if a.err == nil {
				won++
			} else {
				codes[a.err.Code]++
			}
		}
		if won != 1 || codes[events.AlreadyExists] != 19 {
			t.Errorf("%d got the key, the others %v", won, codes)
		}
	}
}

// All who resolve a key at once get the same thread, which one of them made.
func TestResolveTogether(t *testing.T) {
	w := newWorld(t, Config{})
	ds := []*Dispatcher{w.d, w.another(Config{})}
	for round := range 3 {
		body := `{"data":{"key":"k` + strconv.Itoa(round) + `"}}`
		made, threads := 0, map[string]int{}
		for i, a := range together(t, 20, func(i int) (*events.Reply, *events.Error) { return ask(t, ds[i%2], "thread.resolve", body) }) {
			if a.err != nil {
				t.Fatalf("%d: %v (%v)", i, a.err, a.err.Cause)
			}
			threads[a.reply.ThreadID]++
			if a.reply.Events[0].Type == events.ThreadCreatedType {
				made++
			}
		}
		if len(threads) != 1 || made != 1 {
			t.Errorf("the threads are %v, %d of them made", threads, made)
		}
	}
}

// A key whose thread is deleted before the command gets there is resolved all
// the same, to a new thread.
func TestResolveWhileDeleted(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	old := must(t, w.d, "thread.create", `{"data":{"key":"k"}}`).ThreadID
	e := w.d.cache.acquire(tenant, old) // the thread is busy: what comes waits
	e.mu.Lock()
	e.busy = true
	e.mu.Unlock()
	resolved := make(chan result, 1)
	go func() {
		reply, err := ask(t, w.d, "thread.resolve", `{"data":{"key":"k"}}`)
		resolved <- result{reply, err}
	}()
	w.until("the command", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.waiting) == 1
	})
	must(t, other, "thread.delete", on(old, `{}`))
	w.d.runJobs(e, nil, nil)
	if r := <-resolved; r.err != nil || r.reply.ThreadID == old || r.reply.Events[0].Type != events.ThreadCreatedType {
		t.Errorf("resolved to %+v, %v", r.reply, r.err)
	}
}

// Many callers resolve a key while its thread is deleted again and again: none of them is
// refused.
func TestResolve_ConcurrentWithDeletes(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	var deleting sync.WaitGroup
	deleting.Go(func() {
		for range 30 {
			_, _ = ask(t, other, "thread.delete", on("key:k", `{}`))
		}
	})
	made := map[string]bool{}
	for i, a := range together(t, 100, func(int) (*events.Reply, *events.Error) { return ask(t, w.d, "thread.resolve", `{"data":{"key":"k"}}`) }) {
		if a.err != nil {
			t.Fatalf("%d: %v (%v)", i, a.err, a.err.Cause)
		}
		made[a.reply.ThreadID] = true
	}
	deleting.Wait()
	for id := range made {
		w.commits(id)
	}
	w.commits(events.KeyAggregate("k"))
}

// The threads that hold a key one after another may have clocks that differ;
// the key's own time does not go back.
func TestTimeOfAKey(t *testing.T) {
	w := newWorld(t, Config{})
	ahead := w.another(Config{Now: clock("2027-01-01T00:00:00Z")})
	must(t, ahead, "thread.create", `{"data":{"key":"k"}}`)
	must(t, ahead, "thread.delete", on("key:k", `{}`))
	must(t, w.d, "thread.create", `{"data":{"key":"k"}}`)
	if n := len(w.commits(events.KeyAggregate("k"))); n != 3 { // which checks the times
		t.Errorf("%d commits", n)
	}
}

type result struct {
	reply *events.Reply
	err   *events.Error
}

// together calls a function n times at once and returns the results.
func together(t *testing.T, n int, do func(i int) (*events.Reply, *events.Error)) []result {
	t.Helper()
	out := make([]result, n)
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			out[i].reply, out[i].err = do(i)
		})
	}
	close(start)
	all.Wait()
	return out
}

// A command that names its thread by a key is done once, though the key has gone to
// another thread before its repeat came, on whichever process.
func TestRepeat_ByKeyThatHasMoved(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	const (
		resolve = `{"commandId":"c-resolve","data":{"key":"k"}}`
		create  = `{"commandId":"c-item","threadId":"key:k","data":{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}}`
		remove  = `{"commandId":"c-delete","threadId":"key:k","data":{}}`
	)
	all := []struct{ name, body string }{{"thread.resolve", resolve}, {"item.create", create}, {"thread.delete", remove}}
	var first []*events.Reply
	for _, c := range all {
		first = append(first, must(t, w.d, c.name, c.body))
	}
	again := func(of string) {
		t.Helper()
		for i, c := range all {
			for _, d := range []*Dispatcher{w.d, other} {
				if got := must(t, d, c.name, c.body); got.ThreadID != first[i].ThreadID || got.Seq != first[i].Seq || len(got.Events) != len(first[i].Events) {
					t.Errorf("%s: a repeat of %s was answered with %+v, and before with %+v", of, c.name, got, first[i])
				}
			}
		}
	}
	again("a key that nobody has")
	next := must(t, w.d, "thread.resolve", `{"data":{"key":"k"}}`)
	again("a key that another thread has")
	must(t, w.d, "thread.delete", on(next.ThreadID, `{}`))
	must(t, other, "thread.create", `{"data":{"key":"k"}}`)
	again("a key that a third thread has")
	if n := len(w.commits(events.KeyAggregate("k"))); n != 5 {
		t.Errorf("the key has %d commits, want 5", n)
	}
}
