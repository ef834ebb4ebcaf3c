package schema

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema/arguments"
)

// dialect is the JSON Schema that the documents are written in.
const dialect = arguments.Dialect

// writer writes a shape as a JSON Schema. Its order follows the Go struct, so that the same
// type always yields the same bytes.
type writer struct {
	open bool // for documents that Skein writes: unknown fields are allowed, and null and "" do not mean absent
	defs []*shape
}

// object is a JSON object being written.
type object struct{ b []byte }

func (o *object) put(name string, value any) {
	raw, err := json.Marshal(value, json.Deterministic(true))
	if err != nil { // cannot fail: only strings, numbers, lists of them and JSON made here are written
		panic(fmt.Sprintf("schema: %s: %v", name, err))
	}
	if len(o.b) > 0 {
		o.b = append(o.b, ',')
	}
	o.b = strconv.AppendQuote(o.b, name) // names without escapes only
	o.b = append(o.b, ':')
	o.b = append(o.b, raw...)
}

func (o *object) raw() events.JSON { return events.JSON("{" + string(o.b) + "}") }

// document returns the whole JSON Schema of a shape.
func document(id, doc string, sh *shape, open bool) events.JSON {
	w := &writer{open: open}
	var o object
	o.put("$schema", dialect)
	o.put("$id", id)
	o.put("description", doc)
	w.body(&o, sh)
	if len(w.defs) > 0 {
		var defs object
		for i := 0; i < len(w.defs); i++ { // writing one definition may add others
			var def object
			w.body(&def, w.defs[i])
			defs.put(w.defs[i].name, def.raw())
		}
		o.put("$defs", defs.raw())
	}
	return o.raw()
}

// body writes the keywords of a struct.
func (w *writer) body(o *object, sh *shape) {
	o.put("type", "object")
	o.put("additionalProperties", w.open)
	var properties object
	required := []string{}
	for i := range sh.fields {
		f := &sh.fields[i]
		if f.required {
			required = append(required, f.name)
		}
		properties.put(f.name, w.field(f))
	}
	o.put("properties", properties.raw())
	if len(required) > 0 {
		o.put("required", required)
	}
	if sh.constraint != "" {
		o.put("allOf", []events.JSON{events.JSON(sh.constraint)})
	}
}

// field returns the schema of a member, which also accepts the values that mean absent.
func (w *writer) field(f *field) events.JSON {
	var o object
	if f.doc != "" {
		o.put("description", f.doc)
	}
	null := f.nullable || !f.required && !w.open
	empty := f.kind == text && f.optionalText() && !w.open
	w.value(&o, &f.rule, null, empty)
	return o.raw()
}

// value writes the schema of a value. If null or empty is set, null or "" are valid, too.
func (w *writer) value(o *object, r *rule, null, empty bool) {
	switch r.kind {
	case text:
		w.text(o, r, null, empty)
	case flag:
		o.put("type", orNull("boolean", null))
	case whole:
		o.put("type", orNull("integer", null))
		o.put("minimum", max(valueOr(r.minimum, -maxInt), -maxInt))
		o.put("maximum", min(valueOr(r.maximum, maxInt), maxInt))
	case wide:
		o.put("type", orNull("integer", null))
		if r.minimum != nil {
			o.put("minimum", *r.minimum)
		}
		if r.maximum != nil {
			o.put("maximum", *r.maximum)
		}
	case real:
		o.put("type", orNull("number", null))
		if r.minimum != nil {
			o.put("minimum", *r.minimum)
		}
		if r.maximum != nil {
			o.put("maximum", *r.maximum)
		}
	case anything:
		if r.object {
			o.put("type", orNull("object", null))
		}
	case record:
		ref := w.ref(r.shape)
		if null {
			o.put("anyOf", []events.JSON{events.JSON(`{"$ref":"` + ref + `"}`), events.JSON(`{"type":"null"}`)})
		} else {
			o.put("$ref", ref)
		}
	case list:
		o.put("type", orNull("array", null))
		var items object
		w.value(&items, r.items, false, false)
		o.put("items", items.raw())
		if r.minItems != nil {
			o.put("minItems", *r.minItems)
		}
		if r.maxItems != nil {
			o.put("maxItems", *r.maxItems)
		}
	}
}

// maxInt bounds the integers that events.ParseInt accepts.
const maxInt = 1<<53 - 1

func (w *writer) text(o *object, r *rule, null, empty bool) {
	if r.enum != nil {
		values := []any{}
		for _, s := range r.enum {
			values = append(values, s)
		}
		if empty {
			values = append(values, "")
		}
		if null {
			values = append(values, nil)
		}
		o.put("enum", values)
		return
	}
	if empty && (r.pattern != "" || r.minLength != nil) {
		var full object
		w.text(&full, r, false, false)
		o.put("anyOf", []events.JSON{full.raw(), events.JSON(`{"enum":["",null]}`)})
		return
	}
	o.put("type", orNull("string", null))
	if r.minLength != nil {
		o.put("minLength", *r.minLength)
	}
	if r.maxLength != nil {
		o.put("maxLength", *r.maxLength)
	}
	if r.pattern != "" {
		o.put("pattern", expression(r.pattern))
	}
}

// ref returns a reference to a struct's definition in $defs, which is written once.
func (w *writer) ref(sh *shape) string {
	known := false
	for _, def := range w.defs {
		known = known || def == sh
	}
	if !known {
		w.defs = append(w.defs, sh)
	}
	return "#/$defs/" + sh.name
}

func orNull(name string, null bool) any {
	if null {
		return []string{name, "null"}
	}
	return name
}

func valueOr(n *int64, other int64) int64 {
	if n == nil {
		return other
	}
	return *n
}
