package projections

import (
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections/rebuild"
)

const acme = readtest.Acme

type house struct{ *readtest.House }

func newHouse(t testing.TB) *house { return &house{readtest.New(t)} }

// run runs a runner until the function that it returns is called, or the test ends.
func (h *house) run(cfg Config) (*Runner, func()) {
	h.Helper()
	return h.start(New(h.NewLog(), cfg, zerolog.New(zerolog.NewTestWriter(h)).Level(zerolog.WarnLevel), nil))
}

func (h *house) start(r *Runner) (*Runner, func()) { return r, h.Start(r.Run) }

func (h *house) await(r *Runner) {
	h.Helper()
	h.Await(r.Progress())
}

func (h *house) runWith(cfg Config, m Metrics) *Runner {
	h.Helper()
	r, _ := h.start(New(h.NewLog(), cfg, zerolog.Nop(), m))
	return r
}

// Verify compares the documents with the log, and changes nothing.
func (h *house) Verify(names ...string) rebuild.Report {
	h.Helper()
	report, err := rebuild.Verify(h.Context(), h.NewLog(), rebuild.Scope{}, names...)
	if err != nil {
		h.Fatal(err)
	}
	return report
}

// Repair repairs the documents that differ from the log.
func (h *house) Repair(names ...string) rebuild.Report {
	h.Helper()
	report, err := rebuild.Repair(h.Context(), h.NewLog(), names...)
	if err != nil {
		h.Fatal(err)
	}
	return report
}

// counts is metrics for a test.
type counts struct {
	NoMetrics
	seen atomic.Int64
}

func (c *counts) Broken(uint64) { c.seen.Add(1) }

func (c *counts) broken() int64 { return c.seen.Load() }
