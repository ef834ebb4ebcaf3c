package archive_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// A concurrent writer wins at every step: before the record the archive is abandoned and its
// object deleted, after it the thread goes on.
func TestWriterWins(t *testing.T) {
	t.Parallel()
	w := start(t)
	for n, step := range []archive.Step{archive.Written, archive.Checked, archive.Recorded, archive.Kept} {
		id := threadID(n + 1)
		w.fill(id, 1)
		r, err := w.archiver(func(at archive.Step) error {
			if at == step {
				w.say(id, "itm_meanwhile", "meanwhile")
			}
			return nil
		}).Thread(w.ctx, "acme", id, archive.Options{})
		early := step == archive.Written || step == archive.Checked
		if err != nil || early != (r.Outcome == archive.Moved) {
			t.Fatalf("%s: %+v, %v", step, r, err)
		}
		list, stored := commits(t, w.log, id, 1), w.stored(id)
		objects, err := w.log.Archives(w.ctx, "acme", id, []uint64{list[len(list)-2].seq})
		if early && (err != nil || len(objects) != 0 || len(stored) != len(list)) {
			t.Errorf("%s: given up, the objects %v are there, %v", step, objects, err)
		}
		if !early && len(stored) != 2 {
			t.Errorf("%s: the log holds %v", step, stored)
		}
		if last := list[len(list)-1]; !strings.Contains(last.body, "meanwhile") {
			t.Errorf("%s: the last is %v", step, last)
		}
	}
	w.clean()
}

// An archiver that stands still while another one archives the thread, and erases its commits
// from the log, finds them gone. It neither writes what it still finds over the object of the
// other, nor deletes that.
func TestThread_SlowArchiverLeavesTheObject(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := threadID(1)
	w.fill(id, 1)
	before := commits(t, w.log, id, 1)
	var once sync.Once
	slow := archive.New(w.open(), archive.Config{Now: func() time.Time { // once it knows the last commit
		once.Do(func() { w.archive(id) })
		return time.Now()
	}}, zerolog.Nop())
	r, err := slow.Thread(w.ctx, "acme", id, archive.Options{})
	if err != nil || r.Outcome != archive.Moved {
		t.Errorf("the slow one: %+v, %v", r, err)
	}
	if after := commits(t, w.log, id, 1); !slices.Equal(after[:len(after)-1], before) {
		t.Errorf("the thread has %v, and had %v", after, before)
	}
	w.clean()
}

// Several archivers, writers and readers at once: no commit is lost or shown twice,
// and one record is written for what is archived.
func TestArchiversAndWritersAtOnce(t *testing.T) {
	t.Parallel()
	w := start(t)
	const threads = 3
	for n := range threads {
		w.fill(threadID(n), 1)
	}
	done := make(chan struct{})
	var working, reading sync.WaitGroup
	for range 2 {
		a := w.archiver(nil)
		working.Go(func() {
			for range 4 {
				for n := range threads {
					if _, err := a.Thread(w.ctx, "acme", threadID(n), archive.Options{}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	working.Go(func() {
		for i := range 12 {
			for n := range threads {
				if _, err := w.c.Do(w.ctx, "item.create", client.Request{ThreadID: threadID(n), Data: raw(fmt.Sprintf(`{"item":{"id":"itm_%d","type":"message","role":"user","content":[]}}`, i))}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	log := w.open()
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for n := range threads {
				version, chain := int64(0), ""
				for c, err := range log.Thread(w.ctx, "acme", threadID(n), 1) {
					if err != nil {
						t.Errorf("a reader meets %v", err)
						return
					}
					if c.First() != version || events.Chain(chain, c.Body) != c.Chain {
						t.Errorf("a reader meets version %d after %d", c.First(), version)
						return
					}
					version, chain = c.Version, c.Chain
				}
			}
			last := uint64(0)
			for m, err := range log.Raw(w.ctx, log.Config().Names.Log("acme", "*"), 1) {
				if err != nil || m.Seq <= last {
					t.Errorf("a reader of all meets %d after %d, %v", m.Seq, last, err)
					return
				}
				last = m.Seq
			}
		}
	})
	working.Wait()
	close(done)
	reading.Wait()
	for n := range threads {
		id := threadID(n)
		items := 0
		for _, c := range commits(t, w.log, id, 1) {
			items += strings.Count(c.body, `"type":"item.created"`)
		}
		if items != 13 {
			t.Errorf("%s has %d items, and should have 13", id, items)
		}
		if r, err := w.archiver(nil).Thread(w.ctx, "acme", id, archive.Options{}); err != nil || len(w.stored(id)) != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	w.clean()
}

// A subscriber that lost its connection is given what it missed, although that was
// archived since; and a live one sees the record as the next event.
func TestSubscriberOverAnArchive(t *testing.T) {
	t.Parallel()
	w := start(t)
	id := threadID(1)
	first := w.fill(id, 1)
	for _, thread := range []string{id, ""} {
		live, err := w.c.Timeline(w.ctx, client.SubscribeOptions{Thread: thread, From: client.Seq(first.Seq)})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := live.Next(w.ctx); err != nil || e.Seq != first.Seq {
			t.Fatalf("%+v, %v", e, err)
		}
		missed := w.say(id, "itm_"+fmt.Sprint(len(thread)), "missed")
		if e, err := live.Next(w.ctx); err != nil || e.Seq != missed.Seq {
			t.Fatalf("%+v, %v", e, err)
		}
		w.archive(id)
		e, err := live.Next(w.ctx)
		if err != nil || e.Type != events.LifecycleArchivedType || e.Version != missed.Version+1 {
			t.Fatalf("live it is %+v, %v", e, err)
		}
		live.Close()
		// One that begins where the other was, after the archive.
		again, err := w.c.Timeline(w.ctx, client.SubscribeOptions{Thread: thread, From: client.Seq(missed.Seq)})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := again.Next(w.ctx); err != nil || e.Seq != missed.Seq || e.Version != missed.Version {
			t.Errorf("it was given %+v, %v, and missed %d", e, err, missed.Seq)
		}
		next := w.say(id, "itm_next"+fmt.Sprint(len(thread)), "next")
		for {
			e, err := again.Next(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq == next.Seq {
				break
			}
		}
		again.Close()
		first = next
	}
}
