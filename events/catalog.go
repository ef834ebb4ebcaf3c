package events

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/internal/jsonplan"
)

// Type is the name of an event on the wire: entity.what-happened, in the past
// tense. It is never derived from the Go type, and never changed: a rename is a
// new event.
type Type string

// Entity returns the part of the name before the first dot.
func (t Type) Entity() string {
	entity, _, _ := strings.Cut(string(t), ".")
	return entity
}

// Row declares one event. Decoding, subjects, schemas and documentation are derived
// from it.
type Row struct {
	Type      Type
	Version   int    // of its data; older versions are upcast on read
	Doc       string // one sentence
	Example   any    // its data, for the documentation
	Transient bool   // transport only: never in the log (chunk.emitted)

	schema string // name of the schema of its current data
	new    func() any
	decode func(JSON) (any, error)
	holds  func(Rules, *Event) error
	olds   []Upcast
	plan   *jsonplan.Plan // of its current data; only in rows
}

// Upcast converts the data of version From to version From+1.
type Upcast struct {
	From int
	Doc  string
	Make func(JSON) (JSON, error)
}

// New returns a zero value of the event's Go type.
func (r Row) New() any { return r.new() }

// Entity returns the entity that the event is about.
func (r Row) Entity() string { return r.Type.Entity() }

// Schema returns the name of the schema of the event's data, which is the value of the
// attribute dataschema.
func (r Row) Schema() string { return r.schema }

// Upcasts returns the conversions from older versions, oldest first.
func (r Row) Upcasts() []Upcast { return r.olds }

// Rules has the precondition of every event of the catalog, one method for each row. A
// method returns nil if the event may follow those before it, which the implementation
// knows, and otherwise an error that says why not. It changes nothing.
//
// Each row names its method, so neither a row without a precondition compiles, nor an
// implementation that lacks one.
type Rules interface {
	threadRules
	contextRules
	itemRules
	executionRules
	stepRules
	partRules
	chunkRules
	historyRules
	profileRules
	relationshipRules
	queueRules
	keyRules
	fileRules
	effectRules
	approvalRules
	runRules
	traceRules
	tenantRules
	lifecycleRules
	writerRules
	shareRules
	stateRules
	sessionRules
}

func row[T any](t Type, version int, doc string, example T, rule func(Rules, *Event, T) error, olds ...Upcast) Row {
	return Row{
		Type: t, Version: version, Doc: doc, Example: example, olds: olds, schema: schemaName(t, version),
		new: func() any { return *new(T) },
		decode: func(raw JSON) (any, error) {
			var v T
			err := json.Unmarshal(raw, &v)
			return v, err
		},
		holds: func(r Rules, e *Event) error {
			d, ok := e.Data.(T)
			if !ok {
				return fmt.Errorf("the data of the event is a %T, not a %T", e.Data, d)
			}
			return rule(r, e, d)
		},
	}
}

// Holds checks the event's precondition. An event of an unknown type or version has none.
func (e *Event) Holds(r Rules) error {
	row, known := rows[e.Type]
	if _, unread := e.Data.(Unknown); unread || !known {
		return nil
	}
	return row.holds(r, e)
}

func transient(r Row) Row {
	r.Transient = true
	return r
}

// Catalog lists every event, family by family, in a fixed order.
func Catalog() []Row {
	return slices.Concat(
		threadEvents(), contextEvents(), itemEvents(), executionEvents(), stepEvents(), partEvents(), chunkEvents(),
		historyEvents(), profileEvents(), relationshipEvents(), writerEvents(), queueEvents(), keyEvents(), fileEvents(), effectEvents(),
		approvalEvents(), runEvents(), traceEvents(), tenantEvents(), lifecycleEvents(),
		shareEvents(), stateEvents(), sessionEvents(),
	)
}

