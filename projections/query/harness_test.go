package query

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/rebuild"
)

const acme = readtest.Acme

type house struct{ *readtest.House }

func newHouse(t testing.TB) *house { return &house{readtest.New(t)} }

// run runs a runner until the function that it returns is called, or the test ends.
func (h *house) run(cfg projections.Config) (*projections.Runner, func()) {
	h.Helper()
	return h.start(projections.New(h.NewLog(), cfg, zerolog.New(zerolog.NewTestWriter(h)).Level(zerolog.WarnLevel), nil))
}

func (h *house) start(r *projections.Runner) (*projections.Runner, func()) { return r, h.Start(r.Run) }

func (h *house) await(r *projections.Runner) {
	h.Helper()
	h.Await(r.Progress())
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
