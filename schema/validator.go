package schema

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/events"
)

// Validator reads what comes in, and holds what was written to its schema. It
// does not change once made: all goroutines may share one.
type Validator struct {
	request     form
	commands    map[string]form
	queries     map[string]form
	definitions map[events.DefinitionKind]form
	written     map[events.Type]*shape
	schemas     map[string]func() (*jsonschema.Schema, error) // by path, compiled on first use
}

// form is what a request of one kind must be.
type form struct {
	goType reflect.Type
	shape  *shape
}

// New makes a Validator. The error means that this program was built wrong: a
// type of package events has a tag that nobody keeps, or a schema file is
// missing and `make generate` was forgotten.
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
	if v.written, err = all.written(); err != nil {
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
			return nil, fmt.Errorf("schema %s is not there; run make generate: %w", path, err)
		}
		v.schemas[path] = sync.OnceValues(func() (*jsonschema.Schema, error) { return compile(path) })
	}
	return v, nil
}

// form gives the form of what callers send, which has no number that JSON
// Schema and Go would bound differently.
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
		return fmt.Errorf("%s has Constraint; it needs Check too, which says the same", sh.name)
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

// DecodeRequest reads the body of a command. Data is as it came: bytes of raw,
// not a copy, so raw must stay as it is. A path in the error is of the body.
func (v *Validator) DecodeRequest(raw []byte) (events.Request, error) {
	if err := checkSyntax(raw); err != nil {
		return events.Request{}, said(err)
	}
	var r events.Request
	err := v.request.shape.read(&scanner{raw: raw}, reflect.ValueOf(&r).Elem())
	return r, said(err)
}

// DecodeCommand reads what a command takes and gives a value of its Go type. No
// bytes are {}. Any JSON in it is bytes of raw, not a copy. A path in the error
// is of raw; Under puts it into what is around.
func (v *Validator) DecodeCommand(name string, raw events.JSON) (any, error) {
	if len(raw) > 0 {
		if err := checkSyntax(raw); err != nil {
			return nil, said(err)
		}
	}
	return v.DecodeTrusted(name, raw)
}

// DecodeTrusted is DecodeCommand for data that came out of a request which
// DecodeRequest took, or out of a thread.commit in it: it does not check again
// that it is JSON, which is most of the work. What it gives for other bytes is
// nonsense, or an error.
func (v *Validator) DecodeTrusted(name string, raw events.JSON) (any, error) {
	f, ok := v.commands[name]
	if !ok {
		return nil, events.Invalid("", "there is no command %.80q", name)
	}
	return f.read(raw)
}

// DecodeQuery reads what a query takes and gives a value of its Go type. No
// bytes are {}.
func (v *Validator) DecodeQuery(name string, raw []byte) (any, error) {
	f, ok := v.queries[name]
	if !ok {
		return nil, events.Invalid("", "there is no query %.80q", name)
	}
	if len(raw) > 0 {
		if err := checkSyntax(raw); err != nil {
			return nil, said(err)
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
		return nil, said(err)
	}
	return target.Interface(), nil
}
