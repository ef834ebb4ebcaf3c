package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// lawful checks the precondition of each event of some threads.
func (w *world) lawful(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		ledger := &thread.Ledger{}
		for _, c := range w.commits(id) {
			ledger.Commit(c, func(e *events.Event, fault error) { w.t.Errorf("%s: %s: %v", id, e.Type, fault) })
		}
	}
}

// AM-33, AM-36, AM-43, C-11: a handoff makes a thread that begins with the summary as a message
// of the system, has the owner of the first one and nothing else of it, and is recorded on both
// with the comment.
func TestHandoff_WithASummary(t *testing.T) {
	w := newWorld(t, Config{})
	made := must(t, w.d, "thread.create", `{"data":{"title":"Order 42","agentId":"triage","userId":"ada","env":{"initial":{"tags":["a"]}},"metadata":{"m":1},"context":{"n":1}}}`)
	id := made.ThreadID
	must(t, w.d, "thread.update", on(id, `{"draft":"later","agentMode":"rush","maxTokens":7}`))
	must(t, w.d, "file.write", on(id, `{"path":"/d/x","external":"https://example.org/x"}`))
	say(t, w.d, id, "user", "one")
	two := say(t, w.d, id, "assistant", "two")
	version := w.commits(id)[len(w.commits(id))-1].Version
	request := with("h-1", id, `{"summary":"Order \"42\"\nwas lost.","comment":"the refund","key":"refund"}`)
	reply := must(t, w.d, "thread.handoff", request)
	if reply.ThreadID != id || reply.Version != version+1 || reply.Result == nil || !events.ValidThreadID(reply.Result.ChildID) || reply.Result.ExecutionID != "" {
		t.Fatalf("answered with %+v, %+v", reply, reply.Result)
	}
	child := reply.Result.ChildID
	w.twins(id, child)
	w.lawful(id, child)
	w.sameAsLog(w.d, child)
	w.sameAsLog(w.d, id)
	for _, side := range []struct{ thread, name string }{{id, "handoff parent " + child}, {child, "handoff child " + id}} {
		d := w.relations(side.thread)[side.name]
		if d.MessageIndex == nil || *d.MessageIndex != 1 || d.Comment != "the refund" || side.thread == id && d.ItemID != two {
			t.Errorf("%s: %+v", side.name, d)
		}
	}
	var types []string
	for _, e := range w.first(child) {
		types = append(types, string(e.Type))
		switch d := e.Data.(type) {
		case events.ThreadCreated:
			if d.AgentID != "triage" || d.UserID != "ada" || d.Title != "" || d.Env != nil || d.Metadata != nil || d.MainThreadID != "" || d.OriginThreadID != "" || d.ForkPointIndex != nil {
				t.Errorf("created as %+v", d)
			}
		case events.ContextCreated:
			if string(d.Content) != "null" {
				t.Errorf("its context: %s", d.Content)
			}
		case events.ItemCreated:
			if d.Role != events.System || d.Status != events.ItemCompleted || string(d.Content) != `[{"type":"input_text","text":"Order \"42\"\nwas lost."}]` {
				t.Errorf("it begins with %+v", d)
			}
		}
	}
	if got := strings.Join(types, " "); got != "thread.created context.created key.claimed item.created relationship.added" {
		t.Errorf("it was made of %s", got)
	}
	for name, d := range map[string]*Dispatcher{"this process": w.d, "another": w.another(Config{})} {
		if again := must(t, d, "thread.handoff", request); fmt.Sprint(*again.Result) != fmt.Sprint(*reply.Result) || again.Seq != reply.Seq {
			t.Errorf("%s: the repeat made %+v", name, again.Result)
		}
	}
	// The agent that takes over is in charge; a thread of no message is handed off, too.
	bare := create(t, w.d)
	other := must(t, w.d, "thread.handoff", on(bare, `{"summary":"s","agentId":"billing"}`)).Result.ChildID
	if d := w.first(other)[0].Data.(events.ThreadCreated); d.AgentID != "billing" {
		t.Errorf("created as %+v", d)
	}
	if d := w.relations(other)["handoff child "+bare]; d.MessageIndex != nil {
		t.Errorf("made at %d of a thread without messages", *d.MessageIndex)
	}
	w.lawful(bare, other)
}

