package archive_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog/backup"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/projections/rebuild"
)

// empty removes what a bucket holds of the tenant.
func (w *world) empty(k documents.Kind) {
	w.t.Helper()
	bucket := "KV_" + documents.NewModels().Of(k).Bucket
	stream, err := w.log.JetStream().Stream(w.ctx, bucket)
	if err == nil {
		err = stream.Purge(w.ctx, jetstream.WithPurgeSubject("$"+strings.Replace(bucket, "_", ".", 1)+".acme.>"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// Threads that are forks, children, mentioned or shared, with inherited histories, show cold what
// they showed; they are forked, truncated and erased as others are.
func TestFreeze_RelatedThreads(t *testing.T) {
	t.Parallel()
	w := start(t)
	r := w.related()
	if got := w.freeze(w.freezer(), archive.Options{}, r.id); got[0] != archive.Busy {
		t.Errorf("with a life: %s", got)
	}
	w.do("state.merge", r.id, `{"operations":[{"op":"clear"}]}`)
	w.do("state.destroy", r.id, `{}`)
	w.do("state.release", r.id, `{"life":1,"listener":"shop"}`)
	before := w.shows(r)
	delete(before, "first life") // it was cleared
	w.cold(r.threads()...)
	for _, id := range r.threads() {
		if keys := slices.DeleteFunc(w.keys(id), func(key string) bool { return strings.HasPrefix(key, "thread_shares ") }); len(keys) != 1 {
			t.Errorf("%s has %v", id, keys)
		}
	}
	compareShown(t, "cold", w.shows(r), before)
	w.clean()
	w.do("thread.delete", r.long, `{"purge":true}`)
	w.erased(r.long)
	compareShown(t, "cold, with its parent erased", onlyOf("heir", w.shows(r)), onlyOf("heir", before))
	second := w.do("thread.fork", r.id, `{"messageIndex":0}`).Result.ChildID
	w.do("thread.truncate", r.id, `{"messageIndex":0}`)
	if got := w.shows(r)["relationships"]; strings.Contains(got, r.next) || strings.Contains(got, r.fork) || !strings.Contains(got, second) {
		t.Errorf("after a truncation to the first message its relationships are %s, and the second fork is %s", got, second)
	}
	w.clean()
}

// A read model that is rebuilt does not bring the documents of cold threads back; if the threads'
// own documents are lost, every thread is cold until it is written to, and shows all that it has.
func TestFreeze_Rebuilt(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fill(threadID(1), 2)
	w.fill(threadID(2), 2)
	w.shown()
	before := w.answers(threadID(1))
	w.cold(threadID(1))
	if r, err := rebuild.Verify(w.ctx, w.log, rebuild.Scope{}, "items"); err != nil || r.Found != 0 {
		t.Errorf("verify items: %+v, %v", r, err)
	}
	w.empty(documents.Items)
	if r, err := rebuild.Repair(w.ctx, w.log); err != nil || r.Repaired != 2 {
		t.Errorf("items of the other thread: %+v, %v", r, err)
	}
	if keys := w.keys(threadID(1)); len(keys) != 1 {
		t.Errorf("a rebuild brought back %v", keys)
	}
	if r, err := rebuild.Progress(nil).Rewrite(w.ctx, w.log); err != nil || r.Found != 0 || !w.isCold(threadID(1)) {
		t.Errorf("rewritten: %+v, %v", r, err)
	}
	w.empty(documents.Threads)
	if r, err := rebuild.Repair(w.ctx, w.log, "threads"); err != nil || r.Repaired != 2 {
		t.Errorf("own documents: %+v, %v", r, err)
	}
	if !w.isCold(threadID(1)) || !w.isCold(threadID(2)) {
		t.Error("a thread of which it is not known whether it is cold is shown as warm")
	}
	same(t, "answers", w.answers(threadID(1)), before)
	w.clean()
	w.say(threadID(1), "itm_a", "again")
	w.say(threadID(2), "itm_b", "again")
	w.clean()
	w.empty(documents.Threads)
	if r, err := rebuild.Repair(w.ctx, w.log); err != nil || w.isCold(threadID(1)) {
		t.Errorf("all documents: %+v, %v", r, err)
	}
	w.clean()
}

// A cold thread is archived, exported, imported, backed up and restored as others are, and an
// archived one is frozen.
func TestFreeze_ArchivedExportedRestored(t *testing.T) {
	t.Parallel()
	w := start(t)
	for n := range 3 {
		w.fill(threadID(n), 2)
	}
	w.archive(threadID(0))
	w.shown()
	w.cold(threadID(0), threadID(1))
	before := commits(t, w.log, threadID(1), 1)
	w.archive(threadID(1))
	w.shown()
	if !w.isCold(threadID(1)) || len(w.keys(threadID(1))) != 1 {
		t.Errorf("the archive brought back %v", w.keys(threadID(1)))
	}
	w.clean()
	items, err := client.Read(w.ctx, w.c, events.ListItems{ThreadID: threadID(1)})
	if err != nil || items.Total != 2 || len(items.Items) != 2 {
		t.Errorf("%+v, %v", items, err)
	}
	var file bytes.Buffer
	if m, err := audit.Export(w.ctx, w.log, &file, audit.ExportOptions{Tenant: "acme"}); err != nil || m.Threads != 3 {
		t.Fatalf("%+v, %v", m, err)
	}
	other := start(t)
	if sum, err := audit.Import(other.ctx, other.log, other.validator(), bytes.NewReader(file.Bytes()), audit.ImportOptions{}); err != nil || sum.Imported != 3 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if there := commits(t, other.log, threadID(1), 1); len(there) != len(before)+1 {
		t.Errorf("%d commits are there, and there were %d before the record", len(there), len(before))
	}
	other.clean()
	dir := t.TempDir() + "/backup"
	if _, err := backup.Write(w.ctx, w.log, dir, func(string, int64) {}); err != nil {
		t.Fatal(err)
	}
	third := &world{t: t, ctx: t.Context()}
	third.url, third.log = restored(t, dir)
	third.serve()
	third.c = third.client("acme")
	third.clean()
	if third.isCold(threadID(1)) {
		t.Error("read models that are filled from a restored log have a cold thread")
	}
	w.say(threadID(0), "itm_x", "warm")
	w.say(threadID(1), "itm_x", "warm")
	w.clean()
	for n := range 2 {
		if got, err := client.Read(w.ctx, w.c, events.ListItems{ThreadID: threadID(n)}); err != nil || got.Total != 3 || len(got.Items) != 3 {
			t.Errorf("thread %d: %+v, %v", n, got, err)
		}
	}
}

// The purge of a cold thread leaves nothing, also while its documents are being removed.
func TestFreeze_Erased(t *testing.T) {
	t.Parallel()
	w := start(t)
	ids := []string{threadID(1), threadID(2)}
	for _, id := range ids {
		w.fill(id, 1)
	}
	w.shown()
	w.cold(threadID(1))
	a := w.freezer()
	w.freeze(a, archive.Options{}, threadID(2))
	for _, id := range ids {
		w.do("thread.delete", id, `{"purge":true}`)
	}
	if _, err := a.Strip(w.ctx, "acme", ids, true); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		w.erased(id)
		if keys := w.keys(id); len(keys) != 0 {
			t.Errorf("%v", keys)
		}
	}
	w.clean()
}

// Idle threads are frozen after 30 days, or as their tenant's policy says.
func TestFreeze_Policy(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fill(threadID(1), 1)
	acme := w.c
	for tenant, days := range map[string]string{"never": "0", "soon": "1", "late": "60"} {
		w.c = w.client(tenant)
		w.fill(threadID(1), 1)
		w.do("definition.apply", "", `{"definitions":[{"kind":"policy","definition":{"name":"retention","coldAfterDays":`+days+`}}]}`)
	}
	w.c = acme
	w.shown()
	if _, err := w.c.Do(w.ctx, "definition.apply", client.Request{Data: raw(`{"definitions":[{"kind":"policy","definition":{"name":"retention","coldAfterDays":-1}}]}`)}); err == nil {
		t.Error("a negative number of days was accepted")
	}
	want := map[string]time.Duration{"never": -1, "soon": 24 * time.Hour, "late": 60 * 24 * time.Hour}
	w.until("the policies are not read", func() bool {
		got, err := archive.ColdPolicies(w.ctx, w.log)
		return err == nil && maps.Equal(got, want)
	})
	log := w.open()
	queries := query.New(log, w.validator(), query.Config{}, zerolog.Nop(), nil)
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan struct{}, 2)
	defer func() { cancel(); <-ended; <-ended }()
	go func() { _ = queries.Run(ctx); ended <- struct{}{} }()
	documentsOf := func(tenant string) int {
		got, err := w.log.Bucket("thread_items").All(w.ctx, tenant+".>")
		if err != nil {
			t.Fatal(err)
		}
		return len(got)
	}
	a := archive.New(log, archive.Config{Every: 20 * time.Millisecond, Settle: -1, Now: func() time.Time { return time.Now().Add(31 * 24 * time.Hour) }}, zerolog.Nop())
	go func() { _ = a.RunCold(ctx, queries); ended <- struct{}{} }()
	w.until("idle threads are not frozen", func() bool { return documentsOf("acme") == 0 && documentsOf("soon") == 0 })
	if documentsOf("never") == 0 || documentsOf("late") == 0 {
		t.Error("threads were frozen against the policy of their tenants")
	}
	w.clean()
}

// A process that takes over completes the removals of one that was killed in the middle.
func TestFreeze_TakesUpInterruptedRemovals(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fill(threadID(1), 1)
	w.shown()
	w.cold(threadID(1))
	// As if it had been killed before it removed anything of a bucket.
	stray := documents.Place{Kind: documents.Items, Thread: "acme." + threadID(1), ID: "itm_u0"}
	item, err := client.Read(w.ctx, w.c, events.GetItem{ThreadID: threadID(1), ItemID: "itm_u0"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := documents.Encode(item)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.log.JetStream().Publish(w.ctx, w.log.Bucket("thread_items").Subject(stray.Key()), doc, jetstream.WithMsgID("stray")); err != nil {
		t.Fatal(err)
	}
	w.clean() // what is there is right
	queries := query.New(w.open(), w.validator(), query.Config{}, zerolog.Nop(), nil)
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan struct{}, 2)
	defer func() { cancel(); <-ended; <-ended }()
	go func() { _ = queries.Run(ctx); ended <- struct{}{} }()
	go func() { _ = w.freezer().RunCold(ctx, queries); ended <- struct{}{} }()
	w.until("the removal is not completed", func() bool { return len(w.keys(threadID(1))) == 1 })
	w.clean()
}
