package main_test

import (
	"bytes"
	"io"
	"strings"
	"syscall"
	"testing"
)

// logLine is a line of the log that serve writes.
type logLine struct {
	Level, Message            string
	Streams, Blocks, Messages int
	Bytes                     int64
	ReadMiB                   int64 `json:"read_mib"`
	OfMiB                     int64 `json:"of_mib"`
}

// A start after a crash logs how far it has read the store, and says once that nothing is missing.
// A new store and one that was closed cleanly say nothing.
func TestServe_LogsRecovery(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	restart := func(end func(*server)) (progress, recovered []logLine) {
		t.Helper()
		var log bytes.Buffer
		s := startLogged(t, &log, store, "--log-level", "info")
		s.fill(30)
		end(s) // and the log is complete
		for _, line := range decodeLines[logLine](t, log.String()) {
			switch {
			case line.Level != "info":
			case strings.HasSuffix(line.Message, "every block of it was read, and nothing is missing"):
				recovered = append(recovered, line)
			case strings.HasSuffix(line.Message, "reading every block of it"):
				progress = append(progress, line)
			}
		}
		return progress, recovered
	}
	if progress, recovered := restart((*server).kill); len(progress)+len(recovered) > 0 {
		t.Errorf("a new store: %+v, %+v", progress, recovered)
	}
	progress, recovered := restart((*server).stop)
	if len(recovered) != 1 || recovered[0].Messages < 60 || recovered[0].Bytes < 30*100<<10 || recovered[0].Streams == 0 || recovered[0].Blocks == 0 {
		t.Errorf("after a crash: %+v", recovered)
	}
	if len(progress) == 0 || progress[0].OfMiB < 2 || progress[0].ReadMiB > progress[0].OfMiB {
		t.Errorf("after a crash, while the store was read: %+v", progress)
	}
	if progress, recovered := restart((*server).stop); len(progress)+len(recovered) > 0 {
		t.Errorf("after a clean stop: %+v, %+v", progress, recovered)
	}
}

// Two signals at once, as a process and its group get them, are one: the server stops as after one.
func TestServe_TwoSignalsAtOnce(t *testing.T) {
	t.Parallel()
	store, stopping := t.TempDir(), make(chan struct{})
	var log bytes.Buffer
	s := startLogged(t, io.MultiWriter(&log, onText{"stopping", stopping}), store, "--log-level", "info")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-stopping
	s.stop()
	log.Reset()
	startLogged(t, &log, store, "--log-level", "info").stop()
	if strings.Contains(log.String(), "every block") {
		t.Errorf("the store was not closed cleanly: %s", log.String())
	}
}

// onText is a writer that closes a channel when a text is written.
type onText struct {
	text string
	seen chan struct{}
}

func (w onText) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		close(w.seen)
	}
	return len(p), nil
}
