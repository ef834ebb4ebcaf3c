package share

// evictAtOnce is how many entries Evict looks at.
const evictAtOnce = 8

// Evict removes some entries that are idle from a map that has many. Call it before an entry is added:
// it looks at a few, in any order, so that no call takes long, and a map of which most entries are
// idle does not grow.
func Evict[K comparable, V any](m map[K]V, many int, idle func(V) bool) {
	if len(m) < many {
		return
	}
	looked := 0
	for key, value := range m {
		if idle(value) {
			delete(m, key)
		}
		if looked++; looked == evictAtOnce {
			return
		}
	}
}
