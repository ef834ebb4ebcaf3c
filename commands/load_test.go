package commands

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// A thread is loaded from its snapshot and what came after it, and is then as
// the whole log makes it.
func TestSnapshots(t *testing.T) {
	w := newWorld(t, Config{SnapshotEvery: 10})
	id := create(t, w.d)
	var version int64
	var kept *thread.State
	w.until("a second snapshot", func() bool { // one that comes while another is written is left out
		version = must(t, w.d, "item.create", on(id, hello)).Version
		kept = w.kept(id)
		return kept != nil && kept.Version >= 20
	})
	reader := w.another(Config{SnapshotEvery: 10})
	w.until("a load from it", func() bool { // while a third one replaces it there is none
		fresh := &entry{tenant: tenant, id: id}
		if err := reader.load(t.Context(), fresh); err != nil || fresh.state.Version != version {
			t.Fatalf("loaded to version %d, want %d (%v)", fresh.state.Version, version, err)
		}
		return fresh.snapshot >= kept.Version
	})
	w.sameAsLog(w.another(Config{}), id)
	if r := must(t, w.another(Config{}), "item.create", on(id, hello)); r.Version != version+1 {
		t.Errorf("version %d after %d", r.Version, version)
	}
	w.sameAsLog(w.d, id)
}

// A long thread's snapshot is not rewritten every few events: it is large.
func TestSnapshotsOfALongThreadAreFew(t *testing.T) {
	d := &Dispatcher{cfg: Config{SnapshotEvery: 500}}
	for _, c := range []struct {
		kept, version int64
		due           bool
	}{
		{0, 0, false}, {0, 499, false}, {0, 500, true}, {500, 999, false}, {500, 1000, true},
		{4000, 4500, false}, {4000, 5332, false}, {4000, 5333, true}, {75_000, 99_990, false}, {75_000, 100_000, true},
	} {
		e := &entry{state: &thread.State{}, snapshot: c.kept}
		e.state.Version = c.version
		if d.snapshotDue(e) != c.due {
			t.Errorf("kept at %d, at version %d now: due %v, want %v", c.kept, c.version, !c.due, c.due)
		}
	}
	deleted := &entry{state: &thread.State{}, snapshot: 4000}
	deleted.state.Version, deleted.state.Deleted = 4001, true
	if !d.snapshotDue(deleted) {
		t.Error("the snapshot of a deleted thread stays")
	}
}

