package main_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// wire is a plain NATS connection to a running server.
type wire struct {
	*testing.T
	nc *nats.Conn
	js jetstream.JetStream
}

func (s *server) wire(t *testing.T) *wire {
	t.Helper()
	nc, err := nats.Connect(s.NATS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
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

// keys lists a thread's keys in the buckets of read models.
func (w *wire) keys(thread string) (found []string) {
	w.Helper()
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
				found = append(found, subject)
			}
		}
	}
	if err := streams.Err(); err != nil {
		w.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// A killed server does not restore removed documents: neither the buckets nor the
// queries have anything of threads that were deleted or purged.
func TestDeletedThreads_StayDeletedAfterKill(t *testing.T) {
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
	if r := w.ask("skein.query.acme.thread.list", fmt.Sprintf(`{"minSeq":%d}`, last.Seq)); r.Error != nil {
		t.Fatal(r.raw)
	}
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
