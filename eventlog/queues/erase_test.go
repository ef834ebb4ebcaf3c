package queues_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/internal/logtest"
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

// Erasing a thread erases its chunks, timers, due effects, queued executions, and the
// submitted commands that name it, and nothing of other threads.
func TestEraseThread(t *testing.T) {
	dir := t.TempDir()
	l := logtest.Start(t, natstest.StoreDir(dir))
	for _, id := range []string{"T-1", "T-2"} {
		for i, m := range []*nats.Msg{
			{Subject: "skein.chunk.acme." + id + ".exe_1"}, {Subject: "skein.due.acme." + id + ".e1"},
			{Subject: "skein.run.acme.exe_" + id, Header: nats.Header{"Skein-Thread": {id}}}, {Subject: "skein.submit.acme.item.create"},
		} {
			m.Data = fmt.Appendf(nil, "%s-text-%d", id, i)
			if _, err := l.JetStream().PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Now().Add(time.Hour)
		if err := queues.TimersOf(l).Put(t.Context(), queues.Timer{Tenant: "acme", Thread: id, ID: "e2", At: at, Data: []byte(id + "-text-4")}); err != nil {
			t.Fatal(err)
		}
	}
	logtest.Must(t,
		chunks.Erase(t.Context(), l.Streams(), "acme", "T-1"),
		queues.TimersOf(l).Erase(t.Context(), "acme", "T-1"),
		queues.RunsOf(l).Erase(t.Context(), "acme", "T-1", []string{"exe_T-1"}),
		queues.SubmittedOf(l).Erase(t.Context(), "acme", func(b []byte) bool { return bytes.HasPrefix(b, []byte("T-1")) }),
	)
	for i := range 5 {
		if onDisk(t, dir, fmt.Sprintf("T-1-text-%d", i)) || !onDisk(t, dir, fmt.Sprintf("T-2-text-%d", i)) {
			t.Errorf("text %d: of the one it is there, or of the other it is not", i)
		}
	}
	for _, stream := range []string{"SKEIN_CHUNKS", "SKEIN_TIMERS", "SKEIN_RUNS", "SKEIN_COMMANDS"} {
		s, err := l.JetStream().Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.CachedInfo().State.Msgs; n != map[bool]uint64{true: 2, false: 1}[stream == "SKEIN_TIMERS"] {
			t.Errorf("%s has %d messages left", stream, n)
		}
	}
}
