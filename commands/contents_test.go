package commands

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/skein-threads/skein/events"
)

// shelf keeps contents in memory.
type shelf struct {
	mu   sync.Mutex
	kept []string
	fail error
}

func (s *shelf) Keep(_ context.Context, tenant string, content []byte) (events.FileContent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, tenant+":"+string(content))
	return events.FileContent{Digest: "d", Size: int64(len(content)), MimeType: "text/plain"}, s.fail
}

func (s *shelf) KeepPage(context.Context, string, string, []byte) error { return nil }

func (s *shelf) Hold(context.Context, string, string) (bool, error) { return true, nil }

// make makes a thread.
func (w *world) make() string {
	w.t.Helper()
	reply, refusal := ask(w.t, w.d, "thread.create", `{}`)
	if refusal != nil {
		w.t.Fatal(refusal)
	}
	return reply.ThreadID
}

// Content is kept before the event that names it, also for each part of a
// thread.commit; what is refused keeps nothing.
func TestContentIsKeptFirst(t *testing.T) {
	kept := &shelf{}
	w := newWorld(t, Config{Contents: kept})
	id := w.make()
	reply, refusal := ask(t, w.d, "file.write", on(id, `{"path":"a.txt","content":"aGk="}`))
	if refusal != nil || reply.Result.File.Digest != "d" || reply.Result.File.Size != 2 {
		t.Fatalf("%+v %v", reply, refusal)
	}
	reply, refusal = ask(t, w.d, "thread.commit", on(id, `{"commands":[{"command":"file.write","data":{"path":"b","content":""}},{"command":"file.write","data":{"path":"c","content":"aG8="}}]}`))
	if refusal != nil || len(reply.Result.Results) != 2 || len(kept.kept) != 3 || kept.kept[2] != "acme:ho" {
		t.Fatalf("%+v %v: %q", reply, refusal, kept.kept)
	}
	for body, path := range map[string]string{
		on(id, `{"path":"a","content":"a"}`):                          "/data/content",
		on(id, `{"path":"a","content":"aGk=","external":"s3://b/k"}`): "/data/external",
		on(id, `{"path":"../a","content":"aGk="}`):                    "/data/path",
		on(id, `{"path":"a"}`):                                        "/data/content",
	} {
		_, refusal := ask(t, w.d, "file.write", body)
		if refusal == nil || refusal.Code != events.InvalidRequest || refusal.Details.Path != path {
			t.Errorf("%s: %v", body, refusal)
		}
	}
	if len(kept.kept) != 3 {
		t.Errorf("a refused command kept %q", kept.kept[3:])
	}
	kept.fail = errors.New("no room")
	before := w.lastSeq()
	if _, refusal := ask(t, w.d, "file.write", on(id, `{"path":"z","content":"aGk="}`)); refusal == nil || refusal.Code != events.Unavailable || w.lastSeq() != before {
		t.Errorf("without its content: %v", refusal)
	}
}

// A command that changes nothing is answered with the thread as it is, also
// when many wait for the same thread, and when another process changed it.
func TestNothingToDo(t *testing.T) {
	w := newWorld(t, Config{})
	other := w.another(Config{})
	id := w.make()
	made, refusal := ask(t, w.d, "directory.create", on(id, `{"path":"/d"}`))
	if refusal != nil {
		t.Fatal(refusal)
	}
	if reply, refusal := ask(t, other, "directory.create", on(id, `{"path":"/d"}`)); refusal != nil || len(reply.Events) != 0 || reply.Seq != made.Seq || reply.Version != made.Version {
		t.Errorf("%+v %v", reply, refusal)
	}
	if _, refusal := ask(t, other, "directory.remove", on(id, `{"path":"/d"}`)); refusal != nil {
		t.Fatal(refusal)
	}
	// The first dispatcher's state still has the directory: it must look again.
	if reply, refusal := ask(t, w.d, "directory.create", on(id, `{"path":"/d"}`)); refusal != nil || len(reply.Events) != 1 {
		t.Errorf("made again: %+v %v", reply, refusal)
	}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			name, body := "directory.create", on(id, `{"path":"/many"}`)
			if i%3 == 0 {
				name, body = "thread.update", on(id, `{"title":"x"}`)
			}
			reply, refusal := ask(t, w.d, name, body)
			if refusal != nil || reply.Version == 0 || reply.Seq == 0 {
				t.Errorf("%+v %v", reply, refusal)
			}
		})
	}
	all.Wait()
	count := 0
	for _, c := range w.commits(id) {
		for _, e := range c.Events {
			if d, ok := e.Data.(events.DirectoryCreated); ok && d.Path == "/many" {
				count++
			}
		}
	}
	if count != 1 {
		t.Errorf("it was made %d times", count)
	}
}
