package documents

import (
	"reflect"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/jsonplan"
)

// Kind says which read model a document belongs to.
type Kind uint8

// The read models, in the order of EK 9; then the index of items, files, pending
// effects, and the tenant's definitions.
const (
	Threads Kind = iota
	Contexts
	Items
	Executions
	Steps
	Parts
	TraceEvents
	TraceRuns
	TraceSpans
	Index
	Files
	Effects
	Definitions   // of the tenant rather than a thread
	Relationships // in which a thread is to others
	Shares
	Lives

	kinds // the number of read models: new ones go before it
)

// Kinds is the number of read models.
const Kinds = int(kinds)

// Mask is a set of read models.
type Mask uint32

// AllKinds is the set of all.
const AllKinds Mask = 1<<Kinds - 1

// ColdKinds is the set of those whose documents of a cold thread are not stored, because its log
// says the same. The others tell what is asked of all threads together: which there are, what is
// due, what a share opens.
const ColdKinds = AllKinds &^ (1<<Threads | 1<<Effects | 1<<Definitions | 1<<Shares | 1<<Lives)

// Has reports whether the set holds a read model.
func (m Mask) Has(k Kind) bool { return m&(1<<k) != 0 }

// With returns the set with one more.
func (m Mask) With(k Kind) Mask { return m | 1<<k }

// Models is all read models, ready to fold. It never changes, so it is safe for
// concurrent use.
type Models struct {
	list [Kinds]Projection
	by   map[events.Type][]bound

	plans [Kinds]*jsonplan.Plan // of the documents
}

// bound is a reaction and its read model.
type bound struct {
	reaction
	kind Kind
}

// projections lists the read models. A read model ignores the events that it does not
// name.
func projections() []Projection {
	return []Projection{
		threads(), contexts(), items(), executions(), steps(), parts(), traceEvents(), traceRuns(), traceSpans(), index(), files(), effects(), shares(),
		definitions(), relationships(),
		lives(),
	}
}

// NewModels returns all read models.
func NewModels() *Models {
	m := &Models{by: map[events.Type][]bound{}}
	for _, p := range projections() {
		m.list[p.Kind] = p
		m.plans[p.Kind] = jsonplan.Of(reflect.TypeOf(p.new()).Elem())
		for _, r := range p.reactions {
			if r.fold != nil {
				m.by[r.on] = append(m.by[r.on], bound{r, p.Kind})
			}
		}
	}
	return m
}

// List returns the read models in the order of their kinds.
func (m *Models) List() []Projection { return m.list[:] }

// Of returns one read model.
func (m *Models) Of(k Kind) Projection { return m.list[k] }

// Named returns the read model of that name or bucket, and reports whether there is one.
func (m *Models) Named(name string) (Projection, bool) {
	for _, p := range m.list {
		if p.Name == name || p.Bucket == name {
			return p, true
		}
	}
	return Projection{}, false
}

// Encode encodes a document for storage: the same bytes for the same document.
func Encode(doc any) ([]byte, error) { return json.Marshal(doc, json.Deterministic(true)) }

// Append appends the encoded document of a read model to b: the bytes of [Encode].
func (m *Models) Append(b []byte, k Kind, doc any) ([]byte, error) { return m.plans[k].Append(b, doc) }
