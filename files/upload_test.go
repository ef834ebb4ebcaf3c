package files_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
)

// An upload that breaks off leaves no trace: its reader fails, or its context ends.
func TestBrokenUploadsLeaveNothing(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	c := w.client("acme")
	f := c.Files(w.thread(c))
	torn := errors.New("torn")
	_, err := f.WriteFileFrom(t.Context(), "/f", io.MultiReader(strings.NewReader(string(noise(3<<20, 1))), iotest.ErrReader(torn)), "", client.WriteFileOptions{})
	if !errors.Is(err, torn) {
		t.Errorf("the reader's own error became %v", err)
	}
	w.until("the store is empty after a torn reader", func() bool { return w.held() == 0 })

	ctx, cancel := context.WithCancel(t.Context())
	_, err = f.WriteFileFrom(ctx, "/f", readerFunc(func(p []byte) (int, error) {
		if w.held() >= 2 {
			cancel()
		}
		return copy(p, noise(len(p), 2)), nil
	}), "", client.WriteFileOptions{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	w.until("the store is empty after a cancelled upload", func() bool { return w.held() == 0 })
}

// So does one of which nothing more comes.
func TestBrokenUploads_NothingMoreComes(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{Idle: 200 * time.Millisecond})
	c := w.client("acme")
	last := func() uint64 {
		seq, err := w.log.LastSeq(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
	nc := natstest.Connect(t, w.server)
	subject := w.raw(nc, "acme", w.thread(c), "/f")
	before := last()
	for _, n := range []string{"0", "1"} {
		piece(t, nc, subject, n, "", noise(events.FilePieceBytes, 3))
	}
	w.until("the store is empty after nothing came", func() bool { return w.held() == 0 })
	w.until("nobody takes it", func() bool {
		_, err := nc.Request(subject, nil, time.Second)
		return errors.Is(err, nats.ErrNoResponders)
	})
	if last() != before {
		t.Error("something was written")
	}
}

// An upload that waits says so, and is not dropped; when the service stops, it
// is, and leaves nothing.
func TestUploadWaits(t *testing.T) {
	// The machine may stand still for longer than the shortest, and the upload is dropped.
	late := ""
	for _, idle := range []time.Duration{400 * time.Millisecond, 4 * time.Second, 40 * time.Second} {
		if late = uploadWaits(t, idle); late == "" || t.Failed() {
			return
		}
		t.Logf("where an upload is dropped after %v: %s", idle, late)
	}
	t.Error(late)
}

func uploadWaits(t *testing.T, idle time.Duration) (late string) {
	w := newWorld(t, files.ServiceConfig{Idle: idle})
	c := w.client("acme")
	nc := natstest.Connect(t, w.server)
	subject := w.raw(nc, "acme", w.thread(c), "/f")
	piece(t, nc, subject, "0", "", noise(events.FilePieceBytes, 3))
	for begin := time.Now(); time.Since(begin) < 2*idle+idle/2; {
		if answer := piece(t, nc, subject, "", events.UploadWait, nil); answer.Header.Get(events.HeaderErrorCode) != "" {
			return string(answer.Data)
		}
	}
	if answer := piece(t, nc, subject, "1", "", noise(9, 3)); answer.Header.Get(events.HeaderErrorCode) != "" {
		return string(answer.Data)
	}
	if w.held() != 2 {
		t.Errorf("%d messages are held", w.held())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.service.Stop(ctx); err != nil || w.held() != 0 {
		t.Errorf("%v, and %d messages are left", err, w.held())
	}
	return ""
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A client that sends pieces out of order is refused, and leaves nothing.
func TestPiecesOutOfOrderAreRefused(t *testing.T) {
	for name, send := range map[string]func(*nats.Conn, string) *nats.Msg{
		"a gap":     func(nc *nats.Conn, s string) *nats.Msg { return piece(t, nc, s, "2", "", noise(9, 1)) },
		"a repeat":  func(nc *nats.Conn, s string) *nats.Msg { return piece(t, nc, s, "0", "", noise(9, 1)) },
		"no number": func(nc *nats.Conn, s string) *nats.Msg { return piece(t, nc, s, "", "", noise(9, 1)) },
		"too large": func(nc *nats.Conn, s string) *nats.Msg {
			return piece(t, nc, s, "1", "", noise(events.FilePieceBytes+1, 1))
		},
		"nothing":      func(nc *nats.Conn, s string) *nats.Msg { return piece(t, nc, s, "1", "", nil) },
		"another kind": func(nc *nats.Conn, s string) *nats.Msg { return piece(t, nc, s, "1", "maybe", noise(9, 1)) },
		"too few":      func(nc *nats.Conn, s string) *nats.Msg { return piece(t, nc, s, "2", events.UploadEnd, nil) },
		"after a short one": func(nc *nats.Conn, s string) *nats.Msg {
			piece(t, nc, s, "1", "", noise(9, 1))
			return piece(t, nc, s, "2", "", noise(9, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, files.ServiceConfig{})
			c := w.client("acme")
			nc := natstest.Connect(t, w.server)
			subject := w.raw(nc, "acme", w.thread(c), "/f")
			if answer := piece(t, nc, subject, "0", "", noise(events.FilePieceBytes, 3)); answer.Header.Get(events.HeaderErrorCode) != "" {
				t.Fatalf("%s", answer.Data)
			}
			if answer := send(nc, subject); answer.Header.Get(events.HeaderError) != string(events.InvalidRequest) {
				t.Errorf("answered %v %s", answer.Header, answer.Data)
			}
			w.until("the store is empty", func() bool { return w.held() == 0 })
		})
	}
}

// What would be refused at the end is refused at the beginning.
func TestUploadIsRefusedBeforeItBegins(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{Uploads: quota.NewPool("uploads", quota.Places{Total: 1}, nil)})
	c := w.client("acme")
	id := w.thread(c)
	never := readerFunc(func([]byte) (int, error) {
		t.Error("it was read")
		return 0, io.EOF
	})
	for path, f := range map[string]*client.Files{
		"../f": c.Files(id), "/f": c.Files("T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162"), "/g": w.client("globex").Files(id), "/h": c.Files("nonsense"),
	} {
		_, err := f.WriteFileFrom(t.Context(), path, never, "", client.WriteFileOptions{})
		if code := events.AsError(err).Code; code != events.InvalidRequest && code != events.NotFound {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := c.Send(t.Context(), id, events.DeleteThread{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Files(id).WriteFileFrom(t.Context(), "/f", never, "", client.WriteFileOptions{}); events.AsError(err).Code != events.NotFound {
		t.Errorf("a deleted thread: %v", err)
	}
}

// The end may be repeated: it returns the first reply, and writes once.
func TestEndIsAnsweredAgain(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	c := w.client("acme")
	nc := natstest.Connect(t, w.server)
	subject := w.raw(nc, "acme", w.thread(c), "/f")
	piece(t, nc, subject, "0", "", []byte("hello"))
	first := piece(t, nc, subject, "1", events.UploadEnd, nil)
	again := piece(t, nc, subject, "1", events.UploadEnd, nil)
	if first.Header.Get(events.HeaderErrorCode) != "" || string(first.Data) != string(again.Data) {
		t.Errorf("%s\n%s", first.Data, again.Data)
	}
	if got, err := w.content("acme", digest([]byte("hello"))); string(got) != "hello" {
		t.Errorf("%q %v", got, err)
	}
}

// Two uploads of the same content at once leave one object, and both are told
// that it is there.
func TestSameContentAtOnce(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	c := w.client("acme")
	data := noise(2<<20+5, 4)
	errs := make(chan error)
	const many = 6
	for range many {
		f := c.Files(w.thread(c))
		go func() {
			record, err := f.WriteFile(t.Context(), "/f", data, "", client.WriteFileOptions{})
			if err == nil && record.Digest != digest(data) {
				err = errors.New("another digest")
			}
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got, err := w.content("acme", digest(data)); err != nil || string(got) != string(data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	w.until("only one is left", func() bool { return w.held() == 6 }) // five pieces and their entry
}

// However many writers of one content come at the same moment, one of them names it,
// and nothing of the others stays.
func TestSameContentAtOnce_OneNamesIt(t *testing.T) {
	w := newWorld(t, files.ServiceConfig{})
	const contents, writers = 30, 8
	for n := range contents {
		data := noise(1000+n, 7)
		begin := make(chan struct{})
		errs := make(chan error)
		for range writers {
			go func() {
				<-begin
				_, err := w.store.Later(0).Keep(t.Context(), "acme", data)
				errs <- err
			}()
		}
		close(begin)
		for range writers {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		if got, err := w.content("acme", digest(data)); err != nil || string(got) != string(data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	if n := w.held(); n != 2*contents { // a piece and its entry
		t.Errorf("%d messages are left of %d contents, and not two of each", n, contents)
	}
}
