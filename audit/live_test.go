package audit

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/events"
)

// What is right is found right while it is being written, deleted and erased.
func TestVerifyWhileWritesGoOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 24 {
				id := fmt.Sprintf("T-0190a000-0000-7000-8%03d-%012d", w+1, n)
				list := [][2]string{
					{"thread.create", fmt.Sprintf(`{"threadId":%q,"data":{"key":"key %d %d"}}`, id, w, n)},
					{"thread.update", fmt.Sprintf(`{"threadId":%q,"data":{"title":"%d"}}`, id, n)},
				}
				if n%3 > 0 {
					list = append(list, [2]string{"thread.delete", fmt.Sprintf(`{"threadId":%q,"data":{"purge":%v}}`, id, n%3 == 1)})
				}
				for _, c := range list {
					if _, err := h.dispatch.Do(h.ctx, "acme", c[0], []byte(c[1]), commands.Meta{}); err != nil {
						t.Errorf("%s: %v", c[0], err)
						return
					}
				}
			}
		})
	}
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
	if found, summary := h.verify(Options{}); len(found) > 0 || summary.Threads < 10 {
		t.Errorf("afterwards: %v, %+v", found, summary)
	}
}

// A thread that is erased while it is read is right; a tombstone that was forged
// after a thread that is still there is not.
func TestErasedWhileItIsRead(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	h.stopRelay() // nothing is erased before the timeline has shown the tombstone
	last, err := h.log.Last(h.ctx, "acme", threadOne)
	if err != nil {
		t.Fatal(err)
	}
	forged := forgedCommit(t, "another history", threadOne, last.Version+1, events.LifecycleDeletedType, threadOne, events.LifecycleDeleted{Purge: true})
	seq := h.publish("skein.log.acme."+threadOne, string(forged.Body), nats.Header{
		events.HeaderVersion: {fmt.Sprint(forged.Version)}, events.HeaderChain: {forged.Chain}, events.HeaderType: {events.BatchContentType},
	})
	found, _ := h.verify(Options{LogOnly: true})
	wantOne(t, found, KindChain, threadOne, seq)

	h.do("thread.delete", `{"threadId":"`+threadTwo+`","data":{"purge":true}}`)
	j := newJudge(h.validator, func(f Finding) { t.Error(f) })
	j.gone = func(c *events.Commit) bool { return true }
	j.begin(aggregate{"acme", threadTwo})
	for c, err := range h.log.Thread(h.ctx, "acme", threadTwo, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Version <= 5 || tombstone(c) { // what lay between was erased by then
			j.commit(c)
		}
	}
	if j.erased == 0 {
		t.Error("the tombstone was not taken for one")
	}
}

// The list of threads outlives what is erased from the log after it was begun.
func TestListWhileThreadsGo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const threads = 600 // more than one batch
	for n := range threads {
		h.do("thread.create", fmt.Sprintf(`{"threadId":"T-0190a000-0000-7000-8000-%012d"}`, n))
	}
	stream, err := h.log.JetStream().Stream(h.ctx, "SKEIN_LOG")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for a, err := range list(h.ctx, h.log, "acme") {
		if err != nil {
			t.Fatal(err)
		}
		if seen[a.id]++; len(seen) == 1 {
			if err := stream.Purge(h.ctx, jetstream.WithPurgeSubject(fmt.Sprintf("skein.log.acme.T-0190a000-0000-7000-8000-%012d", threads-1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) != threads-1 {
		t.Errorf("%d threads were listed", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was listed %d times", id, n)
		}
	}
}
