package projections

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
)

// Invalid messages between the commits, published with plain NATS.
func TestBrokenCommits(t *testing.T) {
	h := newHouse(t)
	counter := &counts{}
	r := h.runWith(Config{CheckpointEvery: time.Millisecond}, counter)
	id := h.Do("thread.create", "", `{}`).ThreadID
	h.Publish("skein.log."+acme+"."+id, nats.Header{events.HeaderVersion: {"9"}}, []byte(`[{"no":"event"}]`))
	h.Publish("skein.log.acme.T-garbage", nil, []byte("garbage"))
	// It can be read, but its item's id cannot be a key.
	e := events.Event{
		ID: "x", Type: events.ItemCreatedType, Tenant: acme, ThreadID: "T-odd", Version: 1, Subject: "no key > of * any kind",
		Data: events.ItemCreated{ID: "no key > of * any kind", ContextID: "c", Type: events.Message, Status: events.ItemStored},
	}
	odd, err := events.NewCommit("", []events.Event{e})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.EventLog.Append(t.Context(), eventlog.Write{Commit: odd}); err != nil {
		t.Fatal(err)
	}
	other := h.Do("thread.create", "", `{}`).ThreadID
	h.React(other, 1)
	h.await(r)
	h.Same(id, other, "T-odd")
	if n := counter.broken(); n != 3 {
		t.Errorf("%d broken commits were counted, want 3", n)
	}
	// The checkpoints remember it, also over a restart.
	for _, p := range h.Models.List() {
		h.Until(func() bool {
			c, err := buckets.ReadCheckpoint(t.Context(), h.EventLog, p)
			return err == nil && c.Checkpoint != nil && c.Broken == 2 && c.BrokenSeq > 0
		}, p.Name+" does not know of two broken commits")
	}
}

// A purge erases a thread's events too, after the timeline has shown the tombstone, also
// when the runner is killed meanwhile.
func TestPurge(t *testing.T) {
	h := newHouse(t)
	r, kill := h.run(Config{})
	id := h.Do("thread.create", "", `{"key":"k"}`).ThreadID
	kept := h.Do("thread.create", "", `{}`).ThreadID
	for n := range 3 {
		h.React(id, n)
		h.React(kept, n)
	}
	for _, thread := range []string{id, kept} {
		h.WriteChunk(thread)
	}
	end := h.Do("thread.delete", id, `{"purge":true}`)
	h.await(r)
	h.Same(kept)
	if n := h.CountMessages("skein.log." + acme + "." + id); n != 5 {
		t.Fatalf("the log has %d commits of the thread before the timeline has shown its end, want 5", n)
	}
	kill() // with the deletion unfinished
	// It takes many turns.
	r, _ = h.run(Config{EraseTurn: time.Millisecond})
	h.await(r)
	ctx, cancel := context.WithCancel(context.Background())
	relayed := make(chan struct{})
	go func() {
		defer close(relayed)
		_ = timeline.Of(h.NewLog()).Relay(ctx)
	}()
	defer func() {
		cancel()
		<-relayed
	}()
	h.Until(func() bool { return h.CountMessages("skein.log."+acme+"."+id) == 1 }, "the events were not erased")
	last, err := h.EventLog.Last(t.Context(), acme, id)
	if err != nil || int64(last.Seq) != end.Seq {
		t.Fatalf("the tombstone is not what is left: %+v, %v", last, err)
	}
	h.Until(func() bool {
		var left []string
		stream, err := h.EventLog.JetStream().Stream(t.Context(), "SKEIN_TIMELINE")
		if err != nil {
			t.Fatal(err)
		}
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("skein.timeline."+acme+"."+id+".>"))
		if err != nil {
			t.Fatal(err)
		}
		for subject := range info.State.Subjects {
			left = append(left, subject)
		}
		slices.Sort(left)
		return len(left) == 2 && strings.HasSuffix(left[0], ".key.released") && strings.HasSuffix(left[1], ".lifecycle.deleted")
	}, "the timeline still shows the thread")
	h.Until(func() bool { return h.CountMessages("$KV.thread_threads._.deletion.>") == 0 }, "the note of the end is still there")
	if gone, left := h.CountMessages("skein.chunk."+acme+"."+id+".*"), h.CountMessages("skein.chunk."+acme+"."+kept+".*"); gone != 0 || left != 1 {
		t.Errorf("%d chunks of the thread are left, and %d of the other", gone, left)
	}
	h.Same(kept, id)
	if report := h.Verify(); report.Found != 0 {
		t.Errorf("a verification says %+v", report)
	}
}

