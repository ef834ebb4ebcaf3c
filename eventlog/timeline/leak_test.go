package timeline

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// No goroutine of the log, the relay or a lease is left when they have ended.
func TestRelay_LeavesNoGoroutine(t *testing.T) {
	ours := func() string {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		var found []string
		for _, g := range strings.Split(string(stacks), "\n\n") {
			if (strings.Contains(g, "eventlog.(*") || strings.Contains(g, "eventlog/derived.(*") || strings.Contains(g, "eventlog/timeline.(*")) && !strings.Contains(g, "testing.tRunner") {
				found = append(found, g)
			}
		}
		return strings.Join(found, "\n\n")
	}
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 100, 2)
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan struct{})
	go func() {
		defer close(held)
		derived.LeasesOn(l.Streams(), l.Logger()).Hold(ctx, Lease, Of(l).Relay)
	}()
	reaches(t, l, a)
	tail, err := l.Tail(t.Context(), "test", 0)
	logtest.Must(t, err)
	_, err = tail.Next(t.Context())
	logtest.Must(t, err)
	tail.Stop()
	cancel()
	natstest.Within(t, "the relay to end", held)
	l.Close()
	for deadline := time.Now().Add(natstest.Patience); ours() != ""; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("these run on:\n%s", ours())
		}
	}
}
