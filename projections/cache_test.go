package projections

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections/documents"
)

// No dropped document keeps another dropped one in memory.
func TestCache_DroppedDocumentsAreFreed(t *testing.T) {
	c := newCache(1)
	var first *node
	var later []weak.Pointer[node]
	for i := range 100 {
		n := c.node(documents.Place{Kind: documents.Items, ID: fmt.Sprint(i)})
		if i == 0 {
			first = n
		} else {
			later = append(later, weak.Make(n))
		}
	}
	n := c.node(documents.Place{Kind: documents.Items, ID: "unwritten"})
	n.dirty = true
	if c.empty(); len(c.nodes) != 1 || c.bytes != n.bytes {
		t.Errorf("%d documents of %d bytes are held, want the one that has to be written", len(c.nodes), c.bytes)
	}
	c.last = [documents.Kinds]*node{}
	runtime.GC()
	for i, w := range later {
		if w.Value() != nil {
			t.Fatalf("document %d is still there", i+1)
		}
	}
	runtime.KeepAlive(first)
}

// The size that the cache reports is the memory that it takes, so that its bound is one.
func TestCacheBytesAreMemory(t *testing.T) {
	if !alone(t) {
		return
	}
	models := documents.NewModels()
	c := newCache(1 << 40)
	var changed []*documents.Slot
	before := readtest.HeapInUse()
	for n := range 1000 {
		for _, commit := range turnsOf(t, fmt.Sprintf("T-00000000-0000-7000-8000-%012d", n), 2) {
			clear(changed)
			changed = models.Apply(commit, c, documents.AllKinds, changed).Changed
			for _, slot := range changed {
				raw, err := documents.Encode(slot.Doc)
				if err != nil {
					t.Fatal(err)
				}
				c.size(slot.Owner.(*node), len(raw))
			}
		}
	}
	clear(changed)
	took, said := float64(readtest.HeapInUse()-before), float64(c.bytes)
	t.Logf("%d documents take %.0f bytes each, and are said to take %.0f", len(c.nodes), took/float64(len(c.nodes)), said/float64(len(c.nodes)))
	if said < took*0.75 || said > took*1.5 {
		t.Errorf("%.0f bytes are said to be %.0f", took, said)
	}
	runtime.KeepAlive(c)
}

// turnsOf returns the commits of a thread with some turns, as the log has them.
func turnsOf(t *testing.T, id string, turns int) (commits []*events.Commit) {
	state := &thread.State{}
	put := func(n int, parts []thread.Part) {
		made, err := thread.Decide(state, &thread.Command{
			ID: fmt.Sprintf("c-%d", n), Tenant: acme, ThreadID: id, Time: events.TimeOf(time.Unix(1771581600, 0)), Actor: "test", Parts: parts,
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := events.NewCommit(state.Chain, made)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = events.DecodeCommit(acme, id, uint64(n+1), c.Version, c.Chain, c.Body); err != nil {
			t.Fatal(err)
		}
		thread.Apply(state, c)
		commits = append(commits, c)
	}
	put(0, []thread.Part{{Name: "thread.create", Data: events.CreateThread{Title: "a thread"}}})
	for n := range turns {
		put(n+1, readtest.TurnParts(t, func(kind string) string { return fmt.Sprintf("%s_%s_%04d", kind, id[24:], n) }))
	}
	return commits
}

// alone runs a test again in a process of its own, where memory is otherwise constant,
// and reports whether this is that process.
func alone(t *testing.T) bool {
	const variable = "SKEIN_ALONE"
	if os.Getenv(variable) == t.Name() {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("alone: %v", err)
	}
	return false
}
