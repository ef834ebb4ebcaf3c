package edge

import (
	"reflect"
	"strings"
	"sync"

	"github.com/skein-threads/skein/events"
)

// marks are the highest sequences that an edge has acknowledged, by tenant.
type marks struct {
	mu      sync.Mutex
	highest map[string]int64
}

func (m *marks) note(tenant string, seq int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.highest == nil {
		m.highest = map[string]int64{}
	}
	m.highest[tenant] = max(m.highest[tenant], seq)
}

func (m *marks) of(tenant string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.highest[tenant]
}

// waits reports whether a query waits for its read model.
func waits(q events.Query) bool {
	_, ok := reflect.TypeOf(q.Example).FieldByName("Fresh")
	return ok
}

// readsOwnWrites reports whether a path belongs to a protocol whose clients cannot say what
// they have seen: its answers show all that this edge has acknowledged to the tenant.
func readsOwnWrites(path string) bool {
	surface, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return surface == "v1" || surface == "chat" || surface == "threads"
}
