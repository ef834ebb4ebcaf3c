package telemetry

import (
	"testing"

	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/lru"
)

// BenchmarkSpans folds a turn of two steps and two calls and creates its seven spans,
// without the log and the collector.
func BenchmarkSpans(b *testing.B) {
	w := newWorld(b)
	w.orders()
	id, execution := w.ask("orders", caller)
	w.finished(execution)
	var turn []*events.Commit
	for c, err := range w.log.Thread(b.Context(), tenant, id, 1) {
		if err != nil {
			b.Fatal(err)
		}
		turn = append(turn, c)
	}
	f := &follower{x: &Exporter{log: w.log}, maker: newMaker(resource.Default(), ""), runs: lru.New[name, *run](maxKept)}
	b.ReportAllocs()
	for b.Loop() {
		f.waiting = nil
		for _, c := range turn {
			if err := f.commit(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
		if len(f.waiting) != 7 {
			b.Fatalf("%d spans", len(f.waiting))
		}
	}
}
