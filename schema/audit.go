package schema

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/events"
)

// compile compiles the schema at path. No schema refers to another, so nothing is fetched.
func compile(path string) (*jsonschema.Schema, error) {
	body, err := files.ReadFile("files/" + path)
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	compiler.LoadURL = func(url string) (io.ReadCloser, error) { return nil, fmt.Errorf("%s is not built in", url) }
	id := strings.Trim(string(member(body, "$id")), `"`)
	if err := compiler.AddResource(id, bytes.NewReader(body)); err != nil {
		return nil, fmt.Errorf("schema %s: %w", path, err)
	}
	return compiler.Compile(id)
}

// Event validates an event's data and its envelope against their schemas. Data of an old
// version is validated after it was upcast. Data of an unknown type or version has no schema,
// and only the envelope is validated. The error is a *MismatchError.
func (v *Validator) Event(e *events.Event) error {
	if v.fastValid(e) {
		return nil
	}
	return v.event(e)
}

// event validates an event against the JSON Schemas.
func (v *Validator) event(e *events.Event) error {
	raw := e.Raw()
	if raw == nil {
		var err error
		if raw, err = e.Append(nil); err != nil {
			return &MismatchError{Schema: envelopePath, Reason: err.Error()}
		}
	}
	whole, err := parse(raw)
	if err != nil {
		return &MismatchError{Schema: envelopePath, Reason: err.Error()}
	}
	if err := v.checkInstance(envelopePath, whole); err != nil {
		return err
	}
	row, known := events.Lookup(e.Type)
	if _, unknown := e.Data.(events.Unknown); unknown || !known {
		return nil
	}
	path := eventPath(e.Type)
	data := whole.(map[string]any)["data"] // the envelope's schema requires it
	if e.Schema() != row.Schema() {
		upcast, err := json.Marshal(e.Data)
		if err == nil {
			data, err = parse(upcast)
		}
		if err != nil {
			return &MismatchError{Schema: path, Path: "/data", Reason: err.Error()}
		}
	}
	return prefixMismatch("/data", v.checkInstance(path, data))
}

// Envelope validates one event, as JSON, against the schema of the CloudEvents envelope. The
// error is a *MismatchError.
func (v *Validator) Envelope(raw []byte) error { return v.document(envelopePath, raw) }

// Resource validates a document, as JSON, against its schema; Resources lists the names. The
// error is a *MismatchError, or says that there is no such resource.
func (v *Validator) Resource(name string, raw []byte) error {
	return v.document(resourcePath(name), raw)
}

func (v *Validator) document(path string, raw []byte) error {
	instance, err := parse(raw)
	if err != nil {
		return &MismatchError{Schema: path, Reason: err.Error()}
	}
	return v.checkInstance(path, instance)
}

// checkInstance validates parsed JSON against the schema at path.
func (v *Validator) checkInstance(path string, instance any) error {
	find, ok := v.schemas[path]
	if !ok {
		return fmt.Errorf("there is no schema %s", path)
	}
	compiled, err := find()
	if err != nil {
		return err
	}
	err = compiled.Validate(instance)
	var mismatch *jsonschema.ValidationError
	if !errors.As(err, &mismatch) {
		return err
	}
	leaf := firstLeaf(mismatch)
	return &MismatchError{Schema: path, Path: unescape(leaf.InstanceLocation), Reason: leaf.Message}
}

func prefixMismatch(prefix string, err error) error {
	var mismatch *MismatchError
	if errors.As(err, &mismatch) {
		mismatch.Path = prefix + mismatch.Path
	}
	return err
}

// firstLeaf picks one of the causes, always the same one: the library visits fields in random
// order.
func firstLeaf(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	leaves := leavesOf(e)
	return slices.MinFunc(leaves, func(a, b *jsonschema.ValidationError) int {
		return cmp.Or(
			strings.Compare(a.InstanceLocation, b.InstanceLocation),
			strings.Compare(a.KeywordLocation, b.KeywordLocation),
		)
	})
}

func leavesOf(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		out = append(out, leavesOf(cause)...)
	}
	return out
}

// unescape turns a location of the library, a pointer in a URL, into a JSON pointer.
func unescape(location string) string {
	if plain, err := url.PathUnescape(location); err == nil {
		return plain
	}
	return location
}

// member returns the bytes of one member of a JSON object, nil if there is none.
func member(raw []byte, name string) events.JSON {
	s := scanner{raw: raw}
	if s.kind() != '{' {
		return nil
	}
	for s.begin(); s.next('}'); {
		found := string(s.readString(nil)) == name
		if value := s.value(); found {
			return value
		}
	}
	return nil
}
