package query

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// TestDirectory_IsSmall measures what a directory costs a thread, a key of 15
// letters included.
func TestDirectory_IsSmall(t *testing.T) {
	if raceDetector {
		t.Skip("it measures memory: make test runs it")
	}
	n := directoryBytes(100_000)
	t.Logf("a directory takes %d bytes a thread", n)
	if n > 200 {
		t.Errorf("a directory takes %d bytes a thread, want at most 200", n)
	}
}

// directoryBytes measures what a directory costs a thread, its key included.
func directoryBytes(threads int) uint64 {
	before := readtest.HeapInUse()
	d := newDirectory()
	for n := range threads {
		raw, err := documents.Encode(listedThread(n))
		if err != nil {
			panic(err)
		}
		var doc brief
		if err := json.Unmarshal(raw, &doc); err != nil {
			panic(err)
		}
		d.Apply([]directoryUpdate{{tenant: "acme", id: doc.ID, doc: &doc}})
	}
	n := uint64(readtest.HeapInUse()-before) / uint64(threads)
	runtime.KeepAlive(d)
	return n
}

func listedThread(n int) *events.Thread {
	key := fmt.Sprintf("customer/%06d", n)
	return &events.Thread{
		ID: fmt.Sprintf("T-00000000-0000-7000-8000-%012d", n), Key: &key, Status: events.ThreadOpen, CreatedAt: "2026-02-20T10:00:00.000Z",
		AgentID: fmt.Sprintf("agent-%d", n%3), UserID: fmt.Sprintf("user-%d", n%1000), Stamp: events.Stamp{Version: 3, Seq: int64(uint64(n + 1))},
	}
}

// Threads change in random order, as in batches, and some are removed.
func TestDirectory_KeepsItsOrder(t *testing.T) {
	t.Parallel()
	roll := rand.New(rand.NewPCG(5, 1)).IntN
	d := newDirectory()
	want := map[string]uint64{}
	var both sync.WaitGroup
	both.Go(func() { // a concurrent reader
		for range 200 {
			d.Pick("acme", directoryWish{}, 10)
		}
	})
	for n := range 20_000 {
		doc := listedThread(roll(300))
		if roll(20) == 0 {
			d.Apply([]directoryUpdate{{tenant: "acme", id: doc.ID}})
			delete(want, doc.ID)
			continue
		}
		seq := uint64(n + roll(200) + 1)
		if seq <= want[doc.ID] {
			continue
		}
		want[doc.ID] = seq
		d.Apply([]directoryUpdate{{tenant: "acme", id: doc.ID, doc: &brief{ID: doc.ID, Status: doc.Status, Seq: seq, CreatedAt: doc.CreatedAt}}})
	}
	both.Wait()
	got := d.Pick("acme", directoryWish{}, 1000)
	if len(got) != len(want) {
		t.Fatalf("%d threads, want %d", len(got), len(want))
	}
	for i, one := range got {
		if want[one.ID] != one.Seq || i > 0 && got[i-1].Seq < one.Seq {
			t.Errorf("%s at %d, want %d", one.ID, one.Seq, want[one.ID])
		}
	}
	if dir := d.tenants["acme"]; len(dir.order) > 4*len(want)+2048 {
		t.Errorf("the order has %d places for %d threads", len(dir.order), len(want))
	}
}

// Threads may be listed while the following of their bucket starts again. With -race the
// test shows reads without the lock.
func TestIn_WhileItIsRead(t *testing.T) {
	t.Parallel()
	d := newDirectory()
	d.Loaded()
	stop := make(chan struct{})
	var under sync.WaitGroup
	for range 4 {
		under.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := d.AwaitLoaded(t.Context()); err != nil {
					t.Error(err)
					return
				}
				d.In(events.ThreadOpen)
			}
		})
	}
	for range 1000 {
		d.Reset()
		d.Loaded()
	}
	close(stop)
	under.Wait()
}

// Of the threads whose documents somebody began to remove, those with which that began last are kept.
func TestDirectory_Claims(t *testing.T) {
	t.Parallel()
	d := newDirectory()
	begun := time.Now()
	var list []directoryUpdate
	for n := range claimsKept + 100 {
		list = append(list, directoryUpdate{tenant: "acme", id: fmt.Sprint(n), at: begun.Add(time.Duration(n) * time.Second), doc: &brief{ID: fmt.Sprint(n), mark: buckets.Mark{Cold: true, Bare: n != claimsKept+50}}})
	}
	d.Apply(list)
	got := d.Claimed(begun)["acme"]
	if len(got) != claimsKept || slices.Contains(got, "98") || !slices.Contains(got, "99") || slices.Contains(got, fmt.Sprint(claimsKept+50)) {
		t.Errorf("%d threads: %v", len(got), got)
	}
	if got := d.Claimed(begun.Add((claimsKept + 98) * time.Second))["acme"]; !slices.Equal(got, []string{fmt.Sprint(claimsKept + 99)}) {
		t.Errorf("the last one: %v", got)
	}
	d.Reset()
	if got := d.Claimed(begun); len(got) != 0 {
		t.Errorf("after a reset: %v", got)
	}
}
