package main_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// A restore that was killed, interrupted or terminated leaves what nothing uses: neither a
// Skein, nor the commands for stores, nor a second restore. Each says what to do.
func TestRestore_Interrupted(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.fill(60)
	dir := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", dir)
	s.stop()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM} {
		store := filepath.Join(t.TempDir(), "store")
		interruptRestore(t, signal, hasLog(store), dir, "--store", store)
		before := tree(t, store)
		for _, args := range [][]string{
			{"serve", "--store", store, "--nats-listen", "127.0.0.1:0", "--http-listen", "none"},
			{"store", "check", "--store", store},
			{"store", "repair", "--store", store, "--accept-loss"},
			{"restore", dir, "--store", store},
		} {
			o := run(t, nil, "", args...)
			if o.code != 1 || o.out != "" || !strings.Contains(o.err, "did not end") || !strings.Contains(o.err, "remove the folder and restore the backup again") {
				t.Errorf("after %v: %v: %+v", signal, args[:2], o)
			}
		}
		if after := tree(t, store); !slices.Equal(after, before) {
			t.Errorf("after %v: the store was changed", signal)
		}
		if err := os.RemoveAll(store); err != nil {
			t.Fatal(err)
		}
		if o := run(t, nil, "", "restore", dir, "--store", store); o.code != 0 {
			t.Fatalf("again, after %v: %+v", signal, o)
		}
		if o := run(t, nil, "", "store", "check", "--store", store); o.code != 0 {
			t.Errorf("a store that was restored whole, after %v: %+v", signal, o)
		}
	}
}

// While a Skein on a restored store builds its read models, a list has every thread or is refused,
// and what is not ready says how far it is. The store counts as closed cleanly.
func TestRestored_ListsAreWholeOrRefused(t *testing.T) {
	t.Parallel()
	const threads = 400
	s := start(t, t.TempDir())
	c, err := client.Connect(s.NATS, client.Options{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var creating errgroup.Group
	creating.SetLimit(32)
	for n := range threads {
		creating.Go(func() error {
			_, err := c.Send(t.Context(), "", events.CreateThread{Key: "visitor/" + strconv.Itoa(n)})
			return err
		})
	}
	if err := creating.Wait(); err != nil {
		t.Fatal(err)
	}
	dir, store := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "store")
	s.ok("backup", dir)
	s.stop()
	if o := run(t, nil, "", "restore", dir, "--store", store); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	var log bytes.Buffer
	again := startLogged(t, &log, store, "--log-level", "info")
	get := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, again.HTTP+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(edge.HeaderTenant, "acme")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	list := func() (whole bool) {
		status, body := get("/api/threads?limit=1000")
		if status == http.StatusServiceUnavailable && strings.Contains(body, "projection_behind") && strings.Contains(body, "commit") {
			return false
		}
		var list events.ThreadList
		decode(t, body, &list)
		if status != http.StatusOK || len(list.Threads) != threads {
			t.Fatalf("%d with %d of %d threads", status, len(list.Threads), threads)
		}
		return true
	}
	for {
		status, body := get("/readyz")
		whole := list()
		if status == http.StatusOK {
			if !whole {
				t.Errorf("ready, and the list is refused: %s", body)
			}
			break
		}
		if !strings.Contains(body, "read models: ") || !strings.Contains(body, "commit") {
			t.Errorf("not ready: %s", body)
		}
	}
	if _, body := get("/api/threads?keyPrefix=visitor/399"); !strings.Contains(body, `"key":"visitor/399"`) {
		t.Errorf("by key: %s", body)
	}
	again.stop()
	if strings.Contains(log.String(), "closed cleanly") {
		t.Errorf("%s", log.String())
	}
}

// A restore into a server that was interrupted is refused by a Skein that is to use the server,
// and by a second restore.
func TestRestore_InterruptedIntoAServer(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	s.fill(60)
	dir := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", dir)
	s.stop()
	store := t.TempDir()
	other := natstest.Start(t, natstest.StoreDir(store))
	interruptRestore(t, syscall.SIGKILL, hasLog(store), dir, "--server", other.URL())
	for _, args := range [][]string{{"serve", "--nats", other.URL(), "--http-listen", "none"}, {"restore", dir, "--server", other.URL()}} {
		o := run(t, nil, "", args...)
		if o.code != 1 || o.out != "" || !strings.Contains(o.err, "did not end") || !strings.Contains(o.err, "SKEIN_RESTORE") {
			t.Errorf("%v: %+v", args[0], o)
		}
	}
}

// A backup of a log with a record that cannot be read is none: it fails, names the stream, and
// leaves earlier ones as they are. The server leaves out a damaged record of the block that is
// being written, and gives up at a sealed one.
func TestBackup_Damaged(t *testing.T) {
	t.Parallel()
	for name, items := range map[string]int{"the last block": 20, "a sealed block": 110} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := t.TempDir()
			nats := natstest.Start(t, natstest.StoreDir(store))
			s := startLogged(t, io.Discard, "", "--nats", nats.URL())
			s.fill(items)
			var made reply
			decode(t, s.ok("thread", "create", "--json"), &made)
			s.ok("thread", "delete", made.ThreadID)
			earlier := filepath.Join(t.TempDir(), "backup")
			s.ok("backup", earlier)
			s.stop()
			nats.Shutdown()
			flip(t, logBlocks(t, store)[0], 0.5)
			nats = natstest.Start(t, natstest.StoreDir(store))
			dir := filepath.Join(t.TempDir(), "backup")
			o := run(t, nil, "", "backup", dir, "--server", nats.URL(), "--timeout", "5s")
			if o.code != 1 || o.out != "" || !strings.Contains(o.err, "SKEIN_LOG") || !strings.Contains(o.err, "this is no backup") {
				t.Errorf("of a damaged log: %+v", o)
			}
			if o := run(t, nil, "", "restore", dir, "--store", filepath.Join(t.TempDir(), "store")); o.code != 1 || !strings.Contains(o.err, "is no backup") {
				t.Errorf("what it left: %+v", o)
			}
			if o := run(t, nil, "", "restore", earlier, "--store", filepath.Join(t.TempDir(), "store")); o.code != 0 {
				t.Errorf("the earlier backup: %+v", o)
			}
		})
	}
}

// interruptRestore signals a restore once the log begins to be there, as begun says. It does not
// get further than to print what it restored, which is not read.
func interruptRestore(t *testing.T, signal syscall.Signal, begun func() bool, args ...string) {
	t.Helper()
	unread, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	defer full.Close()
	if err := full.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := full.Write(make([]byte, 4<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("filling the pipe: %v", err)
	}
	cmd := exec.Command(binary, append([]string{"restore"}, args...)...)
	cmd.Env, cmd.Dir = environment(), t.TempDir()
	cmd.Stdout, cmd.Stderr = full, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	full.Close()
	natstest.Eventually(t, "the log is being restored", begun)
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, unread) }()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("restore ended before it was interrupted: %v", err)
	}
}

// hasLog returns a function that reports whether a store has the log.
func hasLog(store string) func() bool {
	return func() bool {
		found, _ := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", "SKEIN_LOG"))
		return len(found) > 0
	}
}
