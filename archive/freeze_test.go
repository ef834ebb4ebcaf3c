package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// freezer returns an archiver that removes documents at once.
func (w *world) freezer() *archive.Archiver {
	return archive.New(w.open(), archive.Config{Patience: 20 * time.Second, Settle: -1}, zerolog.Nop())
}

// freeze freezes threads and returns the outcomes. It removes no documents.
func (w *world) freeze(a *archive.Archiver, o archive.Options, ids ...string) []archive.Outcome {
	w.t.Helper()
	outcomes := map[string]archive.Outcome{}
	err := a.Freeze(w.ctx, "acme", ids, o, func(r archive.Result) { outcomes[r.Thread] = r.Outcome }, func(id string, err error) { w.t.Fatal(id, err) })
	if err != nil {
		w.t.Fatal(err)
	}
	list := make([]archive.Outcome, len(ids))
	for i, id := range ids {
		list[i] = outcomes[id]
	}
	return list
}

// cold freezes threads and removes their documents.
func (w *world) cold(ids ...string) {
	w.t.Helper()
	a := w.freezer()
	for i, got := range w.freeze(a, archive.Options{}, ids...) {
		if got != archive.Frozen {
			w.t.Fatalf("%s: %s", ids[i], got)
		}
	}
	if n, err := a.Strip(w.ctx, "acme", ids, false); err != nil || n != len(ids) {
		w.t.Fatal(n, err)
	}
}

// keys returns the keys of the documents of a thread in all buckets.
func (w *world) keys(id string) (keys []string) {
	w.t.Helper()
	for _, p := range documents.NewModels().List() {
		name := documents.ThreadName("acme", id)
		got, err := w.log.Bucket(p.Bucket).All(w.ctx, name, name+".>")
		if err != nil {
			w.t.Fatal(err)
		}
		for _, m := range got {
			keys = append(keys, p.Bucket+" "+m.Subject)
		}
	}
	return keys
}

// isCold reports whether a thread's own document has the mark.
func (w *world) isCold(id string) bool {
	w.t.Helper()
	own, ok, err := w.log.Bucket("thread_threads").Newest(w.ctx, documents.ThreadName("acme", id))
	if err != nil || !ok {
		w.t.Fatal(ok, err)
	}
	return buckets.MarkOf(own.Header).Cold
}

// answers returns what queries say of a thread.
func (w *world) answers(id string) (all []string) {
	w.t.Helper()
	ask := func(query, data string) {
		w.t.Helper()
		reply, err := w.c.Query(w.ctx, query, events.JSON(data))
		if err != nil {
			all = append(all, fmt.Sprintf("%s %s: %v", query, data, err))
			return
		}
		all = append(all, fmt.Sprintf("%s %s: %s", query, data, reply))
	}
	of := func(query, more string) { w.t.Helper(); ask(query, fmt.Sprintf(`{"threadId":%q%s}`, id, more)) }
	for _, q := range []string{
		"thread.get", "thread.document", "context.list", "context.get", "item.list", "message.list", "log.list", "execution.list",
		"file.list", "relationship.list", "share.list", "effect.list", "approval.list", "event.list", "queue.list",
	} {
		of(q, "")
	}
	of("item.list", `,"order":"desc","limit":2`)
	of("item.get", `,"itemId":"itm_u0"`)
	of("item.get", `,"itemId":"itm_none"`)
	of("execution.get", `,"executionId":"exe_0"`)
	of("step.list", `,"executionId":"exe_0"`)
	of("part.list", `,"stepId":"stp_0"`)
	of("part.list", `,"stepId":"stp_0","idx":0`)
	of("item.list", `,"at":{"version":5}`)
	ask("thread.list", `{}`)
	ask("thread.history", `{}`)
	return all
}

// A cold thread keeps nothing but its own document in the read models, and every query
// answers as before.
func TestFreeze_QueriesAnswerAsBefore(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fill(threadID(1), 3)
	w.fill(threadID(2), 1)
	w.do("thread.mention", threadID(1), fmt.Sprintf(`{"mentionedId":%q}`, threadID(2)))
	w.shown()
	before := w.answers(threadID(1))
	w.cold(threadID(1))
	if keys := w.keys(threadID(1)); len(keys) != 1 || !w.isCold(threadID(1)) {
		t.Fatalf("a cold thread has the documents %v", keys)
	}
	same(t, "answers", w.answers(threadID(1)), before)
	w.clean()
	if keys := w.keys(threadID(2)); len(keys) < 5 {
		t.Errorf("the other thread has only %v", keys)
	}
}

