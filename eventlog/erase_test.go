package eventlog

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

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
