package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// fillLog writes threads of a hundred items of two kilobytes each.
func fillLog(t *testing.T, url string, from, to int) {
	t.Helper()
	nc := natstest.Dial(t, url)
	log, err := eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var writers sync.WaitGroup
	threads := make(chan int)
	for range 32 {
		writers.Go(func() {
			for n := range threads {
				if err := fillThread(t.Context(), log, fmt.Sprintf("T-0190a000-0000-7000-8000-%012d", n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := from; n < to; n++ {
		threads <- n
	}
	close(threads)
	writers.Wait()
}

func fillThread(ctx context.Context, log *eventlog.Log, id string) error {
	command, place, now := "fill-0", 0, events.TimeOf(time.Now()) // of the commit to append
	event := func(version int64, typ events.Type, subject string, data any) events.Event {
		place++
		return events.Event{
			ID: events.EventID("acme", id, command, place-1), Type: typ, Time: now, Subject: subject,
			Tenant: "acme", ThreadID: id, Version: version, CommandID: command, Data: data,
		}
	}
	list := []events.Event{
		event(1, events.ThreadCreatedType, id, events.ThreadCreated{ID: id, Status: "open"}),
		event(2, events.ContextCreatedType, "ctx_1", events.ContextCreated{ID: "ctx_1", Status: "open", Default: true, Content: []byte("null")}),
	}
	text := []byte(`[{"type":"input_text","text":"` + strings.Repeat("lorem ipsum ", 170) + `"}]`)
	var chain string
	var seq uint64
	for i := range int64(100) {
		item := fmt.Sprintf("itm_%d", i)
		list = append(list, event(i+3, events.ItemCreatedType, item, events.ItemCreated{
			ID: item, ContextID: "ctx_1", Index: i, Type: "message", Role: "user", Status: "stored", Content: text,
		}))
		c, err := events.NewCommit(chain, list)
		if err != nil {
			return err
		}
		if err := log.Append(ctx, eventlog.Write{Commit: c, Expected: seq}); err != nil {
			return err
		}
		chain, seq, list = c.Chain, c.Seq, nil
		command, place, now = fmt.Sprintf("fill-%d", i+1), 0, now+1000
	}
	return nil
}

// peak runs the program and returns its peak memory, in megabytes. It polls while the
// program runs: the figure that the system has afterwards includes the memory of this
// process, from which it was forked.
func peak(t *testing.T, s *server, args ...string) (most int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = environment(append(s.env, "GOGC=20")...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for ticks := time.Tick(2 * time.Millisecond); ; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("skein %v: %v: %s", args, err, out.String())
			}
			if most == 0 {
				t.Fatalf("skein %v ended before its memory was known", args)
			}
			return most >> 10
		case <-ticks:
			most = max(most, highWater(cmd.Process.Pid))
		}
	}
}

// highWater returns the peak memory of a process, in kilobytes, or 0 if it has ended.
func highWater(pid int) (n int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
		_, _ = fmt.Sscan(after, &n)
	}
	return n
}

// A log six times as large needs no more memory to verify, to export, to import and
// to compare with a file.
func TestAudit_MemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 12,000 commits")
	}
	s := start(t, t.TempDir())
	dir := t.TempDir()
	measure := func(name string) (figures [5]int64) {
		file := filepath.Join(dir, name)
		empty := start(t, t.TempDir())
		figures[0] = peak(t, s, "audit", "verify", "--log-only")
		figures[1] = peak(t, s, "audit", "verify")
		figures[2] = peak(t, s, "audit", "export", "-o", file)
		figures[3] = peak(t, empty, "audit", "import", file)
		figures[4] = peak(t, s, "audit", "verify", "--log-only", "--against", file)
		empty.stop()
		return figures
	}
	fillLog(t, s.NATS, 0, 20)
	small := measure("small.jsonl")
	fillLog(t, s.NATS, 20, 120)
	large := measure("large.jsonl") // of 31 MB
	t.Logf("peak memory in MB of verify --log-only, verify, export, import, verify --against: %v of 2,000 commits, %v of 12,000", small, large)
	for i := range small {
		if large[i] > small[i]+12 {
			t.Errorf("figure %d: %d MB of 2,000 commits, %d MB of 12,000", i, small[i], large[i])
		}
	}
	s.stop()
}
