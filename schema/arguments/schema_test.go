package arguments

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
)

const forecast = `{
	"type": "object", "additionalProperties": false, "required": ["city", "unit"],
	"properties": {
		"city": {"type": "string", "minLength": 1},
		"unit": {"enum": ["C", "F"]},
		"days": {"type": "integer", "minimum": 1, "maximum": 14},
		"spots": {"type": "array", "items": {"type": "object", "required": ["lat"], "properties": {"lat": {"type": "number"}}}},
		"when": {"anyOf": [{"type": "string"}, {"type": "null"}]}
	}
}`

// SA-67: the text says where and why in one line, and all that is wrong at once.
func TestCheckSaysWhatToMend(t *testing.T) {
	s, err := Compile(events.JSON(forecast))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ arguments, want string }{
		{`{"city":"Lima","unit":"C","days":3}`, ""},
		{`{"city":"Lima","unit":"C","days":3.0,"spots":[{"lat":-12.04}],"when":null}`, ""},
		{``, "lacks 'city', 'unit'"},
		{`{"city":"Lima"}`, "lacks 'unit'"},
		{`{"city":7,"unit":"K"}`, `/city: expected string, but got number; /unit: value must be one of "C", "F"`},
		{`{"city":"Lima","unit":"C","days":99}`, "/days: must be <= 14 but found 99"},
		{`{"city":"Lima","unit":"C","days":1e999999999}`, "/days: the number is out of range"},
		{`{"city":"Lima","unit":"C","spots":[{"lat":1},{"lon":2}]}`, "/spots/1: lacks 'lat'"},
		{`{"city":"Lima","unit":"C","when":4}`, "/when: fits none of the alternatives: expected string, but got number, or expected null, but got number"},
		{`{"city":"Lima","unit":"C","zeta":1,"alpha":2,"mid":3}`, "does not know 'alpha', 'mid', 'zeta'"},
		{`[]`, "they must be a JSON object"},
		{`{"city":"Lima","city":"Rome"}`, "an object has two members of one name"},
		{`{"city":`, "not JSON at byte 8"},
		{`{} x`, "something follows the JSON value"},
		{strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100), "objects and lists lie more than 64 deep in one another"},
		{`"` + strings.Repeat("x", MaxArguments) + `"`, "they have 1048578 bytes, and 1048576 are allowed"},
	} {
		for range 20 { // the library goes through maps
			err := s.Check(events.JSON(c.arguments))
			if c.want == "" {
				if err != nil {
					t.Errorf("%.80s: %v", c.arguments, err)
				}
				continue
			}
			var wrong *Error
			if !errors.As(err, &wrong) || err.Error() != "the arguments do not fit: "+c.want {
				t.Fatalf("%.80s:\n got %v\nwant %s", c.arguments, err, c.want)
			}
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	var wants, members []string
	for i := range 200 {
		wants = append(wants, fmt.Sprintf(`"p%03d":{"type":"string","pattern":"^%s$"}`, i, strings.Repeat("a", 400)))
		members = append(members, fmt.Sprintf(`"p%03d":"line\nbreak"`, i))
	}
	s, err := Compile(events.JSON(`{"properties":{` + strings.Join(wants, ",") + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	text := s.Check(events.JSON("{" + strings.Join(members, ",") + "}")).Error()
	if len(text) > 2000 || strings.ContainsAny(text, "\n\r") || !strings.HasSuffix(text, "; and 195 more") || !strings.Contains(text, "/p000: ") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestPathsAreJSONPointers(t *testing.T) {
	s, err := Compile(events.JSON(`{"additionalProperties":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var wrong *Error
	if !errors.As(s.Check(events.JSON(`{"a b/c~d%":1}`)), &wrong) || wrong.Problems[0].Path != "/a b~1c~0d%" {
		t.Errorf("%+v", wrong)
	}
}

func TestSchemasThatAreRefused(t *testing.T) {
	ring := `"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}`
	chain := make([]string, 100)
	for i := range chain {
		chain[i] = fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1)
	}
	for _, c := range []struct{ schema, want string }{
		{`{"type":"string"}`, "must take an object"},
		{`true`, "an object"},
		{`{`, "not JSON at byte"},
		{`{"type":"objekt"}`, "must take an object"},
		{`{"properties":{"a":{"type":"strin"}}}`, "/properties/a/type"},
		{`{"properties":{"a":{"minimum":1e99999999}}}`, "out of range"},
		{`{"properties":{"a":{"$ref":"https://example.com/a.json"}}}`, "leads out of the schema"},
		{`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "leads out of the schema"},
		{`{"$schema":"https://example.com/own"}`, "leads out of the schema"},
		{`{"properties":{"a":{"$ref":"#/$defs/none"}}}`, "cannot be compiled"},
		{`{"properties":{"a":{"$dynamicRef":"#x"}}}`, "$dynamicRef"},
		{`{"$defs":{` + ring + `},"properties":{"x":{"$ref":"#/$defs/a"}}}`, "leads back to itself"},
		{`{"$defs":{` + strings.Join(chain, ",") + `,"d100":{}},"properties":{"x":{"$ref":"#/$defs/d0"}}}`, "more than 64 schemas"},
		{strings.Repeat(`{"properties":{"a":`, 60) + `{}` + strings.Repeat(`}}`, 60), "more than 64 deep"},
		{`{"description":"` + strings.Repeat("x", MaxSchema) + `"}`, "at most 262144 are allowed"},
	} {
		_, err := Compile(events.JSON(c.schema))
		var refused *events.Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%.80s:\n got %v\nwant %s", c.schema, err, c.want)
		}
	}
}

// A definition is stricter than a schema that another program wrote: what it says is
// all kept, or it is refused where it lies.
func TestCompileDefinition_KeepsAllOrRefuses(t *testing.T) {
	for _, c := range []struct{ schema, path, want string }{ // each is one that Compile takes
		{`{"type":["object","null"]}`, "/type", "must be object"},
		{`{}`, "/type", "must be object"},
		{`{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}`, "/$schema", "must be https://json-schema.org/draft/2020-12/schema"},
		{`{"type":"object","properties":{"a":{"pattern":"^(?!x)"}}}`, "/properties/a/pattern", "is no JSON Schema"},
		{`{"type":"object","patternProperties":{"(?=x)":{}}}`, "/patternProperties/(?=x)", "is no JSON Schema"},
	} {
		if _, err := Compile(events.JSON(c.schema)); err != nil {
			t.Errorf("%s: %v", c.schema, err)
		}
		_, err := CompileDefinition(events.JSON(c.schema))
		var wrong *SchemaError
		if !errors.As(err, &wrong) || wrong.Path != c.path || !strings.Contains(wrong.Reason, c.want) {
			t.Errorf("%s: %v, want %q at %s", c.schema, err, c.want, c.path)
		}
	}
	s, err := CompileDefinition(events.JSON(`{"type":"object","$schema":"` + Dialect + `","properties":{"n":{"type":"integer","pattern":"^a+$"},"note":{"$ref":"#/$defs/note"}},"$defs":{"note":{"maxLength":3}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		`{"n":12345678901234567890123456789,"note":"abc"}`: "", `{"n":1e2}`: "", `{"n":1.5}`: "/n: expected integer, but got number",
		`{"note":"abcd"}`: "/note: length must be <= 3, but got 4", `{"n":1e999999999}`: "/n: the number is out of range",
	} {
		if err := s.Check(events.JSON(arguments)); want == "" && err != nil || want != "" && (err == nil || err.Error() != "the arguments do not fit: "+want) {
			t.Errorf("%s: %v, want %s", arguments, err, want)
		}
	}
}

// A server written for another language must not lose its tool for a pattern.
func TestPatternsThatGoDoesNotKnow(t *testing.T) {
	s, err := Compile(events.JSON(`{
		"$schema": "http://json-schema.org/draft-07/schema#",
		"properties": {"mail": {"type":"string", "pattern":"^(?!\\.).+@.+$"}, "pattern": {"type":"string", "pattern":"^a+$"}},
		"patternProperties": {"(?=x)": {"type":"number"}, "^n_": {"type":"number"}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(events.JSON(`{"mail":".x","pattern":"aa","n_1":1}`)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{`{"pattern":"b"}`, `{"n_1":"one"}`, `{"mail":1}`} {
		if s.Check(events.JSON(bad)) == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestAValueMayHoldItsOwnKind(t *testing.T) {
	s, err := Compile(events.JSON(`{"$defs":{"node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}}},"allOf":[{"$ref":"#/$defs/node"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(events.JSON(`{"kids":[{"kids":[]},{"kids":[{}]}]}`)); err != nil {
		t.Error(err)
	}
	if err := s.Check(events.JSON(`{"kids":[{"kids":[{"kids":1}]}]}`)); err == nil || !strings.Contains(err.Error(), "/kids/0/kids/0/kids: expected array") {
		t.Error(err)
	}
}

// A few lines of schema that double with each level would take years.
func TestWorkIsBounded(t *testing.T) {
	var doubling []string
	for i := range 50 {
		doubling = append(doubling, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	inPlace := `{"$defs":{` + strings.Join(doubling[:30], ",") + `,"d30":{"type":"number"}},"properties":{"x":{"$ref":"#/$defs/d0"}}}`
	inside := `{"$defs":{"n":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/n"}},"required":["y"]},{"properties":{"x":{"$ref":"#/$defs/n"}},"required":["z"]}]}},"$ref":"#/$defs/n"}`
	for name, c := range map[string]struct{ schema, arguments string }{
		"in place": {inPlace, `{"x":"no number"}`},
		"inside":   {inside, strings.Repeat(`{"x":`, 60) + `{}` + strings.Repeat(`}`, 60)},
		"wide":     {`{"properties":{"x":{"allOf":[` + strings.Repeat(`{"items":{"type":"string"}},`, 500) + `{}]}}}`, `{"x":[` + strings.Repeat(`1,`, 20_000) + `1]}`},
	} {
		s, err := Compile(events.JSON(c.schema))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		start := time.Now()
		if err := s.Check(events.JSON(c.arguments)); err == nil || !strings.Contains(err.Error(), "too much work") {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v", name, time.Since(start))
		if err := s.Check(events.JSON(`{}`)); name != "inside" && err != nil {
			t.Errorf("%s, afterwards: %v", name, err)
		}
	}
}

func TestCheckerKeepsABoundedNumberOfSchemas(t *testing.T) {
	const most = maxCachedBytes / schemaBytes
	c := New()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2 * most {
				schema := fmt.Sprintf(`{"properties":{"n":{"const":%d}}}`, i)
				if err := c.Check(events.JSON(schema), events.JSON(fmt.Sprintf(`{"n":%d}`, i))); err != nil {
					t.Error(g, err)
				}
				if err := c.Check(events.JSON(schema), events.JSON(`{"n":-1}`)); err == nil {
					t.Error(g, "a wrong call was taken")
				}
			}
		})
	}
	all.Wait()
	if n := c.known.Len(); n > most || n < most*9/10 {
		t.Errorf("%d schemas are kept", n)
	}
	big := `{"description":"` + strings.Repeat("x", MaxSchema-100) + `%d"}`
	for i := range 50 {
		if err := c.CheckSchema(fmt.Appendf(nil, big, i)); err != nil {
			t.Fatal(err)
		}
	}
	if c.known.Bytes() > maxCachedBytes {
		t.Errorf("%d bytes are kept", c.known.Bytes())
	}
	same := events.JSON(`{"properties":{}}`)
	one, _ := c.cachedSchema(same)
	two, _ := c.cachedSchema(same)
	if one != two {
		t.Error("the same text was compiled twice")
	}
	if err := c.Check(nil, events.JSON(`{"anything":1}`)); err != nil {
		t.Error(err)
	}
}

// FuzzCheck: whatever the schema and the arguments, an answer of one line in
// bounded time, and the same one again.
func FuzzCheck(f *testing.F) {
	f.Add(forecast, `{"city":7}`)
	f.Add(`{"$defs":{"a":{"$ref":"#"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`, `{"x":{"x":1}}`)
	f.Add(`{"dependencies":{"a":["b"]},"if":{"not":{}},"else":false,"$schema":"http://json-schema.org/draft-04/schema#"}`, `{"a":1}`)
	f.Add(`{"uniqueItems":true,"contains":{},"$id":"x","$anchor":"y","unevaluatedProperties":{"multipleOf":0.1}}`, `{"a":1e-300}`)
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		s, err := Compile(events.JSON(schema))
		if err != nil {
			return
		}
		one, two := s.Check(events.JSON(arguments)), s.Check(events.JSON(arguments))
		if (one == nil) != (two == nil) || one != nil && (one.Error() != two.Error() || strings.ContainsAny(one.Error(), "\n\r")) {
			t.Errorf("%v\n%v", one, two)
		}
	})
}
