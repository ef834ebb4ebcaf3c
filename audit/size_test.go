package audit

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/skein-threads/skein/eventlog"
)

// What is measured is what the streams and stores hold: counted here by hand, of
// one thread, and of tenants by their sums.
func TestMeasure(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	other := "T-0190a000-0000-7000-8000-000000000002"
	h.fill(other)
	content := base64.StdEncoding.EncodeToString([]byte("twelve bytes"))
	for _, id := range []string{threadOne, other} {
		h.do("file.write", fmt.Sprintf(`{"threadId":%q,"data":{"path":"/f","content":%q}}`, id, content))
	}
	last := h.do("item.create", fmt.Sprintf(`{"threadId":%q,"data":{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"more"}]}}}`, other))
	h.settle(last.Seq)
	if err := eventlog.SnapshotsOn(h.log.Streams()).Save(h.ctx, "acme", other, []byte("a state")); err != nil {
		t.Fatal(err)
	}
	var log, timeline Count
	for c, err := range h.log.Thread(h.ctx, "acme", threadOne, 1) {
		if err != nil {
			t.Fatal(err)
		}
		log.add(int64(len(c.Body)))
		for i := range c.Events {
			timeline.add(int64(len(c.Events[i].Raw())))
		}
	}
	all, err := Measure(h.ctx, h.log, SizeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Threads) != 0 || len(all.Tenants) != 1 || all.Tenants[0].Tenant != "acme" || all.All.Threads != 2 ||
		all.All.Files != (Count{1, 12}) { // shared by the two
		t.Errorf("of all: %+v", all)
	}
	acme, err := Measure(h.ctx, h.log, SizeOptions{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	if len(acme.Threads) != 2 || acme.Threads[0].Thread != other || acme.Threads[0].Bytes <= acme.Threads[1].Bytes || acme.All != all.All {
		t.Fatalf("the threads are not sorted by what they take: %+v", acme)
	}
	one := acme.Threads[1]
	if one.Log != log || one.Timeline != timeline || one.Files != (Count{1, 12}) || one.Threads != 1 || one.Snapshots.Number != 0 {
		t.Errorf("the thread is measured as %+v, not %+v, %+v", one, log, timeline)
	}
	// Thread, context, item, execution, step, part, file, and what the index of messages keeps.
	if one.Documents.Number < 7 || acme.Threads[0].Documents.Number <= one.Documents.Number || acme.Threads[0].Snapshots.Number != 1 {
		t.Errorf("documents and snapshots: %+v", acme.Threads)
	}
	if sum := one.Log.Bytes + one.Timeline.Bytes + one.Chunks.Bytes + one.Documents.Bytes + one.Snapshots.Bytes + one.Files.Bytes; one.Bytes != sum {
		t.Errorf("the sum is %d, not %d", one.Bytes, sum)
	}
	named, err := Measure(h.ctx, h.log, SizeOptions{Tenant: "acme", Threads: []string{threadOne}})
	if err != nil {
		t.Fatal(err)
	}
	if len(named.Threads) != 1 || named.Threads[0] != one || named.All.Bytes != one.Bytes {
		t.Errorf("a named thread: %+v, not %+v", named, one)
	}
	if none, err := Measure(h.ctx, h.log, SizeOptions{Tenant: "globex"}); err != nil || none.All.Bytes != 0 || len(none.Threads) != 0 {
		t.Errorf("another tenant: %+v, %v", none, err)
	}
}
