package schema

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/events"
)

// Validator decodes requests, and validates stored events and documents. It is immutable and safe
// for concurrent use.
type Validator struct {
	request      form
	commands     map[string]form
	queries      map[string]form
	definitions  map[events.DefinitionKind]form
	storedEvents map[events.Type]*shape
	schemas      map[string]func() (*jsonschema.Schema, error) // by path, compiled on first use
}

// form describes the data of one command, query or request body.
type form struct {
	goType reflect.Type
	shape  *shape
}

// New returns a Validator. An error is a mistake in this program: a type of package events has an
// unsupported tag, or a schema file is missing because `make generate` was not run.
func New() (*Validator, error) {
	v := &Validator{
		commands: map[string]form{}, queries: map[string]form{}, definitions: map[events.DefinitionKind]form{},
		schemas: map[string]func() (*jsonschema.Schema, error){},
	}
	all := shapes{}
	var err error
	if v.request, err = all.form(events.Request{}); err != nil {
		return nil, err
	}
	for _, c := range events.Commands() {
		if v.commands[c.Name], err = all.form(c.New()); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	for _, q := range events.Queries() {
		if v.queries[q.Name], err = all.form(q.New()); err != nil {
			return nil, fmt.Errorf("%s: %w", q.Name, err)
		}
	}
	for _, r := range events.DefinitionRows() {
		if v.definitions[r.Kind], err = all.form(r.New()); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Kind, err)
		}
	}
	if v.storedEvents, err = all.storedEvents(); err != nil {
		return nil, err
	}
	paths := []string{envelopePath, commitPath}
	for _, r := range events.DefinitionRows() {
		paths = append(paths, definitionPath(r.Kind))
	}
	for _, c := range events.Commands() {
		paths = append(paths, commandPath(c.Name))
	}
	for _, q := range events.Queries() {
		paths = append(paths, queryPath(q.Name))
	}
	for _, r := range events.Catalog() {
		paths = append(paths, eventPath(r.Type))
	}
	for _, r := range Resources() {
		paths = append(paths, resourcePath(r.Name))
	}
	for _, path := range paths {
		if _, err := files.ReadFile("files/" + path); err != nil {
			return nil, fmt.Errorf("schema %s is missing; run make generate: %w", path, err)
		}
		v.schemas[path] = sync.OnceValues(func() (*jsonschema.Schema, error) { return compile(path) })
	}
	return v, nil
}

// form returns the form of data that clients send. It refuses types with numbers that JSON Schema
// and Go would bound differently.
func (all shapes) form(value any) (form, error) {
	t := reflect.TypeOf(value)
	sh, err := all.of(t)
	if err == nil {
		err = sh.closed(map[*shape]bool{})
	}
	return form{t, sh}, err
}

func (sh *shape) closed(seen map[*shape]bool) error {
	if seen[sh] {
		return nil
	}
	seen[sh] = true
	if sh.constraint != "" && !sh.checked {
		return fmt.Errorf("%s has Constraint but no Check; add the same rules in Go", sh.name)
	}
	for i := range sh.fields {
		r := &sh.fields[i].rule
		for r.kind == list {
			r = r.items
		}
		if r.kind == wide && (r.minimum == nil || *r.minimum < -maxInt || r.maximum == nil || *r.maximum > maxInt) {
			return fmt.Errorf("%s.%s: a number that callers send is a *int64, or has a minimum and a maximum within 2^53-1", sh.name, sh.fields[i].name)
		}
		if r.kind == record {
			if err := r.shape.closed(seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// DecodeRequest decodes the body of a command. Data refers to bytes of raw rather than a copy,
// so raw must not change. Paths in the error are relative to the body.
func (v *Validator) DecodeRequest(raw []byte) (events.Request, error) {
	if err := checkSyntax(raw); err != nil {
		return events.Request{}, withPath(err)
	}
	var r events.Request
	err := v.request.shape.read(&scanner{raw: raw}, reflect.ValueOf(&r).Elem())
	return r, withPath(err)
}

// CheckRequest validates a request that was not encoded as JSON. Its data must be encoded by this
// process, so that the syntax is valid and no name is repeated. The error is the one that
// DecodeRequest returns for the same request.
func (v *Validator) CheckRequest(r *events.Request) error {
	if v.request.shape.accepts(reflect.ValueOf(r).Elem()) && !nestsDeeper(r.Data, MaxDepth-1) { // data lies in the request
		return nil
	}
	raw, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return events.Invalid("", "encode the request as JSON: %w", err)
	}
	_, err = v.DecodeRequest(raw)
	return err
}

// DecodeCommand decodes a command's data into a value of its Go type. Empty data is {}.
// Any-JSON fields refer to bytes of raw rather than copies. Paths in the error are relative to
// raw; Under prefixes them.
func (v *Validator) DecodeCommand(name string, raw events.JSON) (any, error) {
	if len(raw) > 0 {
		if err := checkSyntax(raw); err != nil {
			return nil, withPath(err)
		}
	}
	return v.DecodeTrusted(name, raw)
}

// DecodeTrusted is DecodeCommand without the check of the JSON syntax, which is most of the work.
// raw must be part of a request that DecodeRequest has accepted; otherwise the result is
// undefined.
func (v *Validator) DecodeTrusted(name string, raw events.JSON) (any, error) {
	f, ok := v.commands[name]
	if !ok {
		return nil, events.Invalid("", "there is no command %.80q", name)
	}
	return f.read(raw)
}

// DecodeQuery decodes a query's data into a value of its Go type. Empty data is {}.
func (v *Validator) DecodeQuery(name string, raw []byte) (any, error) {
	f, ok := v.queries[name]
	if !ok {
		return nil, events.Invalid("", "there is no query %.80q", name)
	}
	if len(raw) > 0 {
		if err := checkSyntax(raw); err != nil {
			return nil, withPath(err)
		}
	}
	return f.read(raw)
}

func (f form) read(raw []byte) (any, error) {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	target := reflect.New(f.goType).Elem()
	if err := f.shape.read(&scanner{raw: raw}, target); err != nil {
		return nil, withPath(err)
	}
	return target.Interface(), nil
}
