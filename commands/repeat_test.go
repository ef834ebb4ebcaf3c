package commands

import (
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

// A repeated command returns its first reply again, and changes nothing: on the same
// dispatcher, on another, and on one started since (EK-124). So does a command that shared a
// commit with others.
func TestRepeatedCommands(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	id := create(t, w.d)
	for _, c := range [][2]string{
		{"thread.create", `{"commandId":"c-1"}`},
		{"thread.create", `{"commandId":"c-2","data":{"key":"k"}}`},
		{"thread.create", with("c-3", newThread, `{"key":"l"}`)},
		{"thread.resolve", `{"commandId":"c-4","data":{"key":"k"}}`},
		{"thread.resolve", `{"commandId":"c-5","data":{"key":"m"}}`},
		{"thread.update", with("c-6", "key:k", `{"title":"x"}`)},
		{"item.create", with("c-7", id, hello)},
		{"thread.status", with("c-8", id, `{"to":"streaming"}`)},
		{"thread.commit", with("c-9", id, `{"commands":[{"command":"thread.status","data":{"to":"open"}},{"command":"context.create"}]}`)},
		{"thread.commit", `{"commandId":"c-10","data":{"commands":[{"command":"thread.create"},{"command":"item.create","data":` + hello + `}]}}`},
		{"item.create", `{"commandId":"c-11","expectedVersion":9,"threadId":"` + id + `","data":` + hello + `}`},
		{"thread.delete", with("c-12", id, `{}`)},
	} {
		first := must(t, w.d, c[0], c[1])
		after := w.lastSeq()
		between := first.ThreadID
		if c[0] == "thread.delete" {
			between = create(t, w.d)
			after++
		}
		must(t, w.d, "thread.update", on(between, `{"title":"between"}`))
		for name, d := range map[string]*Dispatcher{"same": w.d, "other": other, "new": w.another(Config{})} {
			if again := must(t, d, c[0], c[1]); !reflect.DeepEqual(again, first) {
				t.Errorf("%s %s, on the %s dispatcher\nfirst %+v\nthen  %+v", c[0], c[1], name, first, again)
			}
		}
		if last := w.lastSeq(); last != after+1 {
			t.Errorf("%s %s: repeated it made %d commits", c[0], c[1], last-after-1)
		}
	}
}

// The same id on another thread is another command, and so is one without an id.
func TestCommandIDsAreOfTheirThread(t *testing.T) {
	w := newWorld(t, Config{})
	first, second := create(t, w.d), create(t, w.d)
	must(t, w.d, "item.create", with("c-1", first, hello))
	if r := must(t, w.d, "item.create", with("c-1", second, hello)); r.ThreadID != second || r.Version != 3 {
		t.Errorf("answered %+v", r)
	}
	for want := int64(4); want < 6; want++ {
		if r := must(t, w.d, "item.create", with("", second, hello)); r.Version != want {
			t.Errorf("without an id: version %d, want %d", r.Version, want)
		}
	}
	if a, b := create(t, w.d), create(t, w.d); a == b {
		t.Error("two threads have one id")
	}
}

// A commandId that a thread has executed is refused with another command or other data, by any
// process; the same command in another form of JSON, with another version, actor or name of the
// thread, is a repeat.
func TestCommandID_Reused(t *testing.T) {
	w := newWorld(t, Config{SnapshotEvery: 1})
	other := w.another(Config{})
	id := must(t, w.d, "thread.create", `{"data":{"key":"k"}}`).ThreadID
	first := map[string]*events.Reply{}
	const more = `{"title":"a","metadata":{"a":1,"b":2}}`
	for _, c := range []struct{ name, body string }{
		{"item.create", with("item", id, hello)},
		{"thread.update", with("update", id, more)},
		{"thread.commit", with("commit", id, `{"commands":[{"command":"item.create","data":`+hello+`},{"command":"thread.update","data":`+more+`}]}`)},
		{"thread.fork", with("fork", id, `{"version":2}`)},
		{"thread.mention", with("mention", id, `{"mentionedId":"`+create(t, w.d)+`"}`)},
		{"thread.create", `{"commandId":"create","data":{"title":"a"}}`},
		{"definition.apply", `{"commandId":"define","data":{"definitions":[{"kind":"policy","definition":{"name":"handoff","agent":"a"}}]}}`},
		{"writer.claim", with("claim", create(t, w.d), `{"holder":"ada","ttlMs":300000}`)},
	} {
		r := must(t, w.d, c.name, c.body)
		first[c.name] = r
		for name, d := range map[string]*Dispatcher{"same": w.d, "other": other, "new": w.another(Config{SnapshotEvery: 1})} {
			if again := must(t, d, c.name, c.body); !reflect.DeepEqual(again, r) {
				t.Errorf("%s, on the %s dispatcher: %+v, and before %+v", c.name, name, again, r)
			}
		}
	}
	child, mentioned := first["thread.fork"].Result.ChildID, ""
	for _, c := range w.commits(id) {
		for i := range c.Events {
			if d, ok := c.Events[i].Data.(events.RelationshipAdded); ok && d.Type == events.MentionRelation {
				mentioned = d.ThreadID
			}
		}
	}
	claimed := first["writer.claim"].ThreadID
	for _, d := range []*Dispatcher{w.d, other, w.another(Config{SnapshotEvery: 1})} {
		for _, c := range []struct{ name, body string }{
			{"item.create", with("item", "key:k", "\n "+hello)},
			{"thread.update", `{"actor":"bob","expectedVersion":1,"commandId":"update","threadId":"` + id + `","data":{"metadata": {"b":2, "a":1},"title":"a"}}`},
		} {
			if again := must(t, d, c.name, c.body); again.Seq != first[c.name].Seq {
				t.Errorf("%s %s: %+v, and before %+v", c.name, c.body, again, first[c.name])
			}
		}
		for _, c := range []struct{ id, name, body string }{
			{"item", "item.create", with("item", id, `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"bye"}]}}`)},
			{"item", "thread.update", with("item", id, more)},
			{"item", "thread.delete", with("item", id, `{}`)},
			{"item", "thread.commit", with("item", id, `{"commands":[{"command":"item.create","data":`+hello+`}]}`)},
			{"commit", "thread.commit", with("commit", id, `{"commands":[{"command":"item.create","data":`+hello+`}]}`)},
			{"fork", "thread.fork", with("fork", id, `{"version":2,"title":"x"}`)},
			{"fork", "thread.fork", with("fork", child, `{"version":2}`)},
			{"fork", "item.create", with("fork", child, hello)},
			{"mention", "thread.mention", with("mention", mentioned, `{"mentionedId":"`+id+`"}`)},
			{"create", "thread.create", `{"commandId":"create","data":{"title":"b"}}`},
			{"create", "thread.resolve", `{"commandId":"create","data":{"key":"new"}}`},
			{"define", "definition.apply", `{"commandId":"define","data":{"definitions":[{"kind":"policy","definition":{"name":"handoff","agent":"b"}}]}}`},
			{"claim", "writer.claim", with("claim", claimed, `{"holder":"bob","ttlMs":300000}`)},
		} {
			e := refused(t, d, events.AlreadyExists, c.name, c.body)
			if want := events.ReusedID(c.id); !reflect.DeepEqual(e, want) {
				t.Errorf("%s %s: %v %+v, want %v", c.name, c.body, e, e.Details, want)
			}
		}
	}
	w.sameAsLog(w.d, id)
}

// A store of an older version has no digests: a repeat has its first reply, whatever it says.
func TestCommandID_OlderStore(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	if _, err := w.d.Inside(t.Context(), tenant, id, "c-1", "item.create", events.CreateItem{Item: events.UserText("hello")}); err != nil {
		t.Fatal(err) // as older versions did all commands
	}
	after := w.lastSeq()
	for _, d := range []*Dispatcher{w.d, w.another(Config{})} {
		if r := must(t, d, "item.create", with("c-1", id, hello)); r.Seq != int64(after) {
			t.Errorf("%+v", r)
		}
	}
}

// A fork with the id of a fork of another thread makes a thread of its own.
func TestFork_IDOfAnotherThreadsFork(t *testing.T) {
	w := newWorld(t, Config{})
	mine, theirs := create(t, w.d), create(t, w.d)
	first := must(t, w.d, "thread.fork", with("f", theirs, `{"version":1}`)).Result.ChildID
	if second := must(t, w.d, "thread.fork", with("f", mine, `{"version":1}`)).Result.ChildID; second == first {
		t.Errorf("both are %s", second)
	}
}

// A refused command is decided again when it is repeated.
func TestRefusalsAreNotRemembered(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	body := with("c-1", id, `{"to":"failed"}`)
	refused(t, w.d, events.IllegalTransition, "thread.status", body)
	must(t, w.d, "thread.status", on(id, `{"to":"streaming"}`))
	must(t, w.d, "thread.status", body)
}

// After 24 hours of its thread the same id is a new command.
func TestIDsAreForgottenAfterADay(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	first := must(t, w.d, "item.create", with("c-1", id, hello))
	later := w.another(Config{Now: func() time.Time { return time.Now().Add(25 * time.Hour) }})
	must(t, later, "item.create", on(id, hello))
	if again := must(t, later, "item.create", with("c-1", id, hello)); again.Seq == first.Seq {
		t.Errorf("answered as a day before: %+v", again)
	}
}

// Many who send the same command at once get one answer, and it is done once.
func TestRepeatedTogether(t *testing.T) {
	w := newWorld(t, Config{})
	ds := []*Dispatcher{w.d, w.another(Config{})}
	id := create(t, w.d)
	for round := range 5 {
		body := with("c-"+strconv.Itoa(round), id, hello)
		var first *events.Reply
		for i, a := range together(t, 16, func(i int) (*events.Reply, *events.Error) { return ask(t, ds[i%2], "item.create", body) }) {
			if a.err != nil {
				t.Fatalf("%d: %v (%v)", i, a.err, a.err.Cause)
			}
			if first == nil {
				first = a.reply
			}
			if !reflect.DeepEqual(a.reply, first) {
				t.Errorf("answered\n%+v and\n%+v", a.reply, first)
			}
		}
	}
	for command, n := range w.byCommand(id) {
		if n != 1 && len(command) < 10 {
			t.Errorf("%s has %d events", command, n)
		}
	}
	if list := w.commits(id); list[len(list)-1].Version != 7 {
		t.Errorf("5 items led to version %d", list[len(list)-1].Version)
	}
}
