package telemetry

// maxKept limits the spans and notes of the runs that are kept in memory, each about
// half a kilobyte. There are two generations of that size.
const maxKept = 50_000

// table keeps the active runs. The least recently active ones are dropped when there
// are too many; they are read from the log when they end.
type table struct {
	young, old map[name]*run
	size, most int // size of the young generation, and its limit
}

func newTable(most int) *table {
	return &table{young: map[name]*run{}, old: map[name]*run{}, most: most}
}

// get returns a run, and keeps it in the young generation.
func (t *table) get(n name) *run {
	if r := t.young[n]; r != nil {
		return r
	}
	r := t.old[n]
	if r != nil {
		delete(t.old, n)
		t.put(r)
	}
	return r
}

// put adds a run.
func (t *table) put(r *run) {
	t.grow(r.size)
	t.young[r.name] = r
}

// grow notes that a young run has grown.
func (t *table) grow(by int) {
	if t.size += by; t.size > t.most {
		t.old, t.young, t.size = t.young, map[name]*run{}, 0
	}
}

// take returns a run and removes it.
func (t *table) take(n name) *run {
	r := t.get(n)
	if r != nil {
		delete(t.young, n)
		delete(t.old, n)
		t.size = max(0, t.size-r.size)
	}
	return r
}