// allBut knows every agent but one.
type allBut string

func (a allBut) Knows(_ context.Context, _, name string) error {
	if name == string(a) {
		return events.Missing("agent", name)
	}
	return nil
}

// A handoff that is refused leaves nothing of either thread.
func TestHandoff_Refusals(t *testing.T) {
	w := newWorld(t, Config{Agents: allBut("nobody")})
	id := create(t, w.d)
	say(t, w.d, id, "user", "one")
	empty := create(t, w.d)
	gone := create(t, w.d)
	must(t, w.d, "thread.delete", on(gone, `{}`))
	must(t, w.d, "thread.create", `{"data":{"key":"mine"}}`)
	held := create(t, w.d)
	must(t, w.d, "writer.claim", on(held, `{"holder":"ada","ttlMs":300000}`))
	const other = "T-00000000-0000-4000-8000-000000000000"
	at := w.lastSeq()
	for _, c := range []struct {
		name, thread, data string
		code               events.Code
		says               string
	}{
		{"no author", id, `{}`, events.InvalidRequest, "define the policy handoff"},
		{"an unknown agent", id, `{"agentId":"nobody"}`, events.NotFound, "agent"},
		{"no messages", empty, `{"agentId":"a"}`, events.InvalidRequest, "no message"},
		{"a blank summary", id, `{"summary":" \n\t "}`, events.InvalidRequest, "needs a text"},
		{"a long summary", id, `{"summary":"` + strings.Repeat("x", 65537) + `"}`, events.InvalidRequest, "/data/summary"},
		{"a deleted thread", gone, `{"summary":"s"}`, events.NotFound, "Thread " + gone + " not found"},
		{"no thread", other, `{"summary":"s"}`, events.NotFound, "Thread " + other + " not found"},
		{"no key", "key:none", `{"summary":"s"}`, events.NotFound, "Thread key:none not found"},
		{"a taken key", id, `{"summary":"s","key":"mine"}`, events.AlreadyExists, "mine"},
		{"a taken key, and no summary yet", id, `{"agentId":"a","key":"mine"}`, events.AlreadyExists, "mine"},
		{"a writer", held, `{"summary":"s"}`, events.Held, "ada"},
	} {
		_, err := ask(t, w.d, "thread.handoff", on(c.thread, c.data))
		if err == nil || err.Code != c.code || !strings.Contains(err.Message+fmt.Sprint(err.Details), c.says) {
			t.Errorf("%s: %+v", c.name, err)
		}
	}
	reply, err := w.d.Do(t.Context(), "globex", "thread.handoff", []byte(on(id, `{"summary":"s"}`)), Meta{})
	if e := events.AsError(err); reply != nil || e.Code != events.NotFound {
		t.Errorf("another tenant: %v, %v", reply, err)
	}
	if now := w.lastSeq(); now != at {
		t.Errorf("%d commits were written", now-at)
	}
}

// Handoffs of one thread at once, from several processes, are all made, each once.
func TestHandoff_AtOnce(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	say(t, w.d, id, "user", "one")
	processes := []*Dispatcher{w.d, w.another(Config{}), w.another(Config{})}
	const each = 4
	var all sync.WaitGroup
	made := make(chan string, 2*each*len(processes))
	for n, d := range processes {
		for i := range each {
			for range 2 { // each twice
				all.Go(func() {
					reply, err := d.Do(context.Background(), tenant, "thread.handoff", []byte(with(fmt.Sprint("h-", n, "-", i), id, `{"summary":"s"}`)), Meta{})
					if err != nil {
						t.Error(err)
						return
					}
					made <- reply.Result.ChildID
				})
			}
		}
	}
	all.Wait()
	close(made)
	children := map[string]int{}
	for child := range made {
		children[child]++
	}
	if len(children) != each*len(processes) || len(w.relations(id)) != len(children) {
		t.Fatalf("%d threads, and %d relationships", len(children), len(w.relations(id)))
	}
	w.twins(append(slices.Collect(maps.Keys(children)), id)...)
	for child := range children {
		if n := len(w.commits(child)); n != 1 {
			t.Errorf("%s has %d commits", child, n)
		}
	}
	w.lawful(id)
}
