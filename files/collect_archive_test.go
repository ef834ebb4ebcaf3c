package files_test

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/projections"
)

// What an archived thread names stays, and can be read.
func TestCollectLeavesWhatArchivesName(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	runner := projections.New(w.log, projections.Config{}, zerolog.Nop(), nil)
	if err := runner.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 2)
	go func() { _ = runner.Run(t.Context()); done <- struct{}{} }()
	go func() { _ = timeline.Of(w.log).Relay(t.Context()); done <- struct{}{} }()
	t.Cleanup(func() { <-done; <-done })
	c := w.client("acme")
	id := w.thread(c)
	if _, err := c.Files(id).WriteFile(t.Context(), "/f", []byte("named by an archive"), "", client.WriteFileOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Files(id).UnlinkFile(t.Context(), "/f"); err != nil {
		t.Fatal(err)
	}
	r, err := archive.New(w.log, archive.Config{}, zerolog.Nop()).Thread(t.Context(), "acme", id, archive.Options{})
	if err != nil || r.Outcome != archive.Archived {
		t.Fatalf("%+v, %v", r, err)
	}
	if sum, seen := w.collect(2*time.Hour, true); sum.Objects != 1 || sum.Garbage != 0 {
		t.Errorf("%+v %v", sum, seen)
	}
}
