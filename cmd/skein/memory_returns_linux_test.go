package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// resident returns the memory that a process has now, in megabytes.
func (s *server) resident() int64 {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	var n int64
	if _, after, ok := strings.Cut(string(status), "VmRSS:"); ok {
		_, _ = fmt.Sscan(after, &n)
	}
	return n >> 10
}

// flood sends commands from many clients at once.
func (s *server) flood(clients, threads int) {
	s.t.Helper()
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			c, err := client.Connect(s.NATS, client.Options{Tenant: "acme", Actor: "test", Timeout: 5 * time.Minute})
			if err != nil {
				s.t.Error(err)
				return
			}
			defer c.Close()
			for range threads {
				made, err := c.Send(s.t.Context(), "", events.CreateThread{})
				for i := 0; err == nil && i < 4; i++ {
					_, err = c.Send(s.t.Context(), made.ThreadID, events.CreateItem{Item: events.NewItem{
						Type: events.Message, Role: events.User, Content: events.JSON(fmt.Sprintf(`[{"type":"input_text","text":"%d %s"}]`, i, strings.Repeat("lorem ipsum ", 80))),
					}})
				}
				if err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// exported returns a file of threads to import, of 6,000 commits.
func exported(t *testing.T) string {
	t.Helper()
	source, file := start(t, t.TempDir()), filepath.Join(t.TempDir(), "acme.jsonl")
	fillLog(t, source.NATS, 0, 60)
	source.ok("audit", "export", "-o", file)
	source.stop()
	return file
}

// work imports a file, floods the server with commands, and audits and replays all of it. It returns the
// most memory that the process had after any of them, in megabytes.
func (s *server) work(file string) (most int64) {
	s.t.Helper()
	for _, work := range []struct {
		name string
		do   func()
	}{
		{"import", func() { s.ok("audit", "import", file) }},
		{"flood", func() { s.flood(64, 20) }},
		{"large items", func() { s.fill(110) }},
		{"audit", func() { s.ok("audit", "verify", "--all-tenants") }},
		{"replay", func() { s.ok("replay") }},
		{"replay of the timeline", func() { s.ok("replay", "timeline") }},
	} {
		work.do()
		now := s.resident()
		most = max(most, now)
		s.t.Logf("after %s: %d MB", work.name, now)
	}
	return most
}

// Of what an import, an audit, replays and a flood of commands needed, all but three times of what the
// process had idle are returned within two minutes: the server keeps its index and some blocks, and the
// heap has gaps.
func TestMemory_ReturnsAfterWork(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 12,000 commits, and waits for two minutes")
	}
	file := exported(t)
	s := start(t, t.TempDir())
	s.ok("thread", "list")
	idle := s.resident()
	most := s.work(file)
	begun, bound := time.Now(), 4*idle
	now := s.resident()
	for ; now > bound && time.Since(begun) < 2*time.Minute; now = s.resident() {
		time.Sleep(time.Second)
	}
	t.Logf("%d MB idle, at most %d at work, and %d MB after %v", idle, most, now, time.Since(begun).Round(time.Second))
	if now > bound {
		t.Errorf("%d MB two minutes after the work, want %d; %d before it", now, bound, idle)
	}
	s.stop()
}

// In a control group of 512 MiB all of that is done, and nothing is killed.
func TestMemory_ControlGroup(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 12,000 commits")
	}
	group := "/sys/fs/cgroup/memory/skein-" + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("no control group of memory (version 1) can be made: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	if err := os.WriteFile(filepath.Join(group, "memory.limit_in_bytes"), []byte(strconv.Itoa(512<<20)), 0o644); err != nil {
		t.Skipf("the control group of memory cannot be limited: %v", err)
	}
	file := exported(t)
	const join = `echo $$ >"$0/cgroup.procs" && exec "$@"`
	s := startCommand(t, os.Stderr, exec.Command("sh", "-c", join, group, binary, "serve", "--json", "--store", t.TempDir(), "--log-level", "warn"))
	if said, err := os.ReadFile(filepath.Join(group, "cgroup.procs")); err != nil || !strings.Contains(string(said), strconv.Itoa(s.cmd.Process.Pid)) {
		t.Fatalf("the control group has the processes %q, %v", said, err)
	}
	if most := s.work(file); most > 512 {
		t.Errorf("%d MB in a control group of 512 MiB", most)
	}
	s.stop()
}