// A snapshot that is broken, or of another history, costs time and nothing else.
func TestBadSnapshots(t *testing.T) {
	w := newWorld(t, Config{})
	reader := w.another(Config{SnapshotEvery: 1}) // of short threads no snapshot is looked for
	id, other := create(t, w.d), create(t, w.d)
	must(t, w.d, "item.create", on(id, hello))
	e := &entry{tenant: tenant, id: other}
	if err := w.d.load(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	foreign, err := e.state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	e = &entry{tenant: tenant, id: id}
	if err := w.d.load(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	mine, err := e.state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"broken": string(mine[:len(mine)/2]), "no JSON": "x", "another form": strings.Replace(string(mine), `"form":`, `"form":9`, 1),
		"another thread's": string(foreign), "another chain": strings.Replace(string(mine), e.state.Chain, strings.Repeat("0", 64), 1),
		"an item left out": strings.Replace(string(mine), `"items":{"`, `"items":{"x`, 1),
		"beyond the log":   strings.Replace(string(mine), `"seq":`+strconv.FormatUint(e.state.Seq, 10), `"seq":4711`, 1),
	} {
		if err := eventlog.SnapshotsOn(w.log.Streams()).Save(t.Context(), tenant, id, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		fresh := &entry{tenant: tenant, id: id}
		if err := reader.load(t.Context(), fresh); err != nil || fresh.snapshot != 0 {
			t.Errorf("%s: it was taken, at version %d (%v)", name, fresh.snapshot, err)
		}
		w.sameAsLog(w.d, id)
	}
	if err := eventlog.SnapshotsOn(w.log.Streams()).Save(t.Context(), tenant, id, mine); err != nil {
		t.Fatal(err)
	}
	fresh := &entry{tenant: tenant, id: id}
	if err := reader.load(t.Context(), fresh); err != nil || fresh.snapshot != e.state.Version {
		t.Errorf("the right one was not taken: %v", err)
	}
}

// A snapshot of form 5, whose names had one letter, is thrown away, and the thread is
// folded from the log; the next snapshot replaces it.
func TestLoad_SnapshotOfAnOlderForm(t *testing.T) {
	w := newWorld(t, Config{})
	reader := w.another(Config{SnapshotEvery: 1})
	id := create(t, w.d)
	must(t, w.d, "item.create", on(id, hello))
	e := &entry{tenant: tenant, id: id}
	if err := w.d.load(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	want, err := e.state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := eventlog.SnapshotsOn(w.log.Streams()).Save(t.Context(), tenant, id, olderForm(t, want)); err != nil {
		t.Fatal(err)
	}
	fresh := &entry{tenant: tenant, id: id}
	if err := reader.load(t.Context(), fresh); err != nil || fresh.snapshot != 0 {
		t.Fatalf("it was used, at version %d (%v)", fresh.snapshot, err)
	}
	if got, err := fresh.state.Encode(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the state is %s, want %s (%v)", got, want, err)
	}
	must(t, reader, "item.create", on(id, hello))
	w.until("a snapshot of this form", func() bool {
		raw, err := eventlog.SnapshotsOn(w.log.Streams()).Load(t.Context(), tenant, id)
		if err != nil { // it is being replaced
			return false
		}
		state, err := thread.DecodeState(raw)
		return err == nil && state.Version > e.state.Version
	})
}

// olderForm writes a snapshot as form 5 had it.
func olderForm(t *testing.T, snapshot []byte) []byte {
	t.Helper()
	var whole struct {
		State map[string]any `json:"state"`
	}
	if err := json.Unmarshal(snapshot, &whole); err != nil {
		t.Fatal(err)
	}
	rename := func(entry any, names map[string]string) {
		fields := entry.(map[string]any)
		for now, before := range names {
			if v, has := fields[now]; has {
				fields[before] = v
				delete(fields, now)
			}
		}
	}
	items, contexts := whole.State["items"].(map[string]any), whole.State["contexts"].(map[string]any)
	if len(items) == 0 || len(contexts) == 0 {
		t.Fatalf("nothing to rename in %s", snapshot)
	}
	for _, item := range items {
		rename(item, map[string]string{"context": "c", "type": "t", "status": "s", "index": "i"})
	}
	for _, c := range contexts {
		rename(c, map[string]string{"key": "k", "status": "s", "content": "c", "type": "t"})
	}
	for _, receipt := range whole.State["receipts"].(map[string]any)["list"].([]any) {
		rename(receipt, map[string]string{"id": "i", "seq": "q", "time": "t"})
	}
	state, err := json.Marshal(whole.State)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(state)
	return []byte(`{"form":5,"digest":"` + hex.EncodeToString(sum[:]) + `","state":` + string(state) + `}`)
}

// What a deleted thread held is in no snapshot any more.
func TestSnapshotsOfDeletedThreads(t *testing.T) {
	w := newWorld(t, Config{SnapshotEvery: 2})
	id := create(t, w.d)
	must(t, w.d, "context.set", on(id, `{"content":"secret"}`))
	w.snapshotOf(id, 2)
	other := w.another(Config{})
	must(t, other, "thread.delete", on(id, `{}`))
	store, err := w.log.JetStream().ObjectStore(t.Context(), assets.SnapshotBucket)
	if err != nil {
		t.Fatal(err)
	}
	w.until("the end of the snapshot", func() bool {
		_, err := store.GetInfo(t.Context(), tenant+"/"+id)
		return errors.Is(err, jetstream.ErrObjectNotFound)
	})
	refused(t, w.d, events.NotFound, "item.create", on(id, hello))
}

// A long thread is loaded from its snapshot in a small part of a second.
func TestLongThread_LoadsFromASnapshot(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("it writes 100,000 events, and measures times: make test-long runs it")
	}
	w := newWorld(t, Config{SnapshotEvery: 20_000})
	id := create(t, w.d)
	var last *events.Reply
	start := time.Now()
	for n, turn := int64(2), 0; n < 100_000; n = last.Version {
		var b strings.Builder
		b.WriteString(`{"commands":[`)
		for i := range 16 {
			turn++
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(turnOf(strconv.Itoa(turn)))
		}
		b.WriteString(`]}`)
		last = must(t, w.d, "thread.commit", on(id, b.String()))
	}
	written := time.Since(start)
	w.snapshotOf(id, 80_000)
	load := func(d *Dispatcher) (*thread.State, time.Duration) {
		start := time.Now()
		e := &entry{tenant: tenant, id: id}
		if err := d.load(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		return e.state, time.Since(start)
	}
	tailed, fromTail := load(w.another(Config{}))
	raw, err := tailed.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := eventlog.SnapshotsOn(w.log.Streams()).Save(t.Context(), tenant, id, raw); err != nil {
		t.Fatal(err)
	}
	state, fromSnapshot := load(w.another(Config{}))
	for range 4 { // the best of five: the machine may be loaded
		_, took := load(w.another(Config{}))
		fromSnapshot = min(fromSnapshot, took)
	}
	if err := eventlog.SnapshotsOn(w.log.Streams()).Drop(t.Context(), tenant, id); err != nil {
		t.Fatal(err)
	}
	whole, fromLog := load(w.another(Config{}))
	t.Logf("%d events: written in %v; a snapshot of %d bytes; loaded from it in %v, with %d events after it in %v, from the log in %v; %d bytes in memory",
		state.Version, written.Round(time.Millisecond), len(raw), fromSnapshot.Round(time.Millisecond), 20_000, fromTail.Round(time.Millisecond), fromLog.Round(time.Millisecond), state.Bytes())
	if state.Version != last.Version || whole.Version != last.Version || tailed.Version != last.Version {
		t.Errorf("versions %d, %d and %d, want %d", state.Version, whole.Version, tailed.Version, last.Version)
	}
	if fromSnapshot > time.Second {
		t.Errorf("loading took %v", fromSnapshot)
	}
}

// turnOf returns twelve commands, those of a react of one step.
func turnOf(n string) string {
	return strings.ReplaceAll(`{"command":"item.create","data":{"item":{"id":"itm_u#","type":"message","role":"user","content":[{"type":"input_text","text":"Where is my order?"}]}}},
		{"command":"thread.status","data":{"to":"streaming"}},{"command":"context.status","data":{"to":"streaming"}},
		{"command":"execution.create","data":{"id":"exe_#","triggerItemId":"itm_u#","reactionItemId":"itm_a#"}},
		{"command":"step.create","data":{"id":"stp_#","executionId":"exe_#"}},
		{"command":"part.put","data":{"stepId":"stp_#","idx":0,"part":{"type":"output_text","text":"On its way."}}},
		{"command":"item.create","data":{"item":{"id":"itm_a#","type":"message","role":"assistant","status":"pending","content":[{"type":"output_text","text":"On its way."}]}}},
		{"command":"step.status","data":{"stepId":"stp_#","to":"completed"}},{"command":"item.status","data":{"itemId":"itm_a#","to":"completed"}},
		{"command":"execution.status","data":{"executionId":"exe_#","to":"completed"}},
		{"command":"thread.status","data":{"to":"open"}},{"command":"context.status","data":{"to":"open"}}`, "#", n)
}

// A dispatcher that is closed again says nothing, and what wants to write a
// snapshot afterwards is not held up.
func TestClose_Twice(t *testing.T) {
	w := newWorld(t, Config{SnapshotEvery: 1})
	var under sync.WaitGroup
	for range 3 {
		under.Go(w.d.Close)
	}
	under.Wait()
	must(t, w.d, "thread.create", `{}`)
}

// A purged thread that an older version has created again is as its documents show it: it can be
// read, written and erased.
func TestLoad_PurgedThreadCreatedAgain(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	must(t, w.d, "thread.delete", on(id, `{"purge":true}`))
	tombstone := w.commits(id)[1]
	if err := w.log.EraseCommits(t.Context(), tenant, id, tombstone.Seq); err != nil {
		t.Fatal(err)
	}
	version := tombstone.Version
	event := func(kind events.Type, subject string, n int, data any) events.Event {
		version++
		return events.Event{
			ID: events.EventID(tenant, id, "again", n), Type: kind, Time: tombstone.Events[0].Time + 1, Subject: subject,
			Tenant: tenant, ThreadID: id, Version: version, CommandID: "again", Data: data,
		}
	}
	made, err := events.NewCommit(tombstone.Chain, []events.Event{
		event(events.ThreadCreatedType, id, 0, events.ThreadCreated{ID: id, Status: events.ThreadOpen}),
		event(events.ContextCreatedType, "ctx_1", 1, events.ContextCreated{ID: "ctx_1", Status: events.ContextOpen, Default: true, Content: events.JSON("null")}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.log.Append(t.Context(), eventlog.Write{Commit: made, Expected: tombstone.Seq}); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*Dispatcher{"the process that purged it": w.d, "another": w.another(Config{})} {
		must(t, d, "item.create", on(id, hello))
		must(t, d, "state.merge", on(id, `{"operations":[{"op":"set","key":"k","value":1}]}`))
		if e := refused(t, d, events.AlreadyExists, "thread.create", on(id, `{}`)); e.Details.Entity != "thread" {
			t.Errorf("%s: %+v", name, e.Details)
		}
	}
	fresh := w.another(Config{})
	must(t, fresh, "thread.delete", on(id, `{"purge":true}`))
	refused(t, fresh, events.AlreadyExists, "thread.create", on(id, `{}`))
}
