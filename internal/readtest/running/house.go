// Package running adds a runner of the read models to package readtest, for the tests of
// what works on them.
package running

import (
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/rebuild"
)

// House is a [readtest.House] that runs runners.
type House struct{ *readtest.House }

// New returns a house for a test. It runs no runner yet.
func New(t testing.TB) *House { return &House{readtest.New(t)} }

// Run runs a runner until the function that it returns is called, or the test ends.
func (h *House) Run(cfg projections.Config) (*projections.Runner, func()) {
	h.Helper()
	return h.StartRunner(projections.New(h.NewLog(), cfg, zerolog.New(zerolog.NewTestWriter(h)).Level(zerolog.WarnLevel), nil))
}

// StartRunner does the same with a runner of the test's own.
func (h *House) StartRunner(r *projections.Runner) (*projections.Runner, func()) {
	return r, h.Start(r.Run)
}

// AwaitRunner blocks until a runner has stored what the log holds now.
func (h *House) AwaitRunner(r *projections.Runner) {
	h.Helper()
	h.Await(r.Progress())
}

// Verify compares the documents with the log, and changes nothing.
func (h *House) Verify(names ...string) rebuild.Report {
	h.Helper()
	report, err := rebuild.Verify(h.Context(), h.NewLog(), rebuild.Scope{}, names...)
	if err != nil {
		h.Fatal(err)
	}
	return report
}

// Repair repairs the documents that differ from the log.
func (h *House) Repair(names ...string) rebuild.Report {
	h.Helper()
	report, err := rebuild.Repair(h.Context(), h.NewLog(), names...)
	if err != nil {
		h.Fatal(err)
	}
	return report
}
