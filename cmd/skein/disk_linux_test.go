package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// On a full disk commands are refused instead of left unanswered; stored data can be
// read; health names the store; and the server stops normally. With free space and a
// restart, everything acknowledged is there.
func TestServe_FullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 48)
	store, filler := filepath.Join(disk, "store"), filepath.Join(disk, "filler")
	s := start(t, store)
	stored := map[string]bool{}
	create := func() outcome {
		o := run(t, s.env, "", "thread", "create", "--json", "--timeout", "10s") // a full disk is noticed within it
		if o.code == 0 {
			var made struct{ ThreadID string }
			decode(t, o.out, &made)
			stored[made.ThreadID] = true
		}
		return o
	}
	if o := create(); o.code != 0 {
		t.Fatal(o.err)
	}
	s.ok("thread", "list")
	fillDisk(t, filler)
	refused := outcome{}
	for range 1000 { // the last page of a block may have space for some
		if refused = create(); refused.code != 0 {
			break
		}
	}
	if !strings.Contains(refused.err, "unavailable: ") || strings.Contains(refused.err, "no answer") {
		t.Fatalf("on a full disk: exit %d, %s", refused.code, refused.err)
	}
	for id := range stored {
		s.ok("thread", "get", id)
		break
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if code, text := readyz(t, ctx, s.HTTP); code != http.StatusServiceUnavailable || !strings.Contains(text, "no space left on device") || !strings.Contains(text, store) {
		t.Errorf("readyz of a full disk: %d %s", code, text)
	}
	if o := run(t, s.env, "", "health", "--tenant", "acme", "--timeout", "2s"); o.code != 1 || !strings.Contains(o.out, "the store takes no writes") {
		t.Errorf("health of a tenant on a full disk: exit %d, %s%s", o.code, o.out, o.err)
	}
	// Free space alone does not help: nats-server refuses writes until it is restarted,
	// and health says so.
	if err := os.Truncate(filler, 0); err != nil {
		t.Fatal(err)
	}
	if o := create(); o.code == 0 || !strings.Contains(o.err, "unavailable: ") {
		t.Errorf("with room, and not started again: exit %d, %s", o.code, o.err)
	}
	if code, text := readyz(t, ctx, s.HTTP); code != http.StatusServiceUnavailable || !strings.Contains(text, "until there is room and Skein was started again") {
		t.Errorf("readyz with room, and not started again: %d %s", code, text)
	}
	s.stop()
	// It does not start on a full disk, and says what to do.
	fillDisk(t, filler)
	if o := run(t, nil, "", "serve", "--store", store, "--nats-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"); o.code == 0 ||
		!strings.Contains(o.err, "the disk of the store "+store+" has no room") || !strings.Contains(o.err, "16 MiB are needed") || !strings.Contains(o.err, "nothing is lost") {
		t.Errorf("on a full disk serve ended with %d: %s", o.code, o.err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s = start(t, store)
	for id := range stored {
		s.ok("thread", "get", id)
	}
	if o := create(); o.code != 0 {
		t.Errorf("with room again: %s", o.err)
	}
	s.stop()
}

// After a full disk, a document whose replacement could not be stored is still there: the index
// that the server writes when it ends says that it was replaced.
func TestServe_FullDiskReadModels(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 48)
	store, filler := filepath.Join(disk, "store"), filepath.Join(disk, "filler")
	s := startLogged(t, io.Discard, store)
	var made reply
	decode(t, s.ok("thread", "create", "--json"), &made)
	before := s.ok("thread", "get", made.ThreadID, "--json")
	w := s.wire(t)
	bucket, err := w.js.Stream(t.Context(), "KV_thread_threads")
	if err != nil {
		t.Fatal(err)
	}
	document, err := bucket.GetLastMsgForSubject(t.Context(), "$KV.thread_threads.acme."+made.ThreadID)
	if err != nil {
		t.Fatal(err)
	}
	fillDisk(t, filler)
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	// More than one page of the block takes, also once the store is known to be full.
	for n, code := 0, http.StatusOK; n < 100 || code == http.StatusOK; n++ {
		m := nats.NewMsg(document.Subject)
		m.Data = document.Data
		for name, values := range document.Header {
			if !strings.HasPrefix(name, "Nats-") { // the runner's conditions
				m.Header[name] = values
			}
		}
		_ = w.nc.PublishMsg(m)
		_ = w.nc.Flush()
		code, _ = readyz(t, ctx, s.HTTP)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s = start(t, store)
	if after := s.ok("thread", "get", made.ThreadID, "--json"); after != before {
		t.Errorf("before %s\nafter %s", before, after)
	}
	s.ok("audit", "verify", "--all-tenants")
	s.stop()
}

// A store is written until the disk has no more than the reserve, however much it holds. Then commands
// are refused for lack of space, health and metrics say so, and everything can be read, also after
// a restart. With more space commands are taken again at once.
func TestServe_WritesUntilTheReserve(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 100)
	store := filepath.Join(disk, "store")
	s := start(t, store)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var made reply
	decode(t, s.ok("thread", "create", "--json"), &made)
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 200<<10)
	full := func(s *server) {
		t.Helper()
		c, err := client.Connect(s.NATS, client.Options{Tenant: "acme", Actor: "test", Timeout: 10 * time.Second}) // it retries until then
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for err == nil {
			for i := range text {
				text[i] = byte('A' + random.IntN(58))
			}
			_, err = c.Send(ctx, made.ThreadID, events.CreateItem{Item: events.NewItem{
				Type: events.Message, Role: events.User, Content: events.JSON(fmt.Sprintf(`[{"type":"input_text","text":%q}]`, text)),
			}})
		}
		if refused := events.AsError(err); refused.Code != events.Unavailable || !strings.Contains(refused.Message, "the store is full") {
			t.Fatalf("refused with %v", err)
		}
		const reserve = 20 << 20
		if free := freeOn(t, disk); free > reserve+2<<20 {
			t.Errorf("commands are refused with %d bytes free", free)
		}
		if code, text := readyz(t, ctx, s.HTTP); code != http.StatusServiceUnavailable || !strings.Contains(text, "the store is full: ") || !strings.Contains(text, store) {
			t.Errorf("readyz of a full store: %d %s", code, text)
		}
		if page := s.metrics(t); !strings.Contains(page, "skein_store_full 1\n") || !strings.Contains(page, "skein_store_failing 0\n") || !strings.Contains(page, "skein_store_free_bytes ") {
			t.Error("the metrics do not say so")
		}
		s.ok("thread", "get", made.ThreadID)
	}
	full(s)
	s.stop()
	s = start(t, store)
	full(s)
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=200m"); err != nil {
		t.Fatal(err)
	}
	s.ok("thread", "create")
	if code, text := readyz(t, ctx, s.HTTP); code != http.StatusOK {
		t.Errorf("readyz with room: %d %s", code, text)
	}
	s.ok("audit", "verify", "--all-tenants")
	s.stop()
}

// freeOn returns the bytes that are free on a disk.
func freeOn(t *testing.T, disk string) uint64 {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(disk, &s); err != nil {
		t.Fatal(err)
	}
	return s.Bavail * uint64(s.Bsize)
}

// metrics returns the page of metrics.
func (s *server) metrics(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.HTTP+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// smallDisk mounts a file system that is soon full.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root mounts a small file system")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("no small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// fillDisk writes a file until the disk is full.
func fillDisk(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
}

func readyz(t *testing.T, ctx context.Context, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !json.Valid(text) {
		t.Fatalf("%s: %v", text, err)
	}
	return answer.StatusCode, string(text)
}
