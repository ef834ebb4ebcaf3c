package share

import "testing"

// A map of which most entries are idle does not grow, one that has few keeps all, and busy entries
// stay. No call looks at more than a few.
func TestEvict(t *testing.T) {
	type entry struct{ busy bool }
	const many, busy = 1000, 500
	m := map[int]entry{}
	for n := range 50 * many {
		looked, size := 0, len(m)
		Evict(m, many, func(e entry) bool {
			looked++
			return !e.busy
		})
		if looked > evictAtOnce || size < many && looked > 0 {
			t.Fatalf("%d of %d entries were looked at", looked, size)
		}
		m[n] = entry{busy: n < busy}
	}
	if len(m) > 2*many {
		t.Errorf("%d entries are left", len(m))
	}
	for n := range busy {
		if !m[n].busy {
			t.Fatalf("entry %d was removed", n)
		}
	}
}
