package files_test

import (
	"errors"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/natstest"
)

// collect collects as it will be after two hours.
func (w *world) collect(now time.Duration, really bool) (files.Collected, map[string]bool) {
	w.t.Helper()
	seen := map[string]bool{}
	sum, err := w.store.Later(now).Collect(w.t.Context(), w.log, files.CollectOptions{Delete: really, Found: func(g files.Garbage) { seen[g.Tenant+"/"+g.Digest+g.Upload] = g.Taken }})
	if err != nil {
		w.t.Fatal(err)
	}
	return sum, seen
}

// What no history names goes: contents of deleted threads, of refused commands,
// and pieces of uploads whose process died. All else stays: old versions, deleted
// files, contents that another thread names too, and all that is young.
func TestCollect(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	ctx := t.Context()
	c := w.client("acme")
	one, two := w.thread(c), w.thread(c)
	write := func(thread, path string, data []byte) {
		t.Helper()
		if _, err := c.Files(thread).WriteFile(ctx, path, data, "", client.WriteFileOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	old, shared, gone := noise(700_000, 1), noise(700_001, 2), noise(700_002, 3)
	write(one, "/f", old)
	write(one, "/f", []byte("new"))
	write(one, "/g", shared)
	write(two, "/h", shared)
	write(two, "/i", gone)
	write(two, "/j", []byte("small and gone"))
	if err := c.Files(one).UnlinkFile(ctx, "/f"); err != nil {
		t.Fatal(err)
	}
	// The same bytes are another tenant's own.
	other := w.client("globex")
	if _, err := other.Files(w.thread(other)).WriteFile(ctx, "/k", gone, "", client.WriteFileOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Keep(ctx, "acme", []byte("of a refused command")); err != nil {
		t.Fatal(err)
	}
	piece := noise(events.FilePieceBytes, 9)
	dead, err := w.store.Abandon(ctx, "acme", piece, piece, piece)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(ctx, two, events.DeleteThread{}); err != nil {
		t.Fatal(err)
	}
	if sum, seen := w.collect(0, true); sum.Garbage != 0 {
		t.Fatalf("what is young was found: %+v %v", sum, seen)
	}
	want := []string{"acme/" + digest(gone), "acme/" + digest([]byte("small and gone")), "acme/" + digest([]byte("of a refused command")), "/" + dead}
	before := w.held()
	sum, seen := w.collect(2*time.Hour, false)
	if sum.Garbage != int64(len(want)) || sum.Taken != 0 || w.held() != before || sum.GarbageBytes != 700_002+14+20+3*events.FilePieceBytes {
		t.Errorf("dry: %+v %v", sum, seen)
	}
	if sum, seen = w.collect(2*time.Hour, true); sum.Taken != int64(len(want)) || len(seen) != len(want) {
		t.Errorf("%+v %v", sum, seen)
	}
	for _, name := range want {
		if !seen[name] {
			t.Errorf("%s was not taken", name)
		}
	}
	for _, data := range [][]byte{old, shared, []byte("new")} {
		if got, err := w.content("acme", digest(data)); err != nil || string(got) != string(data) {
			t.Errorf("%d bytes of %d: %v", len(got), len(data), err)
		}
	}
	if got, err := w.content("globex", digest(gone)); err != nil || string(got) != string(gone) {
		t.Errorf("of the other tenant: %d bytes, %v", len(got), err)
	}
	var missing *files.NotStoredError
	if _, err := w.store.Later(0).Size(ctx, "acme", digest(gone)); !errors.As(err, &missing) {
		t.Errorf("what was taken: %v", err)
	}
	if w.held() != 3+3+2+3 { // old, shared, new, the other's: pieces and entries
		t.Errorf("%d messages are left", w.held())
	}
	if sum, _ := w.collect(2*time.Hour, true); sum.Garbage != 0 || sum.Objects != 4 {
		t.Errorf("again: %+v", sum)
	}
	if _, err := w.store.Collect(ctx, w.log, files.CollectOptions{Grace: time.Minute}); events.AsError(err).Code != events.InvalidRequest {
		t.Errorf("a short grace: %v", err)
	}
}

// A writer that needs old content that nothing names keeps it from the collector,
// whichever of the two is first.
func TestCollect_DuringWrites(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	ctx := t.Context()
	data := noise(600_000, 1)
	if _, err := w.store.Keep(ctx, "acme", data); err != nil {
		t.Fatal(err)
	}
	// The collector has seen it as garbage; then a writer finds it, before it is taken.
	later := w.store.Later(2 * time.Hour)
	found, taken, err := later.CollectAround(ctx, w.log, func() error {
		_, err := later.Keep(ctx, "acme", data)
		return err
	})
	if err != nil || found != 1 || taken != 0 {
		t.Fatalf("%d found, %d taken, %v", found, taken, err)
	}
	if got, err := w.content("acme", digest(data)); err != nil || len(got) != len(data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// It is deleted first: the writer stores it again.
	if sum, _ := w.collect(4*time.Hour, true); sum.Taken != 1 {
		t.Fatalf("%+v", sum)
	}
	cl := w.client("acme")
	if _, err := cl.Files(w.thread(cl)).WriteFile(ctx, "/f", data, "", client.WriteFileOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := w.content("acme", digest(data)); err != nil || len(got) != len(data) {
		t.Errorf("stored again: %d bytes, %v", len(got), err)
	}
}

// What a commit that cannot be read may name stays: it is not known whether it does.
func TestCollect_KeepsWhatABrokenCommitMayName(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	named, unnamed := noise(1000, 1), noise(1001, 2)
	for _, data := range [][]byte{named, unnamed} {
		if _, err := w.store.Keep(t.Context(), "acme", data); err != nil {
			t.Fatal(err)
		}
	}
	broken := `[{"type":"file.written","data":{"path":"/f","digest":"` + digest(named) + `"`
	nc := natstest.Connect(t, w.server)
	if _, err := nc.Request("skein.log.acme.T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162", []byte(broken), time.Minute); err != nil {
		t.Fatal(err)
	}
	if sum, seen := w.collect(2*time.Hour, true); sum.Taken != 1 || !seen["acme/"+digest(unnamed)] {
		t.Errorf("%+v %v", sum, seen)
	}
	if got, err := w.content("acme", digest(named)); err != nil || string(got) != string(named) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
