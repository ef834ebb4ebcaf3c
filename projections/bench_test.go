package projections

import (
	"testing"

	"github.com/rs/zerolog"
)

// BenchmarkRunner lets a runner catch up with a log of commits of 12 events each.
func BenchmarkRunner(b *testing.B) {
	h := newHouse(b)
	const threads, turns = 500, 20
	h.Fill(threads, turns)
	end, err := h.EventLog.LastSeq(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		for _, p := range h.Models.List() {
			if err := h.EventLog.JetStream().DeleteStream(b.Context(), "KV_"+p.Bucket); err != nil {
				b.Fatal(err)
			}
		}
		r := New(h.NewLog(), Config{}, zerolog.Nop(), nil)
		if err := r.Ensure(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		_, stop := h.start(r)
		if err := r.Progress().Wait(b.Context(), end); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(end)*float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}