// Commands lists every command, family by family, in a fixed order.
func Commands() []Command {
	return slices.Concat(
		threadCommands(), contextCommands(), itemCommands(), messageCommands(), executionCommands(), runCommands(), queueCommands(), writerCommands(), kvCommands(), pushCommands(),
		traceCommands(), effectCommands(), fileCommands(), definitionCommands(),
		relationshipCommands(), stateCommands(), sessionCommands(), skillCommands(),
	)
}

// Queries lists every query, in a fixed order.
func Queries() []Query {
	return slices.Concat(threadQueries(), runQueries(), kvQueries(), pushQueries(), queueQueries(), fileQueries(), relationshipQueries(), stateQueries(), workerQueries())
}

// Documents lists what queries answer and read models hold, in a fixed order.
func Documents() []Document {
	return slices.Concat(kvDocuments(), pushDocuments(), threadDocuments(), relationshipDocuments(), stateDocuments(), workerDocuments(), operationDocuments())
}

// registry finds rows by name. It is built once and never changes.
type registry map[Type]*Row

// rows is the catalog by name.
var rows = newRegistry(Catalog())

// newRegistry panics on a catalog that contradicts itself, which is a mistake in this package
// that any test finds.
func newRegistry(list []Row) registry {
	reg := make(registry, len(list))
	for i := range list {
		r := &list[i]
		if _, twice := reg[r.Type]; twice {
			panic(fmt.Sprintf("events: %s is declared twice", r.Type))
		}
		if len(r.olds) != r.Version-1 {
			panic(fmt.Sprintf("events: %s is at version %d and reads %d older ones", r.Type, r.Version, len(r.olds)))
		}
		if data := r.new(); data != nil {
			r.plan = jsonplan.Of(reflect.TypeOf(data))
		}
		reg[r.Type] = r
	}
	return reg
}

// Lookup returns the row of an event, and reports whether the catalog has it.
func Lookup(t Type) (Row, bool) {
	r, ok := rows[t]
	if !ok {
		return Row{}, false
	}
	return *r, true
}

// Unknown is the data of an event whose type or version this version of Skein does not know.
// Its bytes are kept.
type Unknown struct {
	Schema string
	Raw    JSON
	Reason string
}

// decodeData decodes an event's data by the name of its schema, upcasting an older version.
// Data of an unknown type or version becomes Unknown; an error means that the data of a known
// event is malformed.
func decodeData(t Type, schema string, raw JSON) (any, error) {
	r, ok := rows[t]
	if !ok {
		return Unknown{Schema: schema, Raw: raw, Reason: "unknown event type"}, nil
	}
	if schema == r.schema {
		return r.decode(raw)
	}
	version, ok := schemaVersion(t, schema)
	if !ok || version > r.Version {
		return Unknown{Schema: schema, Raw: raw, Reason: "unknown version"}, nil
	}
	for _, up := range r.olds[version-1:] {
		var err error
		if raw, err = up.Make(raw); err != nil {
			return nil, fmt.Errorf("upcast %s from version %d: %w", t, up.From, err)
		}
	}
	return r.decode(raw)
}

const schemaPrefix = "urn:skein:event:"

func schemaName(t Type, version int) string {
	return schemaPrefix + string(t) + ":" + strconv.Itoa(version)
}

// schemaVersion parses the version out of a name that schemaName wrote.
func schemaVersion(t Type, schema string) (int, bool) {
	rest, ok := strings.CutPrefix(schema, schemaPrefix+string(t)+":")
	n, _ := strconv.Atoi(rest) // of no number another one is written
	return n, ok && n >= 1 && strconv.Itoa(n) == rest
}

// RowOf returns the row of the event whose data has the Go type of data, such as an ItemCreated, and
// reports whether there is one.
func RowOf(data any) (Row, bool) {
	for _, r := range rows {
		if data != nil && reflect.TypeOf(r.Example) == reflect.TypeOf(data) {
			return *r, true
		}
	}
	return Row{}, false
}
