package schema

import (
	"embed"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// files holds the JSON Schemas that dev/generate wrote.
//
//go:embed files
var files embed.FS

// File is one JSON Schema, stored in schema/files/Path.
type File struct {
	Path string
	Body []byte
}

// The $id of the schemas that do not belong to one row of a catalog.
const (
	envelopeID = "urn:skein:event-envelope"
	commitID   = "urn:skein:commit"
)

// The paths of the schemas, below files.
func commandPath(name string) string  { return "commands/" + name + ".json" }
func queryPath(name string) string    { return "queries/" + name + ".json" }
func eventPath(t events.Type) string  { return "events/" + string(t) + ".json" }
func resourcePath(name string) string { return "resources/" + name + ".json" }

func definitionPath(kind events.DefinitionKind) string {
	return "definitions/" + string(kind) + ".json"
}

const (
	envelopePath = "event-envelope.json"
	commitPath   = "commit.json"
)

// Files returns every JSON Schema as the Go types define it now, in a fixed order. The error
// names a type with an invalid tag.
func Files() ([]File, error) {
	all := shapes{}
	var out []File
	add := func(path, id, doc string, value any, open bool) error {
		sh, err := all.of(reflect.TypeOf(value))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, file(path, document(id, doc, sh, open)))
		return nil
	}
	for _, c := range events.Commands() {
		if err := add(commandPath(c.Name), "urn:skein:command:"+c.Name, c.Doc, c.New(), false); err != nil {
			return nil, err
		}
	}
	for _, q := range events.Queries() {
		if err := add(queryPath(q.Name), "urn:skein:query:"+q.Name, q.Doc, q.New(), false); err != nil {
			return nil, err
		}
	}
	for _, r := range events.Catalog() {
		if err := add(eventPath(r.Type), r.Schema(), r.Doc, r.New(), true); err != nil {
			return nil, err
		}
	}
	for _, r := range events.DefinitionRows() {
		if err := add(definitionPath(r.Kind), "urn:skein:definition:"+string(r.Kind), r.Doc, r.New(), false); err != nil {
			return nil, err
		}
	}
	for _, r := range Resources() {
		if err := add(resourcePath(r.Name), "urn:skein:resource:"+r.Name, r.Doc, r.New(), !r.Asked); err != nil {
			return nil, err
		}
	}
	if err := add(envelopePath, envelopeID, "An event as it is stored and sent: a CloudEvent in structured JSON.", envelope{}, true); err != nil {
		return nil, err
	}
	sh, err := all.of(reflect.TypeFor[envelope]())
	if err != nil {
		return nil, err
	}
	return append(out, file(commitPath, commitDocument(sh))), nil
}

// commitDocument contains a copy of the envelope's schema rather than a reference, so that
// each file stands alone.
func commitDocument(sh *shape) events.JSON {
	var event, o object
	(&writer{open: true}).body(&event, sh)
	o.put("$schema", dialect)
	o.put("$id", commitID)
	o.put("description", "The body of a commit: the events of one command on one thread, a CloudEvents JSON batch.")
	o.put("type", "array")
	o.put("minItems", 1)
	o.put("items", event.raw())
	return o.raw()
}

func file(path string, document events.JSON) File {
	if err := (*jsontext.Value)(&document).Indent(jsontext.WithIndent("  ")); err != nil { // it was made here
		panic(fmt.Sprintf("schema: %s: %v", path, err))
	}
	return File{Path: path, Body: append(document, '\n')}
}