// hesitant is an eraser that has to be called several times.
type hesitant struct {
	asked atomic.Int64
	names chan []string
	paged chan string
}

func (e *hesitant) Erase(ctx context.Context, _ string, digests []string) (time.Duration, error) {
	if _, bounded := ctx.Deadline(); bounded {
		return 0, errors.New("it may take longer than a turn")
	}
	switch e.asked.Add(1) {
	case 1:
		return 0, errors.New("the store is away")
	case 2, 3:
		return 10 * time.Millisecond, nil
	}
	e.names <- digests
	return 0, nil
}

// ErasePages has to be called twice.
func (e *hesitant) ErasePages(ctx context.Context, _, thread string) (time.Duration, error) {
	if _, bounded := ctx.Deadline(); bounded {
		return 0, errors.New("it may take longer than a turn")
	}
	e.paged <- thread
	if e.asked.Add(1) == 1 {
		return time.Millisecond, nil
	}
	return 0, nil
}

// The commits of a purged thread stay until the contents that they name are erased,
// however often the eraser has to be called, and by whichever runner. After that it is
// not called again.
func TestPurgeWaitsForContents(t *testing.T) {
	h := newHouse(t)
	eraser := &hesitant{names: make(chan []string, 1)}
	_, kill := h.start(New(h.NewLog(), Config{Contents: eraser}, zerolog.Nop(), nil))
	id := h.Do("thread.create", "", `{}`).ThreadID
	for n := range 6 {
		h.React(id, n)
	}
	digest := strings.Repeat("ab", 32)
	if _, err := h.Dispatcher.Inside(t.Context(), acme, id, "w-1", "file.write", events.WriteFile{
		Path: "/f", Stored: &events.FileContent{Digest: digest, Size: 1, MimeType: "text/plain"},
	}); err != nil {
		t.Fatal(err)
	}
	relay, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = timeline.Of(h.NewLog()).Relay(relay)
	}()
	defer func() {
		cancel()
		<-done
	}()
	h.Do("thread.delete", id, `{"purge":true}`)
	h.Until(func() bool { return eraser.asked.Load() == 1 }, "the eraser was not asked")
	if n := h.CountMessages("skein.log." + acme + "." + id); n != 9 {
		t.Fatalf("the log has %d commits of the thread, want 9", n)
	}
	kill() // the next one need not wait after the error
	h.start(New(h.NewLog(), Config{Contents: eraser, EraseTurn: time.Millisecond}, zerolog.Nop(), nil))
	select {
	case got := <-eraser.names:
		if len(got) != 1 || got[0] != digest {
			t.Errorf("the eraser was told %v", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the eraser was not asked again")
	}
	h.Until(func() bool { return h.CountMessages("skein.log."+acme+"."+id) == 1 }, "the commits were not erased")
	h.Until(func() bool { return h.CountMessages("$KV.thread_threads._.deletion.>") == 0 }, "the note of the end is still there")
}

// The commits of a long thread that is purged stay until the pages that forks made of its
// history are erased. Of a short one no pages are looked for.
func TestPurgeWaitsForPages(t *testing.T) {
	h := newHouse(t)
	eraser := &hesitant{paged: make(chan string, 10)}
	long, short := h.Do("thread.create", "", `{}`).ThreadID, h.Do("thread.create", "", `{}`).ThreadID
	for range 6 {
		h.Do("item.create", long, `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"`+strings.Repeat("x", 60<<10)+`"}]}}`)
	}
	h.React(short, 1)
	h.Start(timeline.Of(h.NewLog()).Relay)
	h.start(New(h.NewLog(), Config{Contents: eraser}, zerolog.Nop(), nil))
	h.Do("thread.delete", long, `{"purge":true}`)
	if got := next(t, eraser.paged); got != long {
		t.Errorf("the eraser was told %s", got)
	}
	h.Do("thread.delete", short, `{"purge":true}`)
	if got := next(t, eraser.paged); got != long { // again
		t.Errorf("the eraser was told %s", got)
	}
	for _, id := range []string{long, short} {
		h.Until(func() bool { return h.CountMessages("skein.log."+acme+"."+id) == 1 }, "the commits were not erased")
	}
	h.Until(func() bool { return h.CountMessages("$KV.thread_threads._.deletion.>") == 0 }, "the notes of the ends are still there")
	if n := len(eraser.paged); n > 0 {
		t.Errorf("the eraser was called %d times more, of %s", n, <-eraser.paged)
	}
}

// next waits for what comes.
func next(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		t.Fatal("nothing came in a minute")
		return ""
	}
}
