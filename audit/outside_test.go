package audit

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/files"
)

// rounds is how many threads each writer has: AUDIT_ROUNDS, which make
// test-audit sets, or few.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("AUDIT_ROUNDS")
	if text == "" {
		return 12
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("AUDIT_ROUNDS: %v", err)
	}
	return n
}

// Alongside turns, snapshots, archiving, purges and an import, all at once, and
// after it, there is nothing to find.
func TestVerify_AlongsideArchivesPurgesAndImports(t *testing.T) {
	t.Parallel()
	from := newHouse(t)
	for n := range 10 {
		from.fill(fmt.Sprintf("T-0190a000-0000-7000-8000-00000000f%03d", n))
	}
	from.settle(from.do("thread.delete", `{"threadId":"T-0190a000-0000-7000-8000-00000000f000","data":{"purge":true}}`).Seq)
	file := from.export(ExportOptions{Tenant: "acme"})
	h := newHouse(t)
	contents, err := files.Open(h.ctx, h.log)
	if err != nil {
		t.Fatal(err)
	}
	h.dispatch = commands.NewDispatcher(h.log, h.validator, commands.Config{Contents: contents, SnapshotEvery: 4}, zerolog.Nop(), nil)
	h.fill(threadOne)
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for n := range rounds(t) {
				id := fmt.Sprintf("T-0190a000-0000-7000-8%03d-%012d", w+1, n)
				h.fill(id)
				if n%4 == 1 {
					h.do("file.write", fmt.Sprintf(`{"threadId":%q,"data":{"path":"/f","content":"eA=="}}`, id))
				}
				if n%4 > 1 {
					_, err := archive.New(h.log, archive.Config{}, zerolog.Nop()).Thread(h.ctx, "acme", id, archive.Options{})
					if err != nil {
						t.Errorf("archive: %v", err)
					}
					h.do("thread.update", fmt.Sprintf(`{"threadId":%q,"data":{"title":"later"}}`, id))
				}
				if n%4 == 3 || n%4 == 0 {
					h.do("thread.delete", fmt.Sprintf(`{"threadId":%q,"data":{"purge":%v}}`, id, n%8 > 2))
				}
			}
		})
	}
	writers.Go(func() {
		if _, err := Import(h.ctx, h.log, h.validator, strings.NewReader(file), ImportOptions{}); err != nil {
			t.Errorf("import: %v", err)
		}
	})
	written := make(chan struct{})
	go func() {
		writers.Wait()
		close(written)
	}()
	for during, over := 0, false; !over; during++ {
		select {
		case <-written:
			over = true
		default:
		}
		if found, summary := h.verify(Options{}); len(found) > 0 {
			t.Fatalf("the verification number %d: %v, %+v", during, found, summary)
		}
	}
	h.settle(int64(h.end()))
	if found, summary := h.verify(Options{}); len(found) > 0 || summary.Threads < 3*rounds(t) {
		t.Errorf("afterwards: %v, %+v", found, summary)
	}
}
