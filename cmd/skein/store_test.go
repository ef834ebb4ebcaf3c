package main_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// kill ends the server as a crash does.
func (s *server) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = s.cmd.Wait() // an error because it was killed
}

// fill writes threads with items of 100 KiB, more than two blocks of the log, and
// returns the number of items.
func (s *server) fill(items int) int {
	s.t.Helper()
	c, err := client.Connect(s.NATS, client.Options{Tenant: "acme", Actor: "test", Timeout: 5 * time.Minute})
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 100<<10)
	for i := range items {
		made, err := c.Send(s.t.Context(), "", events.CreateThread{})
		if err != nil {
			s.t.Fatal(err)
		}
		for j := range text {
			text[j] = "abcdefghijklmnopqrstuvwxyz ABCDEF"[random.IntN(33)]
		}
		if _, err := c.Send(s.t.Context(), made.ThreadID, events.CreateItem{Item: events.NewItem{
			Type: events.Message, Role: events.User, Content: events.JSON(fmt.Sprintf(`[{"type":"input_text","text":"%d %s"}]`, i, text)),
		}}); err != nil {
			s.t.Fatal(err)
		}
	}
	return items
}

// logBlocks lists the blocks of the log of a store, oldest first.
func logBlocks(t *testing.T, store string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", "SKEIN_LOG", "msgs", "*.blk"))
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	slices.SortFunc(list, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return list
}

// copyTree copies a store.
func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func flip(t *testing.T, name string, at float64) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[int(at*float64(len(b)-1))] ^= 4
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// crashedStore is the store of a killed server, with a backup and the list of its
// threads.
type crashedStore struct{ dir, backup, threads string }

func newCrashedStore(t *testing.T) crashedStore {
	t.Helper()
	original := t.TempDir()
	s := start(t, original)
	file := filepath.Join(t.TempDir(), "content")
	if err := os.WriteFile(file, bytes.Repeat([]byte("content of a file "), 9000), 0o600); err != nil {
		t.Fatal(err)
	}
	var made reply
	decode(t, s.ok("thread", "create", "--json"), &made)
	s.ok("files", "put", made.ThreadID, file, "/a.txt")
	s.fill(200)
	var last struct{ Seq uint64 }
	decode(t, s.ok("thread", "create", "--json"), &last)
	threads := s.ok("thread", "list", "--limit", "500", "--json") // wait until everything derived is up to date
	backup := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", backup)
	marked(t, original, last.Seq)
	s.kill()
	if n := len(logBlocks(t, original)); n < 3 {
		t.Fatalf("%d blocks", n)
	}
	return crashedStore{original, backup, threads}
}

// damage makes a part of a store unreadable.
type damage struct {
	name   string
	damage func(t *testing.T, store string)
	want   string
	repair bool
}

func damages() []damage {
	object := func(t *testing.T, store string) string {
		list, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", "OBJ_thread_files", "msgs", "*.blk"))
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		return list[0]
	}
	return []damage{
		{"first sealed block, beginning", func(t *testing.T, store string) { flip(t, logBlocks(t, store)[0], 0.001) }, "1.blk", false},
		{"first sealed block, middle", func(t *testing.T, store string) { flip(t, logBlocks(t, store)[0], 0.5) }, "1.blk", true},
		{"second sealed block, last byte", func(t *testing.T, store string) { flip(t, logBlocks(t, store)[1], 1) }, "2.blk", false},
		{"head of a sealed block", func(t *testing.T, store string) { flip(t, logBlocks(t, store)[1], 0) }, "2.blk", false},
		{"last block, beginning", func(t *testing.T, store string) { flip(t, logBlocks(t, store)[2], 0.01) }, "3.blk", true},
		{"truncated", func(t *testing.T, store string) {
			if err := os.Truncate(logBlocks(t, store)[1], 1000); err != nil {
				t.Fatal(err)
			}
		}, "2.blk", false},
		{"empty", func(t *testing.T, store string) {
			if err := os.Truncate(logBlocks(t, store)[0], 0); err != nil {
				t.Fatal(err)
			}
		}, "1.blk", false},
		{"not readable", func(t *testing.T, store string) {
			name := logBlocks(t, store)[1]
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(name, 0o700); err != nil { // root may read whatever mode a file has
				t.Fatal(err)
			}
		}, "2.blk", true},
		{"the end is gone", func(t *testing.T, store string) {
			blocks := logBlocks(t, store)
			if err := os.Remove(blocks[len(blocks)-1]); err != nil {
				t.Fatal(err)
			}
		}, "had got to", false},
		{"the end and the index are gone", func(t *testing.T, store string) {
			blocks := logBlocks(t, store)
			for _, name := range []string{blocks[len(blocks)-1], filepath.Join(filepath.Dir(blocks[0]), "index.db")} {
				if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
		}, "had got to", true},
		{"the log is gone", func(t *testing.T, store string) {
			if err := os.RemoveAll(filepath.Dir(filepath.Dir(logBlocks(t, store)[0]))); err != nil {
				t.Fatal(err)
			}
		}, "the stream is not there", true},
		{"contents of files", func(t *testing.T, store string) { flip(t, object(t, store), 0.3) }, "OBJ_thread_files", true},
	}
}

// A store that was not closed cleanly, and in which data without another source cannot
// be read, is refused: nothing is started, and no file is changed.
func TestStore_RefusesDamage(t *testing.T) {
	t.Parallel()
	original := newCrashedStore(t)
	for _, c := range damages() {
		t.Run(c.name, func(t *testing.T) {
			store := copyTree(t, original.dir)
			c.damage(t, store)
			before := tree(t, store)
			o := run(t, []string{"SKEIN_NATS_LISTEN=127.0.0.1:0", "SKEIN_HTTP_LISTEN=127.0.0.1:0"}, "", "serve", "--store", store)
			if o.code != 1 || o.out != "" || !strings.Contains(o.err, c.want) || !strings.Contains(o.err, "skein store repair --store "+store) {
				t.Errorf("exit %d, %q, %s", o.code, o.out, o.err)
			}
			if after := tree(t, store); !slices.Equal(before, after) {
				t.Errorf("the store was changed")
			}
		})
	}
}

// A damaged store is repaired from a backup, and as far as possible without one.
func TestStore_RepairsDamage(t *testing.T) {
	t.Parallel()
	original := newCrashedStore(t)
	for _, c := range damages() {
		if c.repair {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				store := copyTree(t, original.dir)
				c.damage(t, store)
				repaired(t, store, original.backup, original.threads)
			})
		}
	}
}