// A write that changes other documents than the thread's own brings all of them back.
func TestFreeze_WriteBringsBack(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fill(threadID(1), 3)
	w.shown()
	keys := w.keys(threadID(1))
	w.cold(threadID(1))
	w.do("thread.update", threadID(1), `{"title":"renamed"}`)
	w.shown()
	if !w.isCold(threadID(1)) || len(w.keys(threadID(1))) != 1 {
		t.Fatal("a new title brought a thread back")
	}
	w.clean()
	reply := w.do("message.delete", threadID(1), `{"itemId":"itm_u1"}`)
	got, err := client.Read(w.ctx, w.c, events.ListItems{ThreadID: threadID(1), Fresh: events.Fresh{MinVersion: &reply.Version}})
	if err != nil || len(got.Items) != 2 || got.Total != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.shown()
	if w.isCold(threadID(1)) {
		t.Fatal("a write left the thread cold")
	}
	w.clean()
	gone := func(key string) bool { return key == "thread_items acme."+threadID(1)+".itm_u1" }
	same(t, "documents", slices.Sorted(slices.Values(w.keys(threadID(1)))), slices.Sorted(slices.Values(slices.DeleteFunc(keys, gone))))
}

func TestFreeze_Outcomes(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fill(threadID(1), 1)
	w.fill(threadID(2), 1)
	w.do("thread.status", threadID(2), `{"to":"streaming"}`)
	w.fill(threadID(3), 1)
	w.do("thread.delete", threadID(3), `{}`)
	w.shown()
	a := w.freezer()
	all := []string{threadID(1), threadID(2), threadID(3)}
	short := archive.New(w.open(), archive.Config{ColdBytes: 4096}, zerolog.Nop())
	same(t, "long", w.freeze(short, archive.Options{}, all...), []archive.Outcome{archive.Long, archive.Long, archive.Ended})
	same(t, "young", w.freeze(a, archive.Options{Idle: time.Hour}, all...), []archive.Outcome{archive.Young, archive.Young, archive.Ended})
	same(t, "dry run", w.freeze(a, archive.Options{DryRun: true}, all...), []archive.Outcome{archive.Due, archive.Busy, archive.Ended})
	same(t, "freeze", w.freeze(a, archive.Options{}, all...), []archive.Outcome{archive.Frozen, archive.Busy, archive.Ended})
	same(t, "again", w.freeze(a, archive.Options{}, all...), []archive.Outcome{archive.Already, archive.Busy, archive.Ended})
	if n, err := archive.New(w.open(), archive.Config{}, zerolog.Nop()).Strip(w.ctx, "acme", all, false); n != 0 || err != nil {
		t.Errorf("documents were removed before the mark was certainly on the disk: %d, %v", n, err)
	}
}

// A command between the mark and the removal wins.
func TestFreeze_WriteBeforeRemoval(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fill(threadID(1), 2)
	w.shown()
	a := w.freezer()
	w.freeze(a, archive.Options{}, threadID(1))
	w.say(threadID(1), "itm_x", "wait")
	w.shown()
	if n, err := a.Strip(w.ctx, "acme", []string{threadID(1)}, false); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if w.isCold(threadID(1)) || len(w.keys(threadID(1))) < 10 {
		t.Errorf("%v", w.keys(threadID(1)))
	}
	w.clean()
}

// Threads are frozen, stripped and written to at the same time: nothing is lost.
func TestFreeze_RacesWithWriters(t *testing.T) {
	t.Parallel()
	w := start(t)
	ids := []string{threadID(1), threadID(2), threadID(3), threadID(4)}
	for _, id := range ids {
		w.fill(id, 1)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	frozen, ended := make(chan struct{}, 1), make(chan struct{})
	a := w.freezer()
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = a.Freeze(ctx, "acme", ids, archive.Options{}, func(r archive.Result) {
				if r.Outcome == archive.Frozen {
					select {
					case frozen <- struct{}{}:
					default:
					}
				}
			}, func(string, error) {})
			_, _ = a.Strip(ctx, "acme", ids, false)
		}
	}()
	for n := range 60 {
		if n%3 == 0 {
			<-frozen // and write while the documents are being removed
		}
		id := ids[n%len(ids)]
		item := fmt.Sprintf("itm_r%d", n)
		reply := w.say(id, item, "more")
		if _, err := w.c.Query(w.ctx, "item.get", events.JSON(fmt.Sprintf(`{"threadId":%q,"itemId":%q,"minSeq":%d}`, id, item, reply.Seq))); err != nil {
			t.Fatal(n, err)
		}
	}
	cancel()
	<-ended
	w.clean()
	for _, id := range ids {
		got, err := client.Read(w.ctx, w.c, events.ListItems{ThreadID: id})
		if err != nil || got.Total != 16 || len(got.Items) != 16 {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
}

// An item, an execution, a step or a part of a cold thread is found by its id alone, however
// many cold threads there are, if Skein made the id; otherwise the caller is told to name the
// thread.
func TestFreeze_FoundByIDAlone(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.do("thread.create", threadID(1), `{}`)
	made := w.do("item.create", threadID(1), `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"where"}]}}`)
	list, err := client.Read(w.ctx, w.c, events.ListItems{ThreadID: threadID(1), Fresh: events.Fresh{MinVersion: &made.Version}})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(list, err)
	}
	item := list.Items[0].ID
	w.fill(threadID(2), 1)
	w.shown()
	ask := func(query, data string) string {
		got, err := w.c.Query(w.ctx, query, events.JSON(data))
		if err != nil {
			return string(events.AsError(err).Code)
		}
		return string(got)
	}
	questions := [][2]string{
		{"item.get", fmt.Sprintf(`{"itemId":%q}`, item)}, {"item.get", `{"itemId":"itm_u0"}`}, {"execution.get", `{"executionId":"exe_0"}`},
		{"step.list", `{"executionId":"exe_0"}`}, {"part.list", `{"stepId":"stp_0"}`}, {"item.get", `{"itemId":"itm_nowhere"}`},
	}
	all := func() (out []string) {
		for _, q := range questions {
			out = append(out, ask(q[0], q[1]))
		}
		return out
	}
	before := all()
	if before[5] != string(events.NotFound) {
		t.Fatal(before)
	}
	w.cold(threadID(1), threadID(2))
	same(t, "with few cold threads", all(), before)
	var more []string
	for n := range 64 {
		more = append(more, threadID(100+n))
		w.do("thread.create", threadID(100+n), `{}`)
	}
	w.shown()
	w.cold(more...)
	w.until("the list of threads lags", func() bool { return ask("item.get", `{"itemId":"itm_nowhere"}`) == string(events.InvalidRequest) })
	after := all()
	if after[0] != before[0] {
		t.Errorf("an id that Skein made: %s instead of %s", after[0], before[0])
	}
	for i, got := range after[1:5] {
		if got != string(events.InvalidRequest) {
			t.Errorf("%v: %s", questions[i+1], got)
		}
	}
}

