package archive_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/backup"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// documents reads all documents of all read models.
func (w *world) documents() (list []string) {
	w.t.Helper()
	for _, p := range documents.NewModels().List() {
		for from := uint64(1); ; {
			got, err := w.log.Bucket(p.Bucket).Range(w.ctx, ">", from, 500)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, m := range got {
				if !strings.HasPrefix(m.Subject, "_.") {
					list = append(list, p.Name+" "+m.Subject+" "+string(m.Data))
				}
				from = m.Seq + 1
			}
			if len(got) < 500 {
				break
			}
		}
	}
	slices.Sort(list)
	return list
}

// lives writes threads that are archived never, once, twice, and that went on, or
// were deleted, after it.
func (w *world) lives() {
	w.t.Helper()
	for n := range 6 {
		w.fill(threadID(n), 1)
	}
	w.do("message.delete", threadID(1), `{"itemId":"itm_u0"}`)
	for n := 1; n < 6; n++ {
		w.archive(threadID(n))
	}
	w.say(threadID(2), "itm_2", "goes on")
	w.archive(threadID(2))
	w.say(threadID(3), "itm_3", "goes on")
	w.do("thread.delete", threadID(4), `{}`)
	w.shown()
}

// Read models that are rebuilt, and those of a runner that starts without buckets, are as they
// were; and they and a replayed timeline equal the fold of the log.
func TestReadModelsFromArchives(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.lives()
	before := w.documents()
	if r, err := rebuild.Verify(w.ctx, w.log, rebuild.Scope{}); err != nil || r.Found != 0 || r.Threads != 6 {
		t.Errorf("verify: %+v, %v", r, err)
	}
	js := w.log.JetStream()
	for _, p := range documents.NewModels().List() {
		stream, err := js.Stream(w.ctx, "KV_"+p.Bucket)
		if err == nil {
			err = stream.Purge(w.ctx, jetstream.WithPurgeSubject("$KV."+p.Bucket+".acme.>"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if r, err := rebuild.Repair(w.ctx, w.log); err != nil || r.Repaired < int64(len(before)) {
		t.Errorf("rebuild: %+v, %v", r, err)
	}
	same(t, "documents rebuilt", w.documents(), before)
	if err := timeline.Of(w.log).Rebuild(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.clean()
}

// The same for a runner that finds no bucket at all, as after a restored backup.
func TestNewRunnerFoldsArchives(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.lives()
	before := w.documents()
	dir := t.TempDir() + "/backup"
	b, err := backup.Write(w.ctx, w.log, dir, func(string, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(b.Streams, func(s backup.Stream) bool { return s.Name == "OBJ_thread_archive" && s.Bytes > 1000 }) {
		t.Errorf("the backup has no archives: %+v", b.Streams)
	}
	other := &world{t: t, ctx: t.Context()}
	other.url, other.log = restored(t, dir)
	other.serve()
	other.c = other.client("acme")
	other.shown()
	other.until("the documents were not rebuilt", func() bool { return len(other.documents()) == len(before) })
	same(t, "rebuilt documents", other.documents(), before)
	other.say(threadID(1), "itm_after", "after the restore")
	other.clean()
}

// What the audit finds of archives: one that is missing, one with a flipped bit, one
// that is another's, and records that lie.
func TestAuditOfArchives(t *testing.T) {
	t.Parallel()
	w := start(t)
	for n := range 5 {
		w.fill(threadID(n), 1)
	}
	for n := range 4 {
		w.archive(threadID(n))
	}
	w.say(threadID(3), "itm_more", "goes on")
	w.clean()
	if sizes, err := audit.Measure(w.ctx, w.log, audit.SizeOptions{Tenant: "acme"}); err != nil || sizes.All.Archive.Number != 4 || sizes.All.Archive.Bytes < 1000 || sizes.All.Log.Number < 10 {
		t.Errorf("sizes: %+v, %v", sizes.All, err)
	}
	store, err := w.log.JetStream().ObjectStore(w.ctx, assets.ArchiveBucket)
	if err != nil {
		t.Fatal(err)
	}
	object := func(n int) string {
		for c := range w.log.Thread(w.ctx, "acme", threadID(n), 1) {
			if d, ok := eventlog.Record(c); ok {
				return d.Object
			}
		}
		t.Fatal("no record")
		return ""
	}
	names := []string{object(0), object(1), object(2), object(3)}
	whole, err := store.GetBytes(w.ctx, names[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(w.ctx, names[0]); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 4
	for name, content := range map[string][]byte{names[1]: flipped, names[2]: whole, names[3]: whole[:len(whole)/2]} {
		if _, err := store.PutBytes(w.ctx, name, content); err != nil {
			t.Fatal(err)
		}
	}
	// A record that nobody has archived for, with the chain that it should have.
	list := commits(t, w.log, threadID(4), 1)
	last := list[len(list)-1]
	forged := events.Event{
		ID: "forged", Type: events.LifecycleArchivedType, Time: events.TimeOf(time.Now()), Subject: threadID(4), Tenant: "acme", ThreadID: threadID(4),
		Version: last.version + 1, Data: events.LifecycleArchived{
			Object: "acme/" + threadID(4) + "/" + fmt.Sprint(last.seq), Digest: strings.Repeat("a", 64), Commits: 1, Bytes: 1, FirstSeq: 1, LastSeq: int64(last.seq), Chain: strings.Repeat("b", 64),
		},
	}
	commit, err := events.NewCommit(last.chain, []events.Event{forged})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.log.Append(w.ctx, eventlog.Write{Commit: commit, Expected: last.seq}); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	v := w.validator()
	if _, err := audit.Verify(w.ctx, w.log, v, audit.Options{LogOnly: true, Finding: func(f audit.Finding) {
		found[string(f.Kind)+" "+f.Thread]++
	}}); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		if found["archive "+threadID(n)] != 1 {
			t.Errorf("thread %d: %v", n, found)
		}
	}
	if len(found) != 5 {
		t.Errorf("it also finds %v", found)
	}
	impatient, err := client.Connect(w.url, client.Options{Tenant: "acme", Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(impatient.Close)
	// Every command and query that needs a damaged archive is refused.
	for n := range 4 {
		if err := eventlog.SnapshotsOn(w.log.Streams()).Drop(w.ctx, "acme", threadID(n)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.dispatcher().Do(w.ctx, "acme", "thread.update", []byte(`{"threadId":"`+threadID(n)+`","data":{"title":"x"}}`), commands.Meta{}); err == nil {
			t.Errorf("a command on thread %d was done without its history", n)
		}
		if _, err := client.Read(w.ctx, impatient, events.GetThread{ThreadID: threadID(n), At: &events.At{Version: to(int64(5))}}); err == nil {
			t.Errorf("thread %d is shown as it was without its history", n)
		}
	}
}

// An export holds archived threads whole, and another Skein takes them; there they
// can be archived again, and the record that came along means nothing.
func TestExportOfArchives(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.lives()
	var file bytes.Buffer
	m, err := audit.Export(w.ctx, w.log, &file, audit.ExportOptions{Tenant: "acme"})
	if err != nil || m.Threads != 6 {
		t.Fatalf("%+v, %v", m, err)
	}
	if again, err := audit.Import(w.ctx, w.log, w.validator(), bytes.NewReader(file.Bytes()), audit.ImportOptions{}); err != nil || again.Unchanged != 6 || again.Commits != 0 {
		t.Errorf("into itself: %+v, %v", again, err)
	}
	if _, looked, err := audit.Witness(w.ctx, w.log, w.validator(), bytes.NewReader(file.Bytes()), audit.ReadOptions{}, func(f audit.Finding) { t.Error(f) }); err != nil || looked != 6 {
		t.Errorf("witness: %d, %v", looked, err)
	}
	other := start(t)
	other.c, _ = client.Connect(other.url, client.Options{Tenant: "filler", Timeout: 20 * time.Second})
	t.Cleanup(other.c.Close)
	for n := range 8 { // so that sequences differ
		other.fill(threadID(100+n), 1)
	}
	other.c = other.client("acme")
	sum, err := audit.Import(other.ctx, other.log, other.validator(), bytes.NewReader(file.Bytes()), audit.ImportOptions{})
	if err != nil || sum.Imported != 6 {
		t.Fatalf("%+v, %v", sum, err)
	}
	other.clean()
	for _, n := range []int{0, 1, 2, 3, 5} {
		id := threadID(n)
		there, here := commits(t, other.log, id, 1), commits(t, w.log, id, 1)
		if len(there) != len(here) || there[len(there)-1].chain != here[len(here)-1].chain {
			t.Errorf("thread %d has %d commits, and had %d", n, len(there), len(here))
		}
		// From any place, as where it was archived first.
		for i, c := range there {
			same(t, "from there", commits(t, other.log, id, c.seq), there[i:])
		}
		other.archive(id)
		after := commits(t, other.log, id, 1)
		same(t, "archived again", after[:len(there)], there)
		if left := other.stored(id); len(left) != 1 {
			t.Errorf("the log holds %v", left)
		}
		other.say(id, "itm_there", "there")
	}
	other.clean()
	steps := 0
	if err := audit.Trail(other.ctx, other.log, "acme", threadID(2), audit.TrailOptions{}, func(audit.TrailEntry) error { steps++; return nil }); err != nil || steps < 12 {
		t.Errorf("the trail has %d steps, %v", steps, err)
	}
}

// A tenant's cold threads are archived together, those that are idle, each once.
func TestColdThreads(t *testing.T) {
	t.Parallel()
	w := start(t)
	for n := range 4 {
		w.fill(threadID(n), 1)
	}
	w.do("thread.resolve", "", `{"key":"support/1"}`)
	w.shown()
	a := archive.New(w.log, archive.Config{}, zerolog.Nop())
	var done []archive.Result
	cold := func(o archive.Options) {
		t.Helper()
		done = nil
		if err := a.Cold(w.ctx, "acme", o, nil, func(r archive.Result) {
			if r.Outcome != archive.Already {
				done = append(done, r)
			}
		}, func(id string, err error) { t.Error(id, err) }); err != nil {
			t.Fatal(err)
		}
	}
	if cold(archive.Options{Idle: time.Hour}); len(done) != 0 {
		t.Errorf("young threads: %+v", done)
	}
	if cold(archive.Options{DryRun: true}); len(done) != 5 || done[0].Outcome != archive.Due || done[0].Thread != threadID(0) {
		t.Errorf("a dry run: %+v", done)
	}
	if cold(archive.Options{}); len(done) != 5 || done[4].Outcome != archive.Archived {
		t.Errorf("%+v", done)
	}
	if cold(archive.Options{}); len(done) != 0 {
		t.Errorf("again: %+v", done)
	}
	w.clean()
}
