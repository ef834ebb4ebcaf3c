package eventlog

import (
	"bytes"
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/internal/natstest"
)

// onDisk reports whether a text stands in a file below a folder.
func onDisk(t *testing.T, dir, text string) bool {
	t.Helper()
	there := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // the server has just removed it
		}
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(text)) {
			there = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// slowServer is a JetStream whose first answer to each kind of request comes too late: the
// request was done, or not.
type slowServer struct {
	jetstream.JetStream
	done bool
	late map[string]bool // the kinds of requests that were not answered once
}

type slowStream struct {
	jetstream.Stream
	server *slowServer
}

func (s *slowServer) answer(kind string, do func() error) error {
	if s.late[kind] {
		return do()
	}
	s.late[kind] = true
	if s.done {
		_ = do()
	}
	return context.DeadlineExceeded
}

func (s *slowServer) Stream(ctx context.Context, name string) (stream jetstream.Stream, err error) {
	err = s.answer("stream", func() error {
		stream, err = s.JetStream.Stream(ctx, name)
		return err
	})
	return &slowStream{stream, s}, err
}

func (s *slowStream) GetMsg(ctx context.Context, seq uint64, opts ...jetstream.GetMsgOpt) (m *jetstream.RawStreamMsg, err error) {
	err = s.server.answer("get", func() error {
		m, err = s.Stream.GetMsg(ctx, seq, opts...)
		return err
	})
	return m, err
}

func (s *slowStream) SecureDeleteMsg(ctx context.Context, seq uint64) error {
	return s.server.answer("delete", func() error { return s.Stream.SecureDeleteMsg(ctx, seq) })
}

func (s *slowStream) Purge(ctx context.Context, opts ...jetstream.StreamPurgeOpt) error {
	return s.server.answer("purge", func() error { return s.Stream.Purge(ctx, opts...) })
}

// A server that is slow to answer delays an erasure, and does not end it, whether it did what
// it was asked or not. An erasure whose context ends does end.
func TestErase_SlowServer(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]bool{"did it": true, "did not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nc := natstest.Connect(t, natstest.Start(t))
			direct := openLog(t, nc, Config{}, nil)
			a, b := newAuthor(1), newAuthor(2)
			a.write(t, direct, 2, 1)
			b.write(t, direct, 1, 1)
			js, err := jetstream.New(nc)
			must(t, err)
			slow := &slowServer{JetStream: js, done: done, late: map[string]bool{}}
			l, err := OpenOn(nc, slow, Config{}, zerolog.Nop(), nil)
			must(t, err)
			t.Cleanup(l.Close)
			must(t, l.EraseCommits(t.Context(), tenant, a.thread, 0))
			for _, kind := range []string{"stream", "get", "delete", "purge"} {
				if !slow.late[kind] {
					t.Errorf("an erasure makes no request of kind %s", kind)
				}
			}
			if left := history(t, direct); len(left) != 1 || left[0].Thread != b.thread {
				t.Errorf("%d commits are left", len(left))
			}
			ended, end := context.WithCancel(t.Context())
			end()
			slow.late = map[string]bool{}
			if err := l.EraseCommits(ended, tenant, b.thread, 0); err == nil {
				t.Error("an erasure that was ended went on")
			}
		})
	}
}

// Erase overwrites what it is told to, and nothing else; after a restart too.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	server := natstest.Start(t, natstest.StoreDir(dir))
	l := openLog(t, natstest.Connect(t, server), Config{}, nil)
	put := func(subject, text string) uint64 {
		t.Helper()
		ack, err := l.conn.JetStream().Publish(t.Context(), subject, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return ack.Sequence
	}
	put("skein.log.acme.T-1", "first-of-one")
	put("skein.log.acme.T-2", "first-of-two")
	last := put("skein.log.acme.T-1", "last-of-one")
	for range 2 { // the second time there is nothing to do
		if err := l.EraseCommits(t.Context(), "acme", "T-1", last); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	for m, err := range l.Raw(t.Context(), "skein.log.*.*", 1) {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, string(m.Data))
	}
	if got := strings.Join(left, " "); got != "first-of-two last-of-one" {
		t.Errorf("what is left is %q", got)
	}
	for text, want := range map[string]bool{"first-of-one": false, "first-of-two": true, "last-of-one": true} {
		if onDisk(t, dir, text) != want {
			t.Errorf("%q on the disk: %v", text, !want)
		}
	}
	server.Shutdown()
	again := openLog(t, natstest.Connect(t, natstest.Start(t, natstest.StoreDir(dir))), Config{}, nil)
	if onDisk(t, dir, "first-of-one") || !onDisk(t, dir, "last-of-one") {
		t.Error("a restart brought it back, or lost another")
	}
	n := 0
	for _, err := range again.Raw(t.Context(), "skein.log.acme.T-2", 1) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d commits of the other thread after a restart", n)
	}
}

// A log of an older Skein denies deletes, and the server never takes that back: it
// is used as it is, and what is erased is out of reach, though still on the disk.
func TestEraseOfAnOlderLog(t *testing.T) {
	l := bare(t, Config{})
	must(t, l.Ensure(t.Context()))
	stream, err := l.conn.JetStream().Stream(t.Context(), "SKEIN_LOG")
	must(t, err)
	config := stream.CachedInfo().Config
	must(t, l.conn.JetStream().DeleteStream(t.Context(), "SKEIN_LOG"))
	config.DenyDelete = true
	if _, err := l.conn.JetStream().CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatalf("the log of an older Skein: %v", err)
	}
	for range 2 {
		if _, err := l.conn.JetStream().Publish(t.Context(), "skein.log.acme.T-1", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.EraseCommits(t.Context(), "acme", "T-1", 2); err != nil {
		t.Fatal(err)
	}
	for m, err := range l.Raw(t.Context(), "skein.log.acme.T-1", 1) {
		if err != nil || m.Seq != 2 {
			t.Errorf("message %d is left: %v", m.Seq, err)
		}
	}
}

// BenchmarkErase measures the erasing of commits of 2 KB that lie in a full block
// of 8 MB, which the server rewrites for each, with fsync:
//
//	go test -run '^$' -bench Erase -benchtime 50x ./eventlog
func BenchmarkErase(b *testing.B) {
	l := start(b, natstest.SyncAlways())
	r := rand.New(rand.NewPCG(1, 2))
	body := make([]byte, 2<<10)
	for i := range 6000 {
		for k := range body {
			body[k] = "abcdefghijklmnop"[r.IntN(16)]
		}
		subject := "skein.log.acme.T-other"
		if i < b.N {
			subject = "skein.log.acme.T-1"
		}
		if _, err := l.conn.JetStream().PublishAsync(subject, body); err != nil {
			b.Fatal(err)
		}
		if i%200 == 0 {
			<-l.conn.JetStream().PublishAsyncComplete()
		}
	}
	<-l.conn.JetStream().PublishAsyncComplete()
	s, err := l.conn.JetStream().Stream(b.Context(), "SKEIN_LOG")
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		m, err := s.GetMsg(b.Context(), uint64(i+1), jetstream.WithGetMsgSubject("skein.log.acme.T-1"))
		if err == nil {
			err = s.SecureDeleteMsg(b.Context(), m.Sequence)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
