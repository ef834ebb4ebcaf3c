package commands

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// relations folds what a thread's events say of its relationships.
func (w *world) relations(id string) map[string]events.RelationshipAdded {
	w.t.Helper()
	found := map[string]events.RelationshipAdded{}
	for _, c := range w.commits(id) {
		for i := range c.Events {
			switch d := c.Events[i].Data.(type) {
			case events.RelationshipAdded:
				name := string(d.Type) + " " + string(d.Role) + " " + d.ThreadID
				if _, twice := found[name]; twice {
					w.t.Errorf("%s has %s twice", id, name)
				}
				found[name] = d
			case events.RelationshipRemoved:
				name := string(d.Type) + " " + string(d.Role) + " " + d.ThreadID
				if _, there := found[name]; !there {
					w.t.Errorf("%s removes %s, which it has not", id, name)
				}
				delete(found, name)
			}
		}
	}
	return found
}

// twins checks that each relationship of the threads has its match on the other thread.
func (w *world) twins(ids ...string) {
	w.t.Helper()
	all, over := map[string]map[string]events.RelationshipAdded{}, map[string]bool{}
	for _, id := range ids {
		all[id] = w.relations(id)
		list := w.commits(id)
		over[id] = ended(list[len(list)-1])
	}
	for id, mine := range all {
		for name, d := range mine {
			role := events.ParentRole
			if d.Role == role {
				role = events.ChildRole
			}
			twin, there := all[d.ThreadID][string(d.Type)+" "+string(role)+" "+id]
			switch {
			case over[id] || over[d.ThreadID]:
			case !there:
				w.t.Errorf("%s has %s, and %s has no match", id, name, d.ThreadID)
			case (twin.MessageIndex == nil) != (d.MessageIndex == nil) || twin.MessageIndex != nil && *twin.MessageIndex != *d.MessageIndex || twin.Comment != d.Comment:
				w.t.Errorf("%s has %+v, and %s has %+v", id, d, d.ThreadID, twin)
			}
		}
	}
}

// AM-34, AM-37, AM-38, AM-41: a mention is recorded on both threads in one commit each, with
// opposite roles and the index of the message that mentions.
func TestMention_IsRecordedOnBothThreads(t *testing.T) {
	w := newWorld(t, Config{})
	a, b := create(t, w.d), must(t, w.d, "thread.create", `{"data":{"key":"other"}}`).ThreadID
	for range 3 {
		must(t, w.d, "item.create", on(a, hello))
	}
	silent := must(t, w.d, "item.create", on(a, strings.Replace(hello, `"type":"message"`, `"type":"message","silent":true`, 1)))
	before := w.lastSeq()
	request := with("c-1", a, `{"mentionedId":"key:other","comment":"see there"}`)
	reply := must(t, w.d, "thread.mention", request)
	if reply.ThreadID != a || len(reply.Events) != 1 || w.lastSeq() != before+2 || uint64(reply.Seq) <= before {
		t.Errorf("answered with %+v; the log grew by %d commits", reply, w.lastSeq()-before)
	}
	w.twins(a, b)
	mine := w.relations(a)["mention parent "+b]
	if mine.MessageIndex == nil || *mine.MessageIndex != 2 || mine.ItemID == "" || mine.ItemID == silent.Result.ItemID || mine.Comment != "see there" {
		t.Errorf("recorded as %+v", mine)
	}
	if len(w.relations(b)) != 1 {
		t.Errorf("the other thread has %+v", w.relations(b))
	}
	for _, d := range []*Dispatcher{w.d, w.another(Config{})} { // the repeat has the first answer, from any process
		if again := must(t, d, "thread.mention", request); fmt.Sprint(*again) != fmt.Sprint(*reply) {
			t.Errorf("the repeat was answered with %+v, and before with %+v", again, reply)
		}
	}
	if other := must(t, w.d, "thread.mention", on(a, `{"mentionedId":"`+b+`"}`)); len(other.Events) != 0 {
		t.Errorf("mentioned twice: %+v", other)
	}
	must(t, w.d, "thread.mention", on(b, `{"mentionedId":"`+a+`"}`)) // the other way round is another one
	w.twins(a, b)
	w.sameAsLog(w.d, a)
	w.sameAsLog(w.d, b)
}

