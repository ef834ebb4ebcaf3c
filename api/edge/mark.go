package edge

import (
	"strings"
	"sync"

	"github.com/skein-threads/skein/events"
)

// markedThreads is how many threads have a mark of their own before the older half of the
// table becomes part of their tenant's floor.
const markedThreads = 1 << 14

// marks are the highest sequences that an edge has acknowledged: by tenant, and by thread
// for those that were written to lately.
type marks struct {
	mu      sync.Mutex
	highest map[string]int64       // by tenant
	floor   map[string]int64       // by tenant: of its threads that are in neither table
	recent  map[markedThread]int64 // up to half of markedThreads
	older   map[markedThread]int64 // as many
	most    int                    // of a table; default half of markedThreads
}

type markedThread struct{ tenant, id string }

// note records what was acknowledged. The thread may be empty.
func (m *marks) note(tenant, thread string, seq int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.highest == nil {
		m.highest, m.floor, m.recent = map[string]int64{}, map[string]int64{}, map[markedThread]int64{}
	}
	m.highest[tenant] = max(m.highest[tenant], seq)
	if thread == "" {
		return
	}
	name := markedThread{tenant, thread}
	if _, known := m.recent[name]; !known && len(m.recent) >= m.size() {
		for old, seq := range m.older {
			m.floor[old.tenant] = max(m.floor[old.tenant], seq)
		}
		m.older, m.recent = m.recent, make(map[markedThread]int64, m.size())
	}
	m.recent[name] = max(m.recent[name], seq)
}

func (m *marks) size() int {
	if m.most > 0 {
		return m.most
	}
	return markedThreads / 2
}

// of returns the highest sequence of a tenant.
func (m *marks) of(tenant string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.highest[tenant]
}

// ofThread returns the highest sequence of a thread, or a higher one if it was written to a
// while ago. A thread that is named by its key, or not at all, has that of its tenant.
func (m *marks) ofThread(tenant, ref string) int64 {
	id, key := events.ThreadRef(ref)
	m.mu.Lock()
	defer m.mu.Unlock()
	if id == "" || key != "" {
		return m.highest[tenant]
	}
	name := markedThread{tenant, id}
	return max(m.recent[name], m.older[name], m.floor[tenant])
}

// readsOwnWrites reports whether a path belongs to a protocol whose clients do not name the
// thread that they have written to: its answers show all that this edge has acknowledged to the
// tenant, and so do the console's pages. Those of other paths show it of the thread that they
// name.
func readsOwnWrites(path string) bool {
	switch surface, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); surface {
	case "v1", "chat", "threads", "console", "agui", "a2a", "mcp":
		return true
	}
	return false
}

// Acknowledged notes that a write to a thread was acknowledged which the caller's client did not
// send as a command: an upload in pieces, or what a run wrote whose end a stream has told.
func (c *Caller) Acknowledged(thread string, seq int64) { c.marks.note(c.Tenant, thread, seq) }
