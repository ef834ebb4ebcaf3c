package natstest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// keptLines is how many lines of a server's log are kept: the newest.
const keptLines = 100

// record keeps the warnings and errors of servers, for the output of a test that fails.
type record struct {
	mu    sync.Mutex // guards what follows
	lines []string
	lost  int // lines before these
}

// Write keeps a line.
func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) == keptLines {
		r.lines, r.lost = r.lines[1:], r.lost+1
	}
	r.lines = append(r.lines, string(bytes.TrimSpace(line)))
	return len(line), nil
}

// show logs what was kept, if the test has failed.
func (r *record) show(t testing.TB) {
	if !t.Failed() {
		return
	}
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost > 0 {
		t.Logf("nats-server: %d lines are left out", r.lost)
	}
	for _, line := range r.lines {
		t.Log("nats-server:", line)
	}
}

// namedLog is the log of one server of several.
type namedLog struct {
	name string
	to   *record
}

var _ server.Logger = namedLog{}

func (l namedLog) Noticef(string, ...any) {}
func (l namedLog) Debugf(string, ...any)  {}
func (l namedLog) Tracef(string, ...any)  {}

func (l namedLog) Warnf(format string, v ...any)  { l.keep("warning", format, v) }
func (l namedLog) Errorf(format string, v ...any) { l.keep("error", format, v) }
func (l namedLog) Fatalf(format string, v ...any) { l.keep("fatal", format, v) }

func (l namedLog) keep(level, format string, v []any) {
	fmt.Fprintf(l.to, "%s %s %s: %s", time.Now().Format("15:04:05.000"), l.name, level, fmt.Sprintf(format, v...))
}
