package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/natstest"
)

// wire is a plain NATS connection to a running server.
type wire struct {
	*testing.T
	nc *nats.Conn
	js jetstream.JetStream
}

func (s *server) wire(t *testing.T) *wire {
	t.Helper()
	nc := natstest.Dial(t, s.NATS)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return &wire{t, nc, js}
}

// answered is the reply of every command and query.
type answered struct {
	ThreadID string
	Seq      uint64
	Error    *struct{ Code string }
	raw      string
}

// ask sends a request of the tenant acme.
func (w *wire) ask(subject, body string) (r answered) {
	w.Helper()
	m, err := w.nc.Request(subject, []byte(body), 20*time.Second)
	if err != nil {
		w.Fatalf("%s: %v", subject, err)
	}
	if err := json.Unmarshal(m.Data, &r); err != nil {
		w.Fatalf("%s: %v: %s", subject, err, m.Data)
	}
	r.raw = string(m.Data)
	return r
}

func (w *wire) do(name, thread, data string) answered {
	w.Helper()
	r := w.ask("skein.cmd.acme."+name, fmt.Sprintf(`{"threadId":%q,"data":%s}`, thread, data))
	if r.Error != nil {
		w.Fatalf("%s: %s", name, r.raw)
	}
	return r
}

// shown waits until the read models show a commit.
func (w *wire) shown(seq uint64) {
	w.Helper()
	if r := w.ask("skein.query.acme.thread.list", fmt.Sprintf(`{"minSeq":%d}`, seq)); r.Error != nil {
		w.Fatal(r.raw)
	}
}

func (w *wire) stream(name string) jetstream.Stream {
	w.Helper()
	stream, err := w.js.Stream(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	return stream
}

// keys lists a thread's keys in the buckets of read models.
func (w *wire) keys(thread string) []string {
	w.Helper()
	return slices.Sorted(maps.Keys(w.documents(thread)))
}

// documents returns what the buckets of read models hold of a thread, by subject.
func (w *wire) documents(thread string) map[string][]byte {
	w.Helper()
	found := map[string][]byte{}
	streams := w.js.StreamNames(w.Context())
	for name := range streams.Name() {
		if !strings.HasPrefix(name, "KV_thread_") {
			continue
		}
		stream, err := w.js.Stream(w.Context(), name)
		if err != nil {
			w.Fatal(err)
		}
		info, err := stream.Info(w.Context(), jetstream.WithSubjectFilter("$KV."+strings.TrimPrefix(name, "KV_")+".acme."+thread+".>"))
		if err != nil {
			w.Fatal(err)
		}
		for subject := range info.State.Subjects {
			m, err := stream.GetLastMsgForSubject(w.Context(), subject)
			if err != nil {
				w.Fatal(err)
			}
			if m.Header.Get("KV-Operation") == "" {
				found[subject] = m.Data
			}
		}
	}
	if err := streams.Err(); err != nil {
		w.Fatal(err)
	}
	return found
}

// A killed server does not restore removed documents: neither the buckets nor the
// queries have anything of threads that were deleted or purged.
func TestDeletedThreads_StayDeletedAfterKill(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := start(t, store)
	w := s.wire(t)
	var threads []string
	for n := range 4 {
		id := w.do("thread.create", "", `{}`).ThreadID
		threads = append(threads, id)
		for i := range 5 {
			c := fmt.Sprintf("ctx_%d_%d", n, i)
			w.do("context.create", id, fmt.Sprintf(`{"id":%q}`, c))
			w.do("context.set", id, fmt.Sprintf(`{"contextId":%q,"patch":{"secret":"purged-content-%d"}}`, c, i))
		}
		w.do("item.create", id, `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"purged-content"}]}}`)
		w.do("file.write", id, `{"path":"/a.txt","content":"cHVyZ2Vk"}`)
	}
	var last answered
	for n, id := range threads {
		last = w.do("thread.delete", id, fmt.Sprintf(`{"purge":%t}`, n%2 == 1))
	}
	// All is removed once the read models show the last deletion.
	w.shown(last.Seq)
	for _, id := range threads {
		if left := w.keys(id); len(left) > 0 {
			t.Fatalf("before the kill: %v", left)
		}
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()

	s = start(t, store)
	w = s.wire(t)
	for _, id := range threads {
		if back := w.keys(id); len(back) > 0 {
			t.Errorf("the kill brought back %v", back)
		}
		if r := w.ask("skein.query.acme.context.list", fmt.Sprintf(`{"threadId":%q}`, id)); r.Error == nil || r.Error.Code != "not_found" {
			t.Errorf("context.list: %s", r.raw)
		}
	}
	s.stop()
}

// What a killed server has restored of deleted threads is removed before Skein is ready: notes
// name these threads, and once they do, no others are looked for.
func TestDeletedThreads_RestoredIsRemovedBeforeReady(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := start(t, store)
	w := s.wire(t)
	const checkpoint, notes = "$KV.thread_threads._.checkpoint", "$KV.thread_threads._.removal.>"
	create := func() (id string, docs map[string][]byte) {
		id = w.do("thread.create", "", `{}`).ThreadID
		for range 3 {
			w.do("context.create", id, `{}`)
		}
		item := w.do("item.create", id, `{"item":{"type":"message","role":"user","content":[]}}`)
		w.shown(item.Seq)
		if docs = w.documents(id); len(docs) < 4 {
			t.Fatalf("it has the documents %v", slices.Collect(maps.Keys(docs)))
		}
		return id, docs
	}
	before, _ := create()
	w.shown(w.do("thread.delete", before, `{}`).Seq)
	// As five minutes later.
	m, err := w.stream("KV_thread_threads").GetLastMsgForSubject(t.Context(), checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	noted := strings.Replace(string(m.Data), "{", `{"removals":true,`, 1)
	if _, err := w.js.Publish(t.Context(), checkpoint, []byte(noted)); err != nil {
		t.Fatal(err)
	}
	id, docs := create()
	w.shown(w.do("thread.delete", id, `{}`).Seq)
	if err := w.stream("KV_thread_threads").Purge(t.Context(), jetstream.WithPurgeSubject(notes), jetstream.WithPurgeKeep(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()

	server := natstest.Start(t, natstest.StoreDir(store))
	w = &wire{T: t, nc: natstest.Connect(t, server)}
	if w.js, err = jetstream.New(w.nc); err != nil {
		t.Fatal(err)
	}
	for subject, doc := range docs {
		if subject == "$KV.thread_threads.acme."+id {
			continue // its marker is a message like any other
		}
		for _, subject := range []string{subject, strings.Replace(subject, id, before, 1)} {
			if _, err := w.js.Publish(t.Context(), subject, doc); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.nc.Close()
	server.Shutdown()

	s = start(t, store)
	w = s.wire(t)
	if back := w.keys(id); len(back) > 0 {
		t.Errorf("Skein is ready with %v", back)
	}
	if back := w.keys(before); len(back) == 0 {
		t.Error("threads were looked for whose removal is on the disk")
	}
	s.stop()
}
