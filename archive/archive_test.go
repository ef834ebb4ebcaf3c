package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/events"
)

// asked is what queries say of a thread, but for the thread's version now.
func (w *world) asked(id string) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for name, q := range map[string]struct {
		query string
		data  any
	}{
		"thread then":      {"thread.get", events.GetThread{ThreadID: id, At: &events.At{Version: to(int64(5))}}},
		"items":            {"item.list", events.ListItems{ThreadID: id}},
		"items then":       {"item.list", events.ListItems{ThreadID: id, At: &events.At{Version: to(int64(12))}}},
		"executions":       {"execution.list", events.ListExecutions{ThreadID: id}},
		"contexts":         {"context.list", events.ListContexts{ThreadID: id}},
		"first events":     {"event.list", events.ListEvents{ThreadID: id, Limit: to(int64(7))}},
		"some events":      {"event.list", events.ListEvents{ThreadID: id, FromVersion: to(int64(9)), Limit: to(int64(5))}},
		"events of a type": {"event.list", events.ListEvents{ThreadID: id, Types: []string{"item.*"}}},
		"history":          {"history.list", events.ListHistory{ThreadID: id, Limit: to(int64(6))}},
	} {
		raw, err := w.c.Query(w.ctx, q.query, q.data)
		if err != nil {
			w.t.Fatalf("%s: %v", name, err)
		}
		out[name] = string(raw)
	}
	var doc map[string]any
	raw, err := w.c.Query(w.ctx, "thread.get", events.GetThread{ThreadID: id})
	if err != nil || json.Unmarshal(raw, &doc) != nil {
		w.t.Fatal(err)
	}
	delete(doc, "version")
	delete(doc, "seq")
	raw, _ = json.Marshal(doc, json.Deterministic(true))
	out["thread"] = string(raw)
	return out
}

func to[T any](v T) *T { return &v }

func raw(s string) events.JSON { return events.JSON(s) }

// An archived thread is read as it was before: its commits with their sequences and
// chains, by queries now and then, by history of the thread and of the tenant from any
// place, and the log holds its record alone.
func TestArchivedThreadReadsAsBefore(t *testing.T) {
	t.Parallel()
	w := start(t)
	one, two, three := threadID(1), threadID(2), threadID(3)
	w.fill(one, 2)
	w.fill(two, 1)
	moment := time.Now()
	w.say(one, "itm_more", "between")
	w.fill(three, 1)
	w.say(two, "itm_more", "and again")
	w.shown()
	before, asked := commits(t, w.log, one, 1), w.asked(one)
	all := w.history("", client.Start())
	atTime := events.At{Time: moment.UTC().Format(time.RFC3339Nano)}
	thenRaw, err := w.c.Query(w.ctx, "thread.get", events.GetThread{ThreadID: one, At: &atTime})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{one, two} {
		r := w.archive(id)
		if r.Commits < 10 || r.Bytes < 1000 {
			t.Errorf("it says %+v", r)
		}
	}
	w.shown()
	if left := w.stored(one); len(left) != 1 {
		t.Fatalf("the log still holds %v", left)
	}
	after := commits(t, w.log, one, 1)
	same(t, "commits", after[:len(after)-1], before)
	for _, from := range []uint64{before[3].seq, before[3].seq + 1, before[len(before)-1].seq, before[len(before)-1].seq + 1, after[len(after)-1].seq} {
		want := slices.DeleteFunc(slices.Clone(after), func(c commit) bool { return c.seq < from })
		same(t, "commits from there", commits(t, w.log, one, from), want)
	}
	for name, now := range w.asked(one) {
		if now != asked[name] {
			t.Errorf("%s:\n got %s\nwant %s", name, now, asked[name])
		}
	}
	if now, err := w.c.Query(w.ctx, "thread.get", events.GetThread{ThreadID: one, At: &atTime}); err != nil || !bytes.Equal(now, thenRaw) {
		t.Errorf("at that time: %s, %v", now, err)
	}
	list, err := client.Read(w.ctx, w.c, events.ListThreads{})
	if err != nil || len(list.Threads) != 3 || list.Threads[0].ID != two || list.Threads[1].ID != three || list.Threads[2].ID != one {
		t.Errorf("the order of threads has changed: %+v, %v", list, err)
	}
	// The tenant's history, in the order of the log.
	now := w.history("", client.Start())
	same(t, "history of the tenant", now[:len(now)-2], all)
	from := before[len(before)-1].seq
	same(t, "history of the tenant from there", w.history("", client.Seq(int64(from))), slices.DeleteFunc(slices.Clone(now), func(line string) bool { return seqOf(line) < from }))
	mine := slices.DeleteFunc(slices.Clone(now), func(line string) bool { return !strings.Contains(line, `"threadid":"`+one+`"`) })
	same(t, "history of the thread", w.history(one, client.Start()), mine)
	w.clean()
}

