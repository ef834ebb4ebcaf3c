package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/store"
)

// After an unclean stop a server reads the blocks of derived streams, whatever it has written in
// their indexes; the others keep theirs.
func TestOpen_IndexesOfDerivedStreams(t *testing.T) {
	dir := t.TempDir()
	server := natstest.Start(t, natstest.StoreDir(dir))
	nc := natstest.Connect(t, server)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"LOG", "DERIVED"} {
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}}); err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(t.Context(), name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	nc.Close()
	server.Shutdown()
	has := func(stream string) bool {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", stream, "msgs"))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %q, %v", stream, list, err)
		}
		_, err = os.Stat(filepath.Join(list[0], "index.db"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	if !has("LOG") || !has("DERIVED") {
		t.Fatal("the server has written no indexes")
	}
	cfg := store.Config{Dir: dir, Log: "LOG", Derived: func(stream string) bool { return stream == "DERIVED" }}
	if _, err := store.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if !has("LOG") || has("DERIVED") {
		t.Errorf("the log has its index: %t; the derived stream has: %t", has("LOG"), has("DERIVED"))
	}
}
