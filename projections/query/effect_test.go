package query

import (
	"fmt"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/rebuild"
)

// The documents of ended effects are removed: the bucket is what the log says, live,
// after a restart of the runner, and by a rebuild (SA-86).
func TestEffectsOfTheLog(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, stop := h.Run(projections.Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	effect := func(n int) string { return fmt.Sprintf("0195e5d0-3c1a-4b2e-9f44-%012d", n) }
	inside := func(name string, data any) {
		t.Helper()
		if _, err := h.Dispatcher.Inside(t.Context(), acme, id, fmt.Sprintf("w-%+v", data), name, data); err != nil {
			t.Fatal(err)
		}
	}
	some := func(from int) {
		for n := from; n < from+30; n++ {
			h.Do("effect.schedule", id, fmt.Sprintf(`{"id":%q,"name":"x"}`, effect(n)))
			if n%5 == 4 {
				h.AwaitRunner(r) // so that it is not all folded at once
			}
			switch n % 3 {
			case 0:
				h.Do("effect.cancel", id, fmt.Sprintf(`{"effectId":%q}`, effect(n)))
			case 1:
				inside("effect.start", thread.StartEffect{ID: effect(n), Firing: 1, Attempt: 1, Claim: 1})
				if n%2 == 0 {
					inside("effect.complete", thread.CompleteEffect{ID: effect(n), Firing: 1, Attempt: 1})
				} else {
					inside("effect.fail", thread.FailEffect{ID: effect(n), Firing: 1, Attempt: 1, ErrorText: "no"})
				}
			}
		}
		h.AwaitRunner(r)
		h.Same(id)
	}
	some(0)
	stop()
	r, _ = h.Run(projections.Config{})
	some(30)
	if report, err := rebuild.Verify(t.Context(), h.EventLog, rebuild.Scope{}, "effects"); err != nil || report.Found != 0 || report.Documents < 20 {
		t.Errorf("%+v, %v", report, err)
	}
	h.Do("thread.delete", id, `{}`)
	h.AwaitRunner(r)
	h.Same()
}
