package projections

import (
	"encoding/json"
	"testing"

	"github.com/skein-threads/skein/projections/buckets"
)

// A bucket's incarnation shows its watchers that sequences may have been used again: it is another
// one after each start of a runner and each reconnect, in every bucket, and written before
// anything else.
func TestIncarnation_ChangesWithEachStart(t *testing.T) {
	h := newHouse(t)
	seen := map[string]bool{}
	for start := range 3 {
		r, kill := h.run(Config{})
		h.Until(func() bool {
			for _, p := range r.models.List() {
				if h.incarnation(p.Bucket, seen) == "" {
					return false
				}
			}
			return true
		}, "not every bucket got a new incarnation")
		var one string
		for _, p := range r.models.List() {
			got := h.incarnation(p.Bucket, seen)
			if one == "" {
				one = got
			}
			if got != one {
				t.Errorf("start %d: the incarnation of %s is %q, of others %q", start, p.Bucket, got, one)
			}
		}
		kill()
		seen[one] = true
	}
}

// incarnation returns the incarnation of a bucket, empty if there is none or it was seen.
func (h *house) incarnation(bucket string, seen map[string]bool) string {
	h.Helper()
	m, ok, err := h.EventLog.Bucket(bucket).Newest(h.Context(), buckets.IncarnationKey)
	if err != nil || !ok {
		return ""
	}
	var i buckets.Incarnation
	if err := json.Unmarshal(m.Data, &i); err != nil {
		h.Fatal(err)
	}
	if end, err := h.EventLog.End(h.Context()); err != nil || i.Log != end.Incarnation {
		h.Errorf("%s is of the log %q, not %q (%v)", bucket, i.Log, end.Incarnation, err)
	}
	if seen[i.Incarnation] {
		return ""
	}
	return i.Incarnation
}
