package rebuild_test

import (
	"testing"

	"github.com/skein-threads/skein/internal/readtest/running"
	"github.com/skein-threads/skein/projections"
)

// BenchmarkVerify compares every document with the log: 500 threads of 240 events
// and about 160 documents each.
func BenchmarkVerify(b *testing.B) {
	h := running.New(b)
	h.Fill(500, 20)
	r, _ := h.Run(projections.Config{})
	h.AwaitRunner(r)
	docs := int64(0)
	for b.Loop() {
		report := h.Verify()
		if report.Found != 0 {
			b.Fatalf("%+v", report.Differences[0])
		}
		docs += report.Documents
	}
	b.ReportMetric(float64(docs)/b.Elapsed().Seconds(), "docs/s")
	b.ReportMetric(500*float64(b.N)/b.Elapsed().Seconds(), "threads/s")
}
