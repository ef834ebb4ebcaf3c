package modeltest

import (
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// Watch records chunks.
type Watch struct {
	mu     sync.Mutex // guards Chunks
	Chunks []string
	Came   chan struct{} // if not nil, receives a value for each
}

// Chunk implements runtime.Stream.
func (w *Watch) Chunk(c runtime.Chunk) {
	w.mu.Lock()
	w.Chunks = append(w.Chunks, c.Type+" "+string(c.Data))
	w.mu.Unlock()
	if w.Came != nil {
		w.Came <- struct{}{}
	}
}

// Input returns a step with items; by default with one message of a user.
func Input(items ...events.Item) *runtime.StepInput {
	if len(items) == 0 {
		items = []events.Item{Message("itm_1", events.User, `{"type":"input_text","text":"hello"}`)}
	}
	return &runtime.StepInput{
		Tenant: "acme", StepID: "stp_1", Iteration: 1, Attempt: 1,
		Model: runtime.Model{Name: "test", Model: "test-model"}, Items: items,
	}
}

// Message returns a message of parts.
func Message(id string, role events.Role, parts ...string) events.Item {
	return events.Item{ID: id, Type: events.Message, Role: role, Content: events.JSON("[" + strings.Join(parts, ",") + "]")}
}

// Item returns an item of any kind.
func Item(id string, kind events.ItemType, content string) events.Item {
	return events.Item{ID: id, Type: kind, Content: events.JSON(content)}
}

// Written returns a value as JSON.
func Written(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Canonical returns JSON in one form.
func Canonical(t testing.TB, raw string) string {
	t.Helper()
	v := jsontext.Value(raw)
	if err := v.Canonicalize(); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return string(v)
}
