package commands

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/skein-threads/skein/events"
)

// Nothing is refused on the ground of a state that was cached: what another
// dispatcher has done since counts.
func TestNoRefusalOnAStaleState(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	id := create(t, w.d)
	must(t, other, "context.resolve", on(id, `{}`)) // both have it in their caches
	for _, step := range []struct{ name, first, then string }{
		{"thread.status", `{"to":"streaming"}`, `{"to":"closed"}`},
		{"item.create", `{"item":{"id":"itm_1","type":"message","role":"user","content":[]}}`, `{"item":{"type":"message","role":"user","content":[],"parentItemId":"itm_1"}}`},
		{"context.create", `{"id":"ctx_1"}`, `{}`},
	} {
		must(t, w.d, step.name, on(id, step.first))
		must(t, other, step.name, on(id, step.then))
	}
	must(t, w.d, "context.set", on(id, `{"contextId":"ctx_1","content":{"a":1}}`))
	version := must(t, other, "context.set", on(id, `{"contextId":"ctx_1","patch":{"b":2}}`)).Version
	must(t, w.d, "thread.update", `{"threadId":"`+id+`","expectedVersion":`+strconv.FormatInt(version, 10)+`,"data":{"title":"x"}}`)
	if e := refused(t, other, events.VersionConflict, "thread.update", `{"threadId":"`+id+`","expectedVersion":`+strconv.FormatInt(version, 10)+`,"data":{"title":"x"}}`); *e.Details.CurrentVersion != version+1 {
		t.Errorf("told of version %d, want %d", *e.Details.CurrentVersion, version+1)
	}
	// A refusal amid others, where one before it was done on the stale state.
	must(t, w.d, "item.create", on(id, `{"item":{"id":"itm_2","type":"message","role":"user","content":[]}}`))
	jobs := jobsOf(t, other, [2]string{"item.create", on(id, hello)}, [2]string{"item.status", on(id, `{"itemId":"itm_2","to":"completed"}`)}, [2]string{"item.create", on(id, hello)})
	rounds(other, id, jobs)
	for i, j := range jobs {
		if a := <-j.done; a.err != nil {
			t.Errorf("job %d: %v", i, a.err)
		}
	}
	w.sameAsLog(w.d, id)
	w.sameAsLog(other, id)
}

// Two dispatchers write one thread at once: every command is done once, the
// thread's versions have no gap, and of those that expect the same version one
// is done.
func TestTwoWriters(t *testing.T) {
	w := newWorld(t, Config{})
	ds := []*Dispatcher{w.d, w.another(Config{})}
	id := create(t, w.d)
	const each = 60
	for i, a := range together(t, 2*each, func(i int) (*events.Reply, *events.Error) {
		return ask(t, ds[i%2], "item.create", with("c-"+strconv.Itoa(i), id, hello))
	}) {
		if a.err != nil {
			t.Fatalf("%d: %v (%v)", i, a.err, a.err.Cause)
		}
	}
	list := w.commits(id)
	version := list[len(list)-1].Version
	if version != 2+2*each {
		t.Errorf("%d items led to version %d", 2*each, version)
	}
	for i := range 2 * each {
		if n := w.byCommand(id)["c-"+strconv.Itoa(i)]; n != 1 {
			t.Fatalf("command %d is in the log %d times", i, n)
		}
	}
	expecting := `{"threadId":"` + id + `","expectedVersion":` + strconv.FormatInt(version, 10) + `,"data":` + hello + `}`
	won := 0
	for _, a := range together(t, 12, func(i int) (*events.Reply, *events.Error) { return ask(t, ds[i%2], "item.create", expecting) }) {
		switch {
		case a.err == nil:
			won++
		case a.err.Code != events.VersionConflict:
			t.Errorf("%v (%v)", a.err, a.err.Cause)
		}
	}
	if won != 1 {
		t.Errorf("%d commands were done at version %d", won, version)
	}
	for _, d := range ds {
		w.sameAsLog(d, id)
	}
}

// merges counts the commits of a dispatcher.
type merges struct {
	NoMetrics
	commits, commands atomic.Int64
}

func (m *merges) Merged(commands int) {
	m.commits.Add(1)
	m.commands.Add(int64(commands))
}

// Commands that wait for one thread share commits; each has an answer of its
// own, and the refused ones of them stop no other.
func TestMergedCommits(t *testing.T) {
	w := newWorld(t, Config{})
	count := &merges{}
	w.d.metrics = count
	id := create(t, w.d)
	count.commits.Store(0)
	const n = 300
	replies := together(t, n, func(i int) (*events.Reply, *events.Error) {
		if i%3 == 2 {
			return ask(t, w.d, "item.status", on(id, `{"itemId":"itm_nobody","to":"completed"}`))
		}
		return ask(t, w.d, "item.create", with("c-"+strconv.Itoa(i), id, `{"item":{"id":"itm_`+strconv.Itoa(i)+`","type":"message","role":"user","content":[]}}`))
	})
	versions := map[int64]bool{}
	for i, a := range replies {
		if i%3 == 2 {
			if a.err == nil || a.err.Code != events.NotFound {
				t.Errorf("%d: %+v %v", i, a.reply, a.err)
			}
			continue
		}
		if a.err != nil {
			t.Fatalf("%d: %v (%v)", i, a.err, a.err.Cause)
		}
		if a.reply.Result.ItemID != "itm_"+strconv.Itoa(i) || len(a.reply.Events) != 1 || versions[a.reply.Version] {
			t.Errorf("%d was answered %+v", i, a.reply)
		}
		versions[a.reply.Version] = true
	}
	list := w.commits(id)
	if list[len(list)-1].Version != 2+200 || len(list) > 150 || int64(len(list)-1) != count.commits.Load() {
		t.Errorf("200 items led to version %d in %d commits; %d were told of", list[len(list)-1].Version, len(list)-1, count.commits.Load())
	}
	t.Logf("200 items in %d commits, among 100 refusals", len(list)-1)
	must(t, w.d, "item.create", with("c-0", id, `{"item":{"id":"itm_0","type":"message","role":"user","content":[]}}`)) // and each can be repeated
	w.sameAsLog(w.d, id)
}
