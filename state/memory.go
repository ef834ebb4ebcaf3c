package state

import (
	"maps"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Memory holds values by key in memory, for the lifetime of a session. It is safe for concurrent
// use. It does not copy values: a change through a pointer is visible to all.
type Memory struct {
	session string // the session that the values belong to
	limit   int64  // of the keys and values as JSON; 0: they need not be JSON

	mu     sync.Mutex // guards the rest
	values map[string]any
	sizes  map[string]int64
	size   int64
	ended  bool
}

func newMemory(session string, limit int64) *Memory {
	return &Memory{session: session, limit: limit, values: map[string]any{}, sizes: map[string]int64{}}
}

// Set sets the value of a key. Values of a session must be JSON, at most 1 MiB of it together:
// otherwise the error is an invalid_request or a payload_too_large, and nothing changes. Values
// of a request may be anything. After the end of the session the error is an *EndedError.
func (m *Memory) Set(key string, value any) error {
	var size int64
	if m.limit > 0 {
		raw, err := encodePair(key, value)
		if err != nil {
			return err
		}
		size = int64(len(raw))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return &EndedError{SessionID: m.session}
	}
	total := m.size - m.sizes[key] + size
	if m.limit > 0 && total > m.limit {
		return events.TooLarge("the session's state", total, m.limit)
	}
	m.size, m.sizes[key], m.values[key] = total, size, value
	return nil
}

// encodePair returns a key and its value as JSON, with separators.
func encodePair(key string, value any) ([]byte, error) {
	raw, err := json.Marshal(map[string]any{key: value})
	if err != nil {
		return nil, events.Invalid("", "set key %.80q: encode its value as JSON: %w", key, err)
	}
	return raw, nil
}

// Get returns the value of a key, and reports whether it has one.
func (m *Memory) Get(key string) (any, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.values[key]
	return value, ok
}

// Value returns the value of a key, and reports whether it has one that is a T.
func Value[T any](m *Memory, key string) (T, bool) {
	value, _ := m.Get(key)
	v, ok := value.(T)
	return v, ok
}

// Has reports whether a key has a value.
func (m *Memory) Has(key string) bool {
	_, ok := m.Get(key)
	return ok
}

// Delete removes a key. A missing key is no error.
func (m *Memory) Delete(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.size -= m.sizes[key]
	delete(m.sizes, key)
	delete(m.values, key)
}

// Clear removes all keys.
func (m *Memory) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
}

func (m *Memory) clear() {
	clear(m.sizes)
	clear(m.values)
	m.size = 0
}

// Keys returns the keys, sorted.
func (m *Memory) Keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.values))
}

// Size returns the number of keys.
func (m *Memory) Size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.values)
}

// end clears the values for good.
func (m *Memory) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	m.clear()
}
