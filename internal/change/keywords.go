package change

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bare returns a schema on one line and without its annotations. A $comment holds their
// digest, so that Compare still sees that they changed.
func Bare(raw []byte) ([]byte, error) {
	whole, err := decode(raw)
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	out := bare("", whole, func(word string) { digest.Write(append([]byte(word), 0)) })
	if o, ok := out.(map[string]any); ok {
		o["$comment"] = "words " + hex.EncodeToString(digest.Sum(nil)[:8])
	}
	return encode(out)
}

// decode decodes JSON and keeps numbers as they are written.
func decode(raw []byte) (any, error) {
	if !jsontext.Value(raw).IsValid() { // also refuses repeated names
		return nil, errors.New("not JSON")
	}
	dec := stdjson.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out any
	err := dec.Decode(&out)
	return out, err
}

// encode writes sorted names, and does not escape <.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := stdjson.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// bare returns the value of a keyword, or of "" a whole schema, without its annotations, which
// it passes to tell in a fixed order. Unknown keywords are left as they are.
func bare(key string, value any, tell func(string)) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		switch key {
		case "properties", "$defs":
			for _, name := range union(v, nil) {
				out[name] = bare("", v[name], tell)
			}
		case "", "items", "additionalProperties", "not", "if", "then", "else":
			for _, name := range union(v, nil) {
				if !annotation(name) {
					out[name] = bare(name, v[name], tell)
				} else if word, ok := v[name].(string); ok && tell != nil {
					tell(word)
				}
			}
		default:
			return value
		}
		return out
	case []any:
		if key != "allOf" && key != "anyOf" && key != "oneOf" {
			return value
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = bare("", v[i], tell)
		}
		return out
	}
	return value
}

// annotation reports whether a keyword is for people only.
func annotation(key string) bool {
	return key == "description" || key == "title" || key == "$comment"
}

// understood returns the keywords of a schema if Compare understands all of them.
func understood(schema any, root bool) (map[string]any, bool) {
	if schema == true {
		return map[string]any{}, true
	}
	o, ok := schema.(map[string]any)
	for key, value := range o {
		switch key {
		case "title", "description", "$comment",
			"type", "enum", "const", "properties", "required", "additionalProperties", "items",
			"allOf", "anyOf", "oneOf", "not", "if", "then", "else",
			"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern":
			ok = ok && value != nil // null is not absent
		case "$schema", "$id", "$defs":
			ok = ok && root && value != nil
		default:
			ok = false
		}
	}
	return o, ok
}

func definitions(schema any) map[string]any {
	o, _ := schema.(map[string]any)
	defs, _ := o["$defs"].(map[string]any)
	return defs
}

// reference returns the name of the definition to which a schema refers, if it does only that.
func reference(schema any, defs map[string]any) (string, bool) {
	o, _ := schema.(map[string]any)
	for key := range o {
		if key != "$ref" && !annotation(key) {
			return "", false
		}
	}
	ref, _ := o["$ref"].(string)
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	_, there := defs[name]
	return name, ok && there && !strings.ContainsAny(name, "/~%")
}

// refers reports whether a value may contain a reference.
func refers(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if strings.HasPrefix(name, "$") && strings.HasSuffix(strings.ToLower(name), "ref") || refers(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, refers)
	}
	return false
}

// loosened reports whether a bound or a pattern accepts everything it accepted before, and
// more.
func loosened(key string, before, after any) bool {
	if before == nil || after == nil {
		return after == nil
	}
	one, ok1 := integer(before)
	two, ok2 := integer(after)
	if !ok1 || !ok2 {
		return false
	}
	return strings.HasPrefix(key, "min") && two < one || strings.HasPrefix(key, "max") && two > one
}

func integer(v any) (int64, bool) {
	number, _ := v.(stdjson.Number)
	n, err := strconv.ParseInt(string(number), 10, 64)
	return n, err == nil
}

func orAny(schema any) any {
	if schema == nil {
		return true
	}
	return schema
}

// elements returns a list, or a list of the one string; nil if the value is neither.
func elements(v any) []any {
	if s, ok := v.(string); ok {
		return []any{s}
	}
	list, _ := v.([]any)
	return list
}

// without returns the elements of list that other lacks.
func without(list, other []any) []any {
	return slices.DeleteFunc(slices.Clone(list), func(v any) bool {
		return slices.ContainsFunc(other, func(o any) bool { return reflect.DeepEqual(o, v) })
	})
}

// union returns the names of both, sorted.
func union(one, two map[string]any) []string {
	all := maps.Clone(one)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, two)
	return slices.Sorted(maps.Keys(all))
}

// short returns a value as JSON, shortened.
func short(v any) string {
	if v == nil {
		return "none"
	}
	if b, err := encode(v); err == nil && len(b) <= 80 {
		return string(b)
	}
	return "another"
}