func seqOf(line string) (seq uint64) {
	for _, c := range line {
		if c < '0' || c > '9' {
			return seq
		}
		seq = seq*10 + uint64(c-'0')
	}
	return seq
}

// A command on an archived thread, by the process that knew it and by one that did
// not, goes on after its record; what was done before is known.
func TestCommandOnArchivedThread(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := threadID(1)
	w.fill(id, 2)
	said, err := w.c.Send(w.ctx, id, events.CreateItem{Item: events.NewItem{ID: "itm_once", Type: events.Message, Role: events.User, Content: raw(`[{"type":"input_text","text":"once"}]`)}}, client.CommandID("once"))
	if err != nil {
		t.Fatal(err)
	}
	w.archive(id)
	again, err := w.c.Send(w.ctx, id, events.CreateItem{Item: events.NewItem{ID: "itm_once", Type: events.Message, Role: events.User, Content: raw(`[{"type":"input_text","text":"once"}]`)}}, client.CommandID("once"))
	if err != nil || again.Seq != said.Seq || again.Version != said.Version {
		t.Errorf("the repeat is answered with %+v, %v; first it was %+v", again, err, said)
	}
	next := w.say(id, "itm_next", "hello again")
	if next.Version != said.Version+2 {
		t.Errorf("the thread goes on with version %d after %d and a record", next.Version, said.Version)
	}
	if _, err := w.c.Do(w.ctx, "item.create", client.Request{ThreadID: id, Data: raw(`{"item":{"id":"itm_u0","type":"message","role":"user","content":[]}}`)}); !errors.Is(err, &events.Error{Code: events.AlreadyExists}) {
		t.Errorf("what was made before the archive is made again: %v", err)
	}
	// A process that starts again, with the snapshot and without.
	for n, drop := range []bool{false, true} {
		if drop {
			if err := eventlog.SnapshotsOn(w.log.Streams()).Drop(w.ctx, "acme", id); err != nil {
				t.Fatal(err)
			}
		}
		_, err := w.dispatcher().Do(w.ctx, "acme", "item.create", []byte(`{"threadId":"`+id+`","data":{"item":{"id":"itm_u1","type":"message","role":"user","content":[]}}}`), commands.Meta{})
		if !errors.Is(err, &events.Error{Code: events.AlreadyExists}) {
			t.Errorf("%d: another process does not know what the thread has: %v", n, err)
		}
	}
	list := commits(t, w.log, id, 1)
	for i, c := range list[1:] {
		if events.Chain(list[i].chain, []byte(c.body)) != c.chain {
			t.Errorf("the chain is broken at %d", c.seq)
		}
	}
	w.clean()
}

// A thread that is used again is archived again: two objects, all commits.
func TestArchivedTwice(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := threadID(1)
	w.fill(id, 1)
	w.archive(id)
	if r, err := w.archiver(nil).Thread(w.ctx, "acme", id, archive.Options{}); err != nil || r.Outcome != archive.Already {
		t.Errorf("nothing is new, and it says %+v, %v", r, err)
	}
	w.say(id, "itm_a", "second life")
	w.archive(id)
	w.say(id, "itm_b", "third life")
	w.archive(id)
	before := commits(t, w.log, id, 1)
	if before[0].version == 0 || !strings.Contains(before[0].body, "thread.created") || len(w.stored(id)) != 1 {
		t.Errorf("it begins with %v, and the log holds %v", before[0], w.stored(id))
	}
	for _, c := range before {
		if got, err := w.log.Commit(w.ctx, "acme", id, c.seq); err != nil || got == nil || got.Chain != c.chain {
			t.Errorf("commit %d: %v, %v", c.seq, got, err)
		}
		same(t, "from there", commits(t, w.log, id, c.seq), before[slices.Index(before, c):])
	}
	w.say(id, "itm_c", "fourth life")
	w.shown()
	if items, err := client.Read(w.ctx, w.c, events.ListItems{ThreadID: id}); err != nil || len(items.Items) != 4 {
		t.Errorf("items: %+v, %v", items, err)
	}
	w.clean()
}