// While a runner that does not know cold threads keeps the read models, nothing is frozen.
func TestFreeze_OlderRunner(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fill(threadID(1), 1)
	w.shown()
	bucket := w.log.Bucket("thread_threads")
	checkpoint, ok, err := bucket.Newest(w.ctx, buckets.CheckpointKey)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	older := bytes.Replace(checkpoint.Data, []byte(`"thaws":true`), []byte(`"thaws":false`), 1)
	if _, err := w.log.JetStream().Publish(w.ctx, bucket.Subject(buckets.CheckpointKey), older, jetstream.WithMsgID("older")); err != nil {
		t.Fatal(err)
	}
	err = w.freezer().Freeze(w.ctx, "acme", []string{threadID(1)}, archive.Options{}, func(r archive.Result) { t.Error(r) }, func(_ string, err error) { t.Error(err) })
	if !errors.Is(err, &events.Error{Code: events.Unavailable}) || w.isCold(threadID(1)) {
		t.Error(err)
	}
	w.say(threadID(1), "itm_x", "the runner writes again")
	w.shown()
	w.cold(threadID(1))
	w.clean()
}

// A mark names the buckets that may hold documents of its thread, so that only these are emptied. A
// mark of a Skein that did not name them stands for all.
func TestFreeze_NamesBuckets(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fill(threadID(1), 1)
	w.do("thread.create", threadID(2), `{}`)
	w.shown()
	ids := []string{threadID(1), threadID(2)}
	a := w.freezer()
	w.freeze(a, archive.Options{}, ids...)
	bucket := w.log.Bucket("thread_threads")
	for _, id := range ids {
		own, _, err := bucket.Newest(w.ctx, documents.ThreadName("acme", id))
		if err != nil {
			t.Fatal(err)
		}
		named := strings.Split(buckets.MarkOf(own.Header).In, ",")
		for _, key := range w.keys(id) {
			if of, _, _ := strings.Cut(key, " "); of != "thread_threads" && !slices.Contains(named, of) {
				t.Errorf("%s is in none of %v", key, named)
			}
		}
		if id == threadID(2) && !slices.Equal(named, []string{"thread_contexts", "thread_index"}) {
			t.Errorf("an empty thread has documents in %v", named)
		}
	}
	// As it was marked before.
	own, _, err := bucket.Newest(w.ctx, documents.ThreadName("acme", threadID(1)))
	if err != nil {
		t.Fatal(err)
	}
	old := buckets.MarkOf(own.Header)
	old.In = ""
	header := old.Header()
	header[jetstream.MsgIDHeader] = []string{"as-before"}
	if _, err := w.log.JetStream().PublishMsg(w.ctx, &nats.Msg{Subject: bucket.Subject(documents.ThreadName("acme", threadID(1))), Data: own.Data, Header: header}); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Strip(w.ctx, "acme", ids, false); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	for _, id := range ids {
		if keys := w.keys(id); len(keys) != 1 {
			t.Errorf("%s has %v", id, keys)
		}
	}
	w.clean()
}