// AM-47, AM-54: what cannot be mentioned, from where, and the words of the refusal.
func TestMention_Refused(t *testing.T) {
	w := newWorld(t, Config{})
	a, b := create(t, w.d), create(t, w.d)
	must(t, w.d, "item.create", on(a, hello))
	foreign, err := w.d.Do(t.Context(), "other", "thread.create", []byte(`{}`), Meta{})
	if err != nil {
		t.Fatal(err)
	}
	gone := create(t, w.d)
	must(t, w.d, "thread.delete", on(gone, `{}`))
	const none = "T-00000000-0000-7000-8000-000000000009"
	before := w.lastSeq()
	for _, c := range []struct {
		name, thread, data string
		code               events.Code
		says               string
	}{
		{"itself", a, `{"mentionedId":"` + a + `"}`, events.InvalidRequest, "itself"},
		{"an unknown thread", a, `{"mentionedId":"` + none + `"}`, events.NotFound, "Thread " + none + " not found"},
		{"from an unknown thread", none, `{"mentionedId":"` + a + `"}`, events.NotFound, "Thread " + none + " not found"},
		{"from an unknown key", "key:nobody", `{"mentionedId":"` + a + `"}`, events.NotFound, "Thread key:nobody not found"},
		{"an unknown key", a, `{"mentionedId":"key:nobody"}`, events.NotFound, "Thread key:nobody not found"},
		{"a deleted thread", a, `{"mentionedId":"` + gone + `"}`, events.NotFound, "Thread " + gone + " not found"},
		{"from a deleted thread", gone, `{"mentionedId":"` + a + `"}`, events.NotFound, "Thread " + gone + " not found"},
		{"a thread of another tenant", a, `{"mentionedId":"` + foreign.ThreadID + `"}`, events.NotFound, "Thread " + foreign.ThreadID + " not found"},
		{"beyond the last message", a, `{"mentionedId":"` + b + `","messageIndex":1}`, events.InvalidRequest, "from 0 to 0"},
		{"far beyond it", a, `{"mentionedId":"` + b + `","messageIndex":1000000000000000000}`, events.InvalidRequest, "limit"},
		{"before the first", a, `{"mentionedId":"` + b + `","messageIndex":-1}`, events.InvalidRequest, ""},
		{"in a thread without messages", b, `{"mentionedId":"` + a + `","messageIndex":0}`, events.InvalidRequest, "no messages"},
		{"a subject that is none", a, `{"mentionedId":"T-*.>"}`, events.InvalidRequest, ""},
	} {
		if e := refused(t, w.d, c.code, "thread.mention", on(c.thread, c.data)); !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %s", c.name, e.Message)
		}
	}
	stale := `{"threadId":"` + a + `","expectedVersion":1,"data":{"mentionedId":"` + b + `"}}`
	refused(t, w.d, events.VersionConflict, "thread.mention", stale)
	refused(t, w.d, events.InvalidRequest, "thread.commit", on(a, `{"commands":[{"command":"thread.mention","data":{"mentionedId":"`+b+`"}}]}`))
	if w.lastSeq() != before {
		t.Errorf("refusals wrote %d commits", w.lastSeq()-before)
	}
}

// A thread is the parent in so many relationships that it can be truncated, and no more.
func TestMention_Limit(t *testing.T) {
	k := &thread.State{}
	k.Version, k.Parents = 1, events.MaxRelationships
	other := &thread.State{}
	other.Version = 1
	const a, b = "T-00000000-0000-7000-8000-000000000001", "T-00000000-0000-7000-8000-000000000002"
	c := &thread.Command{ID: "c", Tenant: tenant, ThreadID: a, Parts: []thread.Part{{Name: "thread.mention", Data: events.MentionThread{MentionedID: b}}}}
	err := thread.NewGroup(map[string]*thread.State{a: k, b: other}).Do(c)
	if !errors.Is(err, &events.Error{Code: events.PayloadTooLarge}) || !strings.Contains(err.Error(), "limit") {
		t.Errorf("one more: %v", err)
	}
	k.Parents--
	if err := thread.NewGroup(map[string]*thread.State{a: k, b: other}).Do(c); err != nil {
		t.Errorf("the last: %v", err)
	}
}

