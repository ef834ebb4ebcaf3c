package arguments

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/skein-threads/skein/events"
)

// Of derives the JSON Schema of a struct of arguments:
//
//   - a field is required, unless it is omitempty, omitzero or a pointer;
//   - `doc:"..."` describes it;
//   - `enum:"a,b"`, or a method Enum() []string of its type, lists what a text,
//     or each text of a list, may be.
//
// Structs, lists, maps with text keys, any, time.Time, []byte (base64) and
// json.RawMessage or jsontext.Value may be in it. The error names the field that cannot be kept.
func Of(t reflect.Type) (events.JSON, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is not a struct; use one", t)
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: ownForms()})
	if err != nil {
		return nil, err
	}
	if err := refine(t, s, t.String()); err != nil {
		return nil, err
	}
	raw, err := stdjson.Marshal(s)
	return raw, err
}

// ownForms returns the types with a JSON form that does not follow from their Go kind.
func ownForms() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[events.JSON]():    {},
		reflect.TypeFor[jsontext.Value](): {}, // the same type as json.RawMessage if Go is built with encoding/json/v2
		reflect.TypeFor[[]byte]():         {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[time.Time]():      {Type: "string", Format: "date-time"},
	}
}

// refine makes a derived schema match what Read accepts: it applies the tags, makes pointers
// optional, and refuses types that the schema and Read would treat differently. where is the
// field, for errors.
func refine(t reflect.Type, s *jsonschema.Schema, where string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, ok := ownForms()[t]; ok {
		return nil
	}
	if form := ownForm(t); form != "" {
		return fmt.Errorf("%s is a %v, which has %s; use another type", where, t, form)
	}
	switch t.Kind() {
	case reflect.Struct:
		return refineFields(t, s, where)
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice { // the derived schema also allows null, Read does not
			s.Type, s.Types = "array", nil
		}
		return refine(t.Elem(), s.Items, where+"[]")
	case reflect.Map:
		if t.Key().Kind() != reflect.String || ownForm(t.Key()) != "" {
			return fmt.Errorf("%s is a map whose keys are not texts", where)
		}
		return refine(t.Elem(), s.AdditionalProperties, where+"{}")
	case reflect.String:
		if values := enumOf(t); values != nil {
			return enumerate(s, values, where)
		}
	}
	return nil
}

func refineFields(t reflect.Type, s *jsonschema.Schema, where string) error {
	required := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		at := where + "." + f.Name
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		_, taken := required[name]
		switch {
		case name == "-" && options == "" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && options == "" && f.Type.Kind() == reflect.Struct:
			continue // its fields follow one by one
		case f.Anonymous:
			return fmt.Errorf("%s is embedded; only a struct without a name in JSON may be", at)
		case name == "":
			return fmt.Errorf("%s has no name in JSON; give it a tag json", at)
		case taken || s.Properties[name] == nil:
			return fmt.Errorf("%s: the name %s is not its own", at, name)
		}
		property := s.Properties[name]
		needed := f.Type.Kind() != reflect.Pointer
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "":
			case "omitempty", "omitzero":
				needed = false
			default:
				return fmt.Errorf("%s has the option %s, which is not known here", at, option)
			}
		}
		if err := refine(f.Type, property, at); err != nil {
			return err
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			property.Description = doc
		}
		if values := f.Tag.Get("enum"); values != "" {
			if err := enumerate(property, strings.Split(values, ","), at); err != nil {
				return err
			}
		}
		required[name] = needed
	}
	s.Required = nil
	for _, name := range s.PropertyOrder {
		if required[name] {
			s.Required = append(s.Required, name)
		}
	}
	return nil
}

// enumerate restricts a text, or each text of a list, to the given values.
func enumerate(s *jsonschema.Schema, values []string, where string) error {
	switch {
	case s.Items != nil:
		return enumerate(s.Items, values, where)
	case s.Type != "string" && !(len(s.Types) == 2 && s.Types[1] == "string"):
		return fmt.Errorf("%s has an enum and is not a text", where)
	}
	s.Enum = nil
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
	if s.Type == "" { // a pointer
		s.Enum = append(s.Enum, nil)
	}
	return nil
}

// enumOf returns the values of a text type with a method Enum.
func enumOf(t reflect.Type) []string {
	if e, ok := reflect.Zero(t).Interface().(interface{ Enum() []string }); ok {
		return e.Enum()
	}
	return nil
}

// ownForm returns why the JSON of a type does not follow from its kind, "" if it does.
func ownForm(t reflect.Type) string {
	p := reflect.PointerTo(t)
	for _, custom := range []reflect.Type{
		reflect.TypeFor[json.UnmarshalerFrom](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[interface{ UnmarshalText([]byte) error }](),
	} {
		if t.Implements(custom) || p.Implements(custom) {
			return "a JSON form of its own"
		}
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "no form in JSON; take a number and say its unit"
	case t.Kind() == reflect.Interface && t.NumMethod() > 0:
		return "methods, so that nothing can be read into it"
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() == reflect.Uint8:
		return "a JSON form of its own"
	}
	return ""
}

// Read reads arguments into a Go value, strictly. An integer may be written as JSON Schema allows,
// as 1.0 or 1e2. The error is an *Error.
func Read(arguments events.JSON, into any) error {
	if len(arguments) == 0 {
		arguments = events.JSON("{}")
	}
	err := json.Unmarshal(arguments, into, json.RejectUnknownMembers(true), integers())
	var misfit *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &misfit): // valid for the schema, but it does not fit into the Go type, such as 1e30 into an int64
		return &Error{Problems: []Problem{{Path: oneLine(string(misfit.JSONPointer)), Reason: oneLine(fmt.Sprintf("does not fit into %v", misfit.GoType))}}}
	}
	return argumentsError("they cannot be read")
}

// integers decodes values of Go's integer types. Go's own decoders accept no fraction and no
// exponent, whatever the value.
func integers() json.Options {
	return json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v any) error {
		into := reflect.ValueOf(v).Elem()
		if d.PeekKind() != '0' || !into.CanInt() && !into.CanUint() {
			return errors.ErrUnsupported // the decoder's own code handles it
		}
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		if bytes.ContainsAny(raw, ".eE") {
			if n, ok := events.ParseInt(events.JSON(raw)); ok {
				raw = strconv.AppendInt(nil, n, 10)
			}
		}
		return json.Unmarshal(raw, v)
	}))
}
