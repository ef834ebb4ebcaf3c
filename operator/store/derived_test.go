package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/store"
)

// A block of a derived stream that is removed after a clean stop is named by a check, with the
// stream if all of it is gone. It stops no start, which names it, too, and a repair has the stream
// made again.
func TestCheck_DerivedBlockIsGone(t *testing.T) {
	dir := t.TempDir()
	server := natstest.Start(t, natstest.StoreDir(dir))
	nc := natstest.Connect(t, server)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"LOG", "DERIVED", "EMPTIED"} {
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}}); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if _, err := js.Publish(t.Context(), name, make([]byte, 900<<10)); err != nil {
				t.Fatal(err)
			}
		}
	}
	nc.Close()
	server.Shutdown()
	cfg := store.Config{Dir: dir, Log: "LOG", Derived: func(stream string) bool { return stream != "LOG" }}
	closeCleanly := func() {
		t.Helper()
		o, err := store.Open(t.Context(), cfg)
		if err == nil {
			err = o.Confirm("", nil)
		}
		if err == nil {
			err = o.Closed()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func() (out []string) {
		t.Helper()
		r, err := store.Check(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range r.Damages {
			out = append(out, d.String())
		}
		return out
	}
	closeCleanly()
	if got := check(); got != nil {
		t.Fatalf("a store of which nothing is gone: %q", got)
	}
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "DERIVED", "msgs", "*.blk"))
	if err != nil || len(blocks) < 3 {
		t.Fatalf("%q, %v", blocks, err)
	}
	emptied := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(blocks[1]))), "EMPTIED")
	for _, gone := range []string{blocks[1], emptied} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	got := check()
	if len(got) != 2 || !strings.Contains(got[0], "DERIVED/msgs/2.blk: the block was there when the store was closed, and is gone (derived: the log has it)") || !strings.Contains(got[1], "streams/EMPTIED: the stream was there") {
		t.Fatalf("the check says %q", got)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	o, err := store.Open(t.Context(), store.Config{Dir: copied, Log: "LOG", Derived: cfg.Derived})
	if err != nil {
		t.Fatal(err)
	}
	if gone := o.DerivedGone(); len(gone) != 2 {
		t.Errorf("a start says %v", gone)
	}
	if r, err := store.Check(t.Context(), store.Config{Dir: copied, Log: "LOG", Derived: cfg.Derived}); err != nil || len(r.Damages) != 0 {
		t.Errorf("after a start blocks may go, and the check says %v, %v", r, err)
	}
	done, err := store.Repair(t.Context(), store.RepairConfig{Config: cfg})
	if err != nil || strings.Join(done.Rebuild, " ") != "DERIVED EMPTIED" {
		t.Fatalf("the repair: %+v, %v", done, err)
	}
	if got := check(); got != nil {
		t.Errorf("after the repair: %q", got)
	}
}