// Commands over several threads at once, from two processes and in both directions, with others
// among them: each is done once and whole, and none waits for another for ever.
func TestGroup_Concurrent(t *testing.T) {
	w := newWorld(t, Config{})
	ds := []*Dispatcher{w.d, w.another(Config{})}
	ids := make([]string, 4)
	for i := range ids {
		ids[i] = create(t, ds[i%2])
	}
	const n = 96
	for i, a := range together(t, n, func(i int) (*events.Reply, *events.Error) {
		from, to := ids[i%4], ids[(i+1+i/4%3)%4]
		if i%3 == 0 {
			return ask(t, ds[i%2], "item.create", with("c-"+strconv.Itoa(i), from, hello))
		}
		return ask(t, ds[i/2%2], "thread.mention", with("c-"+strconv.Itoa(i), from, `{"mentionedId":"`+to+`"}`))
	}) {
		if a.err != nil {
			t.Errorf("%d: %v (%v)", i, a.err, a.err.Cause)
		}
	}
	w.twins(ids...)
	pairs := 0
	for _, id := range ids {
		pairs += len(w.relations(id))
		for _, d := range ds {
			w.sameAsLog(d, id)
		}
		for command, made := range w.byCommand(id) {
			if strings.HasPrefix(command, "c-") && made != 1 {
				t.Errorf("%s made %d events of %s", command, made, id)
			}
		}
	}
	if pairs != 8*2 {
		t.Errorf("%d records of 8 mentions", pairs)
	}
}

// A caller that gives up while it waits for a thread leaves no hold behind, and one that holds
// it makes others wait until it is done.
func TestGroup_HoldIsReleased(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	_, release, err := w.d.lockThread(t.Context(), tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	given, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, again, err := w.d.lockThread(given, tenant, id)
		if err == nil {
			again()
		}
		waiting <- err
	}()
	cancel()
	if err := <-waiting; !errors.Is(err, &events.Error{Code: events.Unavailable}) {
		t.Errorf("a hold that was given up: %v", err)
	}
	done := make(chan *events.Error, 1)
	go func() {
		_, err := ask(t, w.d, "item.create", on(id, hello))
		done <- err
	}()
	e := w.d.cache.acquire(tenant, id)
	defer w.d.cache.release(e)
	for waits := false; !waits; { // the command waits behind the hold
		e.mu.Lock()
		waits = len(e.waiting) > 0
		e.mu.Unlock()
	}
	select {
	case err := <-done:
		t.Errorf("a command was done while the thread was held: %v", err)
	default:
	}
	release()
	if err := <-done; err != nil {
		t.Errorf("after the hold: %v", err)
	}
}

// A thread with an exclusive writer is related by nobody else, whichever of the two threads it
// is; its holder's token opens the thread that the command names, and no other.
func TestMention_HeldThread(t *testing.T) {
	w := newWorld(t, Config{})
	a, b := create(t, w.d), create(t, w.d)
	token := must(t, w.d, "writer.claim", on(a, `{"holder":"editor"}`)).Result.Token
	refused(t, w.d, events.Held, "thread.mention", on(a, `{"mentionedId":"`+b+`"}`))
	refused(t, w.d, events.Held, "thread.mention", on(b, `{"mentionedId":"`+a+`"}`))
	held := func(thread, mentioned string) string {
		return `{"threadId":"` + thread + `","writerToken":"` + token + `","data":{"mentionedId":"` + mentioned + `"}}`
	}
	refused(t, w.d, events.Held, "thread.mention", held(b, a))
	must(t, w.d, "thread.mention", held(a, b))
	w.twins(a, b)
	other := create(t, w.d)
	must(t, w.d, "writer.claim", on(other, `{"holder":"somebody else"}`))
	refused(t, w.d, events.Held, "thread.mention", held(a, other)) // the token opens a alone
}
