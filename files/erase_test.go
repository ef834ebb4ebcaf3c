package files_test

import (
	"errors"
	"fmt"
	"strings"
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
	if _, err := c.Send(ctx, one, events.DeleteThread{Purge: true}); err != nil {
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

// The pages that forks made of a thread's history go with it, also those of a fork that took
// only its beginning, or was refused. A page that another thread has inherited stays until that
// one is purged, too.
func TestErase_PagesOfHistories(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	ctx := t.Context()
	c := w.client("acme")
	later := files.NewEraser(w.store, w.log, func() time.Time { return time.Now().Add(files.MinGrace + time.Minute) })
	long := func() string {
		t.Helper()
		id := w.thread(c)
		for n := range 14 {
			content := fmt.Sprintf(`[{"type":"input_text","text":"%s %d %s"}]`, id, n, strings.Repeat("x", 60<<10))
			if _, err := c.Send(ctx, id, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: events.JSON(content)}}); err != nil {
				t.Fatal(err)
			}
		}
		return id
	}
	fork := func(id string, d events.ForkThread) (string, error) {
		t.Helper()
		reply, err := c.Send(ctx, id, d)
		if err != nil {
			return "", err
		}
		return reply.Result.ChildID, nil
	}
	purge := func(id string) {
		t.Helper()
		if _, err := c.Send(ctx, id, events.DeleteThread{Purge: true}); err != nil {
			t.Fatal(err)
		}
	}
	one, other := long(), long()
	if _, err := c.Send(ctx, "", events.CreateThread{Key: "taken"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{one, other} {
		if _, err := fork(id, events.ForkThread{MessageIndex: new(int64)}); err != nil {
			t.Fatal(err)
		}
		if _, err := fork(id, events.ForkThread{MessageIndex: new(int64(13)), Key: "taken"}); !errors.Is(err, &events.Error{Code: events.AlreadyExists}) {
			t.Fatal(err)
		}
	}
	both := w.held()
	if both == 0 {
		t.Fatal("no pages were stored: nothing is shown")
	}
	purge(one)
	if again, err := files.NewEraser(w.store, w.log, nil).ErasePages(ctx, "acme", one); err != nil || again <= 0 || w.held() != both {
		t.Fatalf("what is young: again in %v, %v", again, err)
	}
	if again, err := later.ErasePages(ctx, "acme", one); err != nil || again != 0 || w.held() != both/2 {
		t.Errorf("what is old: again in %v, %v, and %d messages are left of %d", again, err, w.held(), both)
	}

	heir, err := fork(other, events.ForkThread{MessageIndex: new(int64(13))})
	if err != nil {
		t.Fatal(err)
	}
	first, err := w.log.After(ctx, "acme", heir, 0)
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for i := range first.Events {
		for digest := range first.Events[i].Contents() {
			pages = append(pages, digest)
		}
	}
	purge(other)
	if again, err := files.NewEraser(w.store, w.log, nil).ErasePages(ctx, "acme", other); err != nil || again != 0 {
		t.Errorf("what is inherited, and young: again in %v, %v", again, err)
	}
	if _, err := later.ErasePages(ctx, "acme", other); err != nil {
		t.Error(err)
	}
	if len(pages) == 0 {
		t.Fatal("the fork has inherited nothing")
	}
	for _, digest := range pages {
		if _, err := w.content("acme", digest); err != nil {
			t.Errorf("what another thread has inherited: %v", err)
		}
	}
	purge(heir)
	if again, err := later.Erase(ctx, "acme", pages); err != nil || again != 0 || w.held() != 0 {
		t.Errorf("at the end, again in %v, %v, and %d messages are left", again, err, w.held())
	}
}
