package query

import (
	"testing"
	"time"

	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/service"
)

// BenchmarkQuery reads one document, and the last items of a thread.
func BenchmarkQuery(b *testing.B) {
	h := newHouse(b)
	id := h.Fill(100, 20)[7]
	r, _ := h.Run(projections.Config{})
	h.AwaitRunner(r)
	a := h.asker(Config{})
	for _, c := range []struct{ name, body string }{
		{"thread.get", `{"threadId":"` + id + `"}`},
		{"item.list", `{"threadId":"` + id + `","order":"desc","limit":20}`},
		{"thread.list", `{"limit":20}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.q.Handle(b.Context(), acme, c.name, []byte(c.body), service.Meta{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkThreadHistory lists 50 of 100,000 threads.
func BenchmarkThreadHistory(b *testing.B) {
	h := newHouse(b)
	h.putThreads(0, 100_000)
	a := h.asker(Config{})
	a.listed(100_000)
	best := time.Hour
	for b.Loop() {
		start := time.Now()
		if _, err := a.q.Handle(b.Context(), acme, "thread.history", []byte(`{"limit":50}`), service.Meta{}); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(best.Microseconds())/1000, "best-ms")
}
