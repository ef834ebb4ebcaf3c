package files_test

import (
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
)

// The contents of a purged thread are taken when nobody can be about to name them
// any more; those that another thread of the tenant names stay, also if only its
// history does, and so do another tenant's.
func TestErase(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	ctx := t.Context()
	c, other := w.client("acme"), w.client("globex")
	one, two := w.thread(c), w.thread(c)
	write := func(c *client.Client, thread, path string, data []byte) {
		t.Helper()
		if _, err := c.Files(thread).WriteFile(ctx, path, data, "", client.WriteFileOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mine, shared := noise(700_000, 1), noise(700_001, 2)
	write(c, one, "/mine", mine)
	write(c, one, "/shared", shared)
	write(c, two, "/shared", shared)
	if err := c.Files(two).UnlinkFile(ctx, "/shared"); err != nil {
		t.Fatal(err)
	}
	write(other, w.thread(other), "/mine", mine)
	if _, err := c.DeleteThread(ctx, one, events.DeleteThread{Purge: true}); err != nil {
		t.Fatal(err)
	}
	digests := []string{digest(mine), digest(shared), digest([]byte("never stored"))}
	before := w.held()
	again, err := files.NewEraser(w.store, w.log, nil).Erase(ctx, "acme", digests)
	if err != nil || again <= 0 || again > files.MinGrace || w.held() != before {
		t.Fatalf("what is young: again in %v, %v", again, err)
	}
	later := func() time.Time { return time.Now().Add(again + time.Minute) }
	if again, err = files.NewEraser(w.store, w.log, later).Erase(ctx, "acme", digests); err != nil || again != 0 {
		t.Fatalf("what is old: again in %v, %v", again, err)
	}
	// An entry and two pieces of 512 KiB.
	if now := w.held(); now != before-3 {
		t.Errorf("%d messages are left of %d", now, before)
	}
	for tenant, want := range map[string]bool{"acme": false, "globex": true} {
		var got error
		for _, err := range w.store.All(ctx, tenant, digest(mine)) {
			got = err
		}
		if (got == nil) != want {
			t.Errorf("the content of %s: %v", tenant, got)
		}
	}
	for _, err := range w.store.All(ctx, "acme", digest(shared)) {
		if err != nil {
			t.Errorf("what another history names: %v", err)
		}
	}
}