// marked waits until the store's mark shows the log up to a sequence.
func marked(t *testing.T, store string, seq uint64) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		raw, err := os.ReadFile(filepath.Join(store, "skein.mark"))
		line, _, _ := strings.Cut(string(raw), "\n")
		var mark struct{ Streams map[string]uint64 }
		if err == nil && line != "" {
			decode(t, line, &mark)
			for name, at := range mark.Streams {
				if strings.HasSuffix(name, "/SKEIN_LOG") && at >= seq {
					return
				}
			}
		}
		if time.Since(begin) > 5*time.Minute {
			t.Fatalf("the mark does not show the log up to %d: %v, %v", seq, mark, err)
		}
	}
}

// tree lists the names and sizes of a store's files.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join(dir, "jetstream"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out = append(out, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// repaired repairs a store from a backup, after which everything must be there again,
// and then without one, which must be accepted.
func repaired(t *testing.T, store, backup, threads string) {
	t.Helper()
	if o := run(t, nil, "", "store", "check", "--store", store); o.code != 3 || !strings.Contains(o.out, "damaged: ") {
		t.Errorf("check: exit %d: %s%s", o.code, o.out, o.err)
	}
	alone := copyTree(t, store)
	if o := run(t, nil, "", "store", "repair", "--store", store, "--from", backup); o.code != 0 || !strings.Contains(o.out, "what was replaced is in ") {
		t.Fatalf("repair: exit %d: %s%s", o.code, o.out, o.err)
	}
	if o := run(t, nil, "", "store", "check", "--store", store); o.code != 0 {
		t.Errorf("check after the repair: exit %d: %s%s", o.code, o.out, o.err)
	}
	s := start(t, store)
	if got := s.ok("thread", "list", "--limit", "500", "--json"); got != threads {
		t.Error("after the repair, the threads are not those that there were")
	}
	s.ok("thread", "create")
	s.ok("audit", "verify", "--all-tenants")
	s.ok("replay", "--verify")
	s.stop()

	o := run(t, nil, "", "store", "repair", "--store", alone)
	if o.code == 1 && strings.Contains(o.err, "nowhere to be found") {
		o = run(t, nil, "", "store", "repair", "--store", alone, "--accept-loss")
	}
	if o.code != 0 {
		t.Fatalf("repair without a backup: exit %d: %s%s", o.code, o.out, o.err)
	}
	s = start(t, alone)
	s.ok("thread", "create")
	s.ok("thread", "list") // wait until everything derived is up to date
	s.stop()
	if o := run(t, nil, "", "store", "check", "--store", alone); o.code != 0 {
		t.Errorf("check after the repair without a backup: exit %d: %s%s", o.code, o.out, o.err)
	}
}

// A store whose server was killed under load is not refused, twenty times in a row, and
// nothing acknowledged is missing.
func TestStore_KilledUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts twenty servers")
	}
	store := t.TempDir()
	var acknowledged atomic.Int64
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 20 {
		s := start(t, store)
		var load sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for worker := range 6 {
			load.Go(func() { s.load(ctx, worker, &acknowledged) })
		}
		before := acknowledged.Load()
		for acknowledged.Load() < before+40+random.Int64N(200) {
			time.Sleep(time.Millisecond)
		}
		s.kill()
		cancel()
		load.Wait()
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	start(t, store).stop()
	o := run(t, nil, "", "store", "check", "--store", store)
	if o.code != 0 {
		t.Errorf("exit %d: %s%s", o.code, o.out, o.err)
	}
}

// load writes until the server is killed: threads and items, files, submitted commands,
// and purges.
func (s *server) load(ctx context.Context, worker int, acknowledged *atomic.Int64) {
	c, err := client.Connect(s.NATS, client.Options{Tenant: "acme", Actor: "test", Timeout: 5 * time.Minute})
	if err != nil {
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	text := strings.Repeat(fmt.Sprintf("worker %d ", worker), 4<<10)
	for i := 0; ctx.Err() == nil; i++ {
		made, err := c.Send(ctx, "", events.CreateThread{})
		if err != nil {
			return
		}
		_, err = c.Send(ctx, made.ThreadID, events.CreateItem{Item: events.NewItem{
			Type: events.Message, Role: events.User, Content: events.JSON(fmt.Sprintf(`[{"type":"input_text","text":"%d %s"}]`, i, text)),
		}})
		switch {
		case err != nil:
			return
		case i%5 == 1:
			_, err = c.Send(ctx, made.ThreadID, events.DeleteThread{Purge: true})
		case i%5 == 2:
			_, err = c.Submit(ctx, "thread.create", client.Request{Data: events.CreateThread{}})
		case i%5 == 3:
			_, err = c.Files(made.ThreadID).WriteFile(ctx, "/a.txt", []byte(fmt.Sprint(worker, i, text)), "text/plain", client.WriteFileOptions{})
		}
		if err != nil {
			return
		}
		acknowledged.Add(1)
	}
}
