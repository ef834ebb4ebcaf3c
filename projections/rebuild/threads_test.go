package rebuild

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/internal/logtest"
)

// Every thread is compared, even if it is purged while threads are listed.
func TestListThreads_PurgedMeanwhile(t *testing.T) {
	const threads = 12000 // more than a list requests at once
	log := logtest.Start(t)
	js := log.JetStream()
	id := func(n int) string { return fmt.Sprintf("T-0190a000-0000-7000-8000-%012d", n) }
	for n := range threads {
		if _, err := js.PublishAsync("skein.log.acme."+id(n), []byte("commit")); err != nil {
			t.Fatal(err)
		}
		if n%1000 == 999 { // more outstanding ones would stall on a slow machine
			<-js.PublishAsyncComplete()
		}
	}
	<-js.PublishAsyncComplete()
	stream, err := js.Stream(t.Context(), "SKEIN_LOG")
	if err != nil {
		t.Fatal(err)
	}
	b, err := newRebuilding(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	work, failed := make(chan threadName), make(chan error, 1)
	go func() {
		defer close(work)
		failed <- b.listThreads(t.Context(), map[uint64]struct{}{}, work)
	}()
	seen := map[string]int{}
	for name := range work {
		if seen[name.thread]++; len(seen) > 1 || seen[name.thread] > 1 {
			continue
		}
		for n := range 5 { // under the tombstone, the commit goes by which it is in the list
			subject := "skein.log.acme." + id(threads-1-n)
			tombstone, err := js.Publish(t.Context(), subject, []byte("tombstone"))
			if err == nil {
				err = stream.Purge(t.Context(), jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(tombstone.Sequence))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	for n := range threads {
		if seen[id(n)] != 1 {
			t.Fatalf("%s was listed %d times, and %d threads of %d in all", id(n), seen[id(n)], len(seen), threads)
		}
	}
}
