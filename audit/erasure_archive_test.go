package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/projections/rebuild"
)

// What an archive takes from the log and the timeline is overwritten there; and of a
// purged thread nothing is left of its archives either, of two that follow one
// another, and of one that was broken off (C-6, AM-86).
func TestPurgedArchivesAreNowhereOnDisk(t *testing.T) {
	if raceDetector {
		t.Skip("the server rewrites blocks of 8 MB: make test-long runs it")
	}
	t.Parallel()
	h, dir := erasing(t)
	const gone, kept = "marker-41d7c0a95be84f26-gone", "marker-9c63e18f7a2b05d4-kept"
	one, two := threadOne, strings.Replace(threadOne, "0001", "0002", 1)
	write := func(id, text string) {
		t.Helper()
		for n := range 3 {
			h.do("item.create", fmt.Sprintf(`{"threadId":%q,"data":{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"%s %d"}]}}}`, id, text, n))
		}
	}
	for _, id := range []string{one, two} {
		h.do("thread.create", fmt.Sprintf(`{"threadId":%q,"data":{}}`, id))
	}
	write(one, gone)
	write(two, kept)
	for n := range 24 { // so much that the server ends the log's first block, and compresses it
		h.do("item.create", fmt.Sprintf(`{"threadId":%q,"data":{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}}`, two, noise(n)))
	}
	last := h.do("thread.update", fmt.Sprintf(`{"threadId":%q,"data":{"title":"x"}}`, two))
	h.settle(last.Seq)
	block := filepath.Join(dir, "jetstream", "$G", "streams", "SKEIN_LOG", "msgs", "1.blk")
	h.until("the log's first block is not compressed", func() bool {
		raw, err := os.ReadFile(block)
		return err == nil && bytes.HasPrefix(raw, []byte("cmp"))
	})
	for range 2 {
		for _, id := range []string{one, two} {
			if r, err := archive.New(h.log, archive.Config{}, zerolog.Nop()).Thread(h.ctx, "acme", id, archive.Options{}); err != nil || r.Outcome != archive.Archived {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		in := strings.Join(found(t, dir, gone), " ")
		if strings.Contains(in, "SKEIN_") || !strings.Contains(in, "OBJ_thread_archive") {
			t.Errorf("archived, and the text is in %s", in)
		}
		write(one, gone)
		write(two, kept)
	}
	killed := errors.New("killed here")
	_, err := archive.New(h.log, archive.Config{Told: func(context.Context, string, string, archive.Step) error { return killed }}, zerolog.Nop()).
		Thread(h.ctx, "acme", one, archive.Options{})
	if !errors.Is(err, killed) {
		t.Fatal(err)
	}
	write(one, gone)
	for _, seq := range []int64{last.Seq, 1 << 40} { // as a writer leaves them that is killed before it has written the entry
		if _, err := h.log.JetStream().Publish(h.ctx, objects.Pieces(assets.ArchiveBucket, fmt.Sprintf("acme.%s.%d.left", one, seq)), []byte(gone)); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.held("OBJ_thread_archive", "$O.thread_archive.M.*"); n != 5 {
		t.Errorf("%d objects", n)
	}
	end := h.do("thread.delete", fmt.Sprintf(`{"threadId":%q,"data":{"purge":true}}`, one))
	h.settle(end.Seq)
	h.until("the purge is not finished", func() bool { return h.held("KV_thread_threads", "$KV.thread_threads._.deletion.>") == 0 })
	for _, name := range found(t, dir, gone) {
		if !strings.Contains(name, "KV_") {
			t.Errorf("after the purge the text is in %s", name)
		}
	}
	if _, err := rebuild.Progress(nil).Rewrite(h.ctx, h.log); err != nil {
		t.Fatal(err)
	}
	h.until("after the rewriting the text is there", func() bool { return len(found(t, dir, gone)) == 0 })
	if in := strings.Join(found(t, dir, kept), " "); !strings.Contains(in, "OBJ_thread_archive") || !strings.Contains(in, "KV_thread_items") {
		t.Errorf("the other thread's text is in %s", in)
	}
	h.settle(end.Seq)
	if findings, summary := h.verify(Options{}); len(findings) > 0 {
		t.Errorf("the audit says %v, %+v", findings, summary)
	}
	if list := h.stored("acme", one); len(list) != 1 || int64(list[0]) != end.Seq {
		t.Errorf("the tombstone is not what is left: %v", list)
	}
}

// stored returns the sequences of a thread's messages in the log.
func (h *house) stored(tenant, thread string) (list []uint64) {
	h.t.Helper()
	for m, err := range h.log.Raw(h.ctx, h.log.Config().Names.Log(tenant, thread), 1) {
		if err != nil {
			h.t.Fatal(err)
		}
		list = append(list, m.Seq)
	}
	return list
}