// Work in progress keeps a thread in the log.
func TestBusyThreadsStay(t *testing.T) {
	t.Parallel()
	w := start(t)
	for name, make := range map[string]func(id string){
		"an execution":    func(id string) { w.do("thread.react", id, `{"text":"hello","agentId":"nobody"}`) },
		"a recorded turn": func(id string) { w.say(id, "itm_t", "x"); w.do("thread.status", id, `{"to":"streaming"}`) },
		"a queued message": func(id string) {
			w.do("thread.react", id, `{"text":"a","agentId":"nobody"}`)
			w.do("thread.react", id, `{"text":"b","agentId":"nobody"}`)
		},
		"a scheduled effect":  func(id string) { w.do("effect.schedule", id, `{"name":"remind","delayMs":3600000}`) },
		"a thread with a key": nil,
	} {
		id := threadID(100 + len(name)*7 + int(name[2]))
		w.do("thread.create", id, `{"title":"x"}`)
		want := archive.Archived
		if make != nil {
			make(id)
			want = archive.Busy
		}
		r, err := w.archiver(nil).Thread(w.ctx, "acme", id, archive.Options{})
		if err != nil || r.Outcome != want || want == archive.Busy && (r.Reason == "" || len(w.stored(id)) < 2) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	id := threadID(1)
	w.fill(id, 1)
	if r, err := w.archiver(nil).Thread(w.ctx, "acme", id, archive.Options{Idle: time.Hour}); err != nil || r.Outcome != archive.Young {
		t.Errorf("a young thread: %+v, %v", r, err)
	}
	if r, err := w.archiver(nil).Thread(w.ctx, "acme", id, archive.Options{DryRun: true}); err != nil || r.Outcome != archive.Due || len(w.stored(id)) < 5 {
		t.Errorf("a dry run: %+v, %v", r, err)
	}
	w.do("thread.delete", id, `{}`)
	if r, err := w.archiver(nil).Thread(w.ctx, "acme", id, archive.Options{}); err != nil || r.Outcome != archive.Ended {
		t.Errorf("a deleted thread: %+v, %v", r, err)
	}
	if _, err := w.archiver(nil).Thread(w.ctx, "acme", threadID(99), archive.Options{}); !errors.Is(err, &events.Error{Code: events.NotFound}) {
		t.Errorf("no thread: %v", err)
	}
}

// Killed after any step, every commit is read as before, the audit finds nothing,
// commands are taken; and archiving again takes it up.
func TestKilledAtEachStep(t *testing.T) {
	for _, step := range []archive.Step{archive.Written, archive.Checked, archive.Recorded, archive.Kept, archive.Purged} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			w := start(t)
			id, used := threadID(1), threadID(2)
			w.fill(id, 1)
			w.fill(used, 1)
			for _, id := range []string{id, used} {
				before := commits(t, w.log, id, 1)
				_, err := w.archiver(func(at archive.Step) error {
					if at == step {
						return errKilled
					}
					return nil
				}).Thread(w.ctx, "acme", id, archive.Options{})
				if !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				after := commits(t, w.log, id, 1)
				same(t, "commits", after[:len(before)], before)
				// As if it had been killed between the pieces and the entry, which it was not told of.
				left := objects.Pieces(assets.ArchiveBucket, fmt.Sprintf("acme.%s.%d.killed", id, before[len(before)-2].seq))
				if _, err := w.log.JetStream().Publish(w.ctx, left, []byte("a piece")); err != nil {
					t.Fatal(err)
				}
			}
			w.clean()
			w.say(used, "itm_next", "goes on")
			for _, id := range []string{id, used} {
				before := commits(t, w.log, id, 1)
				r, err := w.archiver(nil).Thread(w.ctx, "acme", id, archive.Options{})
				if err != nil || r.Outcome != archive.Archived && r.Outcome != archive.Finished && !(step == archive.Purged && r.Outcome == archive.Already) {
					t.Fatalf("it is not taken up: %+v, %v", r, err)
				}
				if left := w.stored(id); len(left) != 1 {
					t.Errorf("the log still holds %v", left)
				}
				same(t, "commits", commits(t, w.log, id, 1)[:len(before)], before)
			}
			w.clean()
			// Of what was broken off before its record, nothing is left.
			there, err := objects.On(w.log.Streams(), assets.ArchiveBucket).WithPieces(w.ctx, "acme/"+used)
			records := 0
			for c := range w.log.Thread(w.ctx, "acme", used, 1) {
				if _, ok := eventlog.Record(c); ok {
					records++
				}
			}
			if err != nil || len(there) != records {
				t.Errorf("%d records, and the objects %v, %v", records, there, err)
			}
		})
	}
}
