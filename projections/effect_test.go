package projections

import (
	"fmt"
	"testing"

	"github.com/skein-threads/skein/commands/thread"
)

// Effects that end take their documents with them: the bucket is what the log
// says, live, after a restart of the runner, and judged by a rebuild (SA-86).
func TestEffectsOfTheLog(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{})
	id := h.do("thread.create", "", `{}`).ThreadID
	effect := func(n int) string { return fmt.Sprintf("0195e5d0-3c1a-4b2e-9f44-%012d", n) }
	inside := func(name string, data any) {
		t.Helper()
		if _, err := h.dispatcher.Inside(t.Context(), acme, id, fmt.Sprintf("w-%+v", data), name, data); err != nil {
			t.Fatal(err)
		}
	}
	some := func(from int) {
		for n := from; n < from+30; n++ {
			h.do("effect.schedule", id, fmt.Sprintf(`{"id":%q,"name":"x"}`, effect(n)))
			if n%5 == 4 {
				h.await(r) // so that not all of it is folded at once
			}
			switch n % 3 {
			case 0:
				h.do("effect.cancel", id, fmt.Sprintf(`{"effectId":%q}`, effect(n)))
			case 1:
				inside("effect.start", thread.StartEffect{ID: effect(n), Firing: 1, Attempt: 1, Claim: 1})
				if n%2 == 0 {
					inside("effect.complete", thread.CompleteEffect{ID: effect(n), Firing: 1, Attempt: 1})
				} else {
					inside("effect.fail", thread.FailEffect{ID: effect(n), Firing: 1, Attempt: 1, ErrorText: "no"})
				}
			}
		}
		h.await(r)
		h.same(id)
	}
	some(0)
	stop()
	r, _ = h.run(Config{})
	some(30)
	if report, err := r.Rebuild(t.Context(), []string{"effects"}, true); err != nil || report.Found != 0 || report.Documents < 20 {
		t.Errorf("%+v, %v", report, err)
	}
	h.do("thread.delete", id, `{}`)
	h.await(r)
	h.same()
}
