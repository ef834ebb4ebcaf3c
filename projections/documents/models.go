package documents

import (
	"bytes"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Models is all read models, ready to fold. It does not change once made: all
// goroutines may share one.
type Models struct {
	list [Kinds]Projection
	by   map[events.Type][]bound
}

// bound is a reaction and the read model that has it.
type bound struct {
	reaction
	kind Kind
}

// NewModels gives all read models.
func NewModels() *Models {
	m := &Models{by: map[events.Type][]bound{}}
	for _, p := range []Projection{
		threads(), contexts(), items(), executions(), steps(), parts(), traceEvents(), traceRuns(), traceSpans(), index(), files(), effects(),
		definitions(),
	} {
		m.list[p.Kind] = p
		for _, r := range p.reactions {
			if r.fold != nil {
				m.by[r.on] = append(m.by[r.on], bound{r, p.Kind})
			}
		}
	}
	return m
}

// List gives the read models in the order of their kinds.
func (m *Models) List() []Projection { return m.list[:] }

// Of gives one read model.
func (m *Models) Of(k Kind) Projection { return m.list[k] }

// Named finds a read model by its name or its bucket.
func (m *Models) Named(name string) (Projection, bool) {
	for _, p := range m.list {
		if p.Name == name || p.Bucket == name {
			return p, true
		}
	}
	return Projection{}, false
}

// Encode gives a document as it is stored: the same bytes for the same document.
func Encode(doc any) ([]byte, error) { return json.Marshal(doc, json.Deterministic(true)) }

// EncodeTo writes the same to the end of a buffer.
func EncodeTo(b *bytes.Buffer, doc any) error {
	return json.MarshalWrite(b, doc, json.Deterministic(true))
}
