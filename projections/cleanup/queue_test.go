package cleanup

import (
	"fmt"
	"testing"
	"time"

	"github.com/skein-threads/skein/projections/buckets"
)

// Purged threads are erased one at a time, in turns, while the threads that work for
// others are deleted meanwhile.
func TestEndsTakeTurns(t *testing.T) {
	n := newQueue()
	for i := range 3 {
		n.add(buckets.Deletion{Tenant: "acme", Thread: fmt.Sprint("T-", i), Purge: true})
	}
	take := func() *openDeletion {
		o, _ := n.next(time.Now())
		return o
	}
	cascading := []*openDeletion{take(), take(), take()}
	if cascading[2] == nil || take() != nil {
		t.Fatal("the three are not taken once each")
	}
	for _, o := range cascading {
		n.done(o, stepResult{cascaded: true})
	}
	var turns []string
	for range 6 {
		o := take()
		if o == nil {
			t.Fatalf("after %v nobody has a turn", turns)
		}
		if other := take(); other != nil {
			t.Fatalf("%s is erased together with %s", other.Thread, o.Thread)
		}
		n.add(buckets.Deletion{Tenant: "acme", Thread: "T-plain"})
		plain := take()
		if plain == nil || plain.Purge {
			t.Fatal("a deletion that erases nothing waits for the erasing")
		}
		if open := n.done(plain, stepResult{finished: true}); open != 3 {
			t.Fatalf("%d are open, want 3", open)
		}
		turns = append(turns, o.Thread)
		n.done(o, stepResult{again: time.Nanosecond})
	}
	for i := range 3 {
		if turns[i] != turns[i+3] || turns[i] == turns[(i+1)%3] {
			t.Fatalf("the turns are %v", turns)
		}
	}
	o := take()
	n.done(o, stepResult{again: time.Hour}) // it waits for something
	if next := take(); next == nil || next == o {
		t.Fatal("one that waits holds up the others")
	}
	n.clear() // another process goes on
	n.add(buckets.Deletion{Tenant: "acme", Thread: "T-0", Purge: true})
	n.done(take(), stepResult{cascaded: true})
	if take() == nil {
		t.Fatal("after another process was the runner nothing is erased")
	}
}
