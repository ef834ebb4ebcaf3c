package cleanup_test

import (
	"sync"
	"testing"

	"github.com/skein-threads/skein/internal/readtest/running"
	"github.com/skein-threads/skein/projections"
)

// BenchmarkCascade deletes a thread with b.N threads that work for it: the time is that of each.
func BenchmarkCascade(b *testing.B) {
	h := running.New(b)
	h.Submitting()
	r, _ := h.Run(projections.Config{})
	main := h.Do("thread.create", "", `{}`).ThreadID
	ids := make([]string, b.N)
	var creating sync.WaitGroup
	for p := range 10 {
		creating.Go(func() {
			for i := p; i < len(ids); i += 10 {
				ids[i] = h.CreateWorker(main)
			}
		})
	}
	creating.Wait()
	h.AwaitRunner(r)
	b.ResetTimer()
	h.Do("thread.delete", main, `{}`)
	for _, id := range ids {
		h.Until(func() bool { return h.Tombstone(id) != nil }, id+" goes on")
	}
	b.ReportMetric(float64(len(h.Tombstone(main).Body)), "B/tombstone")
}
