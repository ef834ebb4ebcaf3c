package schema

import (
	"bytes"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Every event, command, query and document has a schema file; each compiles and
// says what the Go types say now. (EK-185)
func TestEveryFileIsFreshAndCompiles(t *testing.T) {
	v := newValidator(t)
	want, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	if rows := len(events.Catalog()) + len(events.Commands()) + len(events.Queries()) + len(events.DefinitionRows()) + len(Resources()) + 2; len(want) != rows {
		t.Errorf("%d files of %d rows", len(want), rows)
	}
	ids := map[string]string{}
	for _, f := range want {
		got, err := files.ReadFile("files/" + f.Path)
		if err != nil || !bytes.Equal(got, f.Body) {
			t.Errorf("%s is stale; run make generate (%v)", f.Path, err)
			continue
		}
		if _, err := v.schemas[f.Path](); err != nil {
			t.Errorf("%s: %v", f.Path, err)
		}
		var head struct {
			Schema string `json:"$schema"`
			ID     string `json:"$id"`
			Doc    string `json:"description"`
		}
		if err := json.Unmarshal(f.Body, &head); err != nil || head.Schema != dialect || head.Doc == "" {
			t.Errorf("%s begins with %+v (%v)", f.Path, head, err)
		}
		if other, twice := ids[head.ID]; twice || !strings.HasPrefix(head.ID, "urn:skein:") {
			t.Errorf("%s has the id %s, as %s", f.Path, head.ID, other)
		}
		ids[head.ID] = f.Path
	}
	for _, r := range events.Catalog() {
		if ids[r.Schema()] != eventPath(r.Type) {
			t.Errorf("the dataschema of %s is the id of no file", r.Type)
		}
	}
	err = fs.WalkDir(files, "files", func(path string, d fs.DirEntry, err error) error {
		if path = strings.TrimPrefix(path, "files/"); !d.IsDir() && v.schemas[path] == nil {
			t.Errorf("%s is of nothing that there is; run make generate", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The documentation explains every form that a tag names.
func TestEveryPatternIsExplained(t *testing.T) {
	all := shapes{}
	for _, c := range events.Commands() {
		if _, err := all.of(reflect.TypeOf(c.New())); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range events.Catalog() {
		if _, err := all.of(reflect.TypeOf(r.New())); err != nil {
			t.Fatal(err)
		}
	}
	for _, sh := range all {
		for _, f := range sh.fields {
			if f.pattern != "" && !slices.Contains(patternNames(), f.pattern) {
				t.Errorf("%s.%s: the form %s is not in patternNames", sh.name, f.name, f.pattern)
			}
		}
	}
	for _, p := range Patterns() {
		if strings.HasPrefix(p.Doc, "must") {
			t.Errorf("%s has no words", p.Name)
		}
	}
}

// A tag that nobody keeps is found when the program starts, not in production.
func TestTagsThatCannotBeKept(t *testing.T) {
	type base struct {
		A string `json:"a"`
	}
	for name, value := range map[string]any{
		"unknown word": struct {
			A string `json:"a" schema:"requierd"`
		}{},
		"unknown pattern": struct {
			A string `json:"a" schema:"pattern=phone"`
		}{},
		"bad number": struct {
			A string `json:"a" schema:"maxLength=x"`
		}{},
		"below nothing": struct {
			A string `json:"a" schema:"minLength=-1"`
		}{},
		"length of a number": struct {
			A int64 `json:"a" schema:"maxLength=1"`
		}{},
		"bound of a text": struct {
			A string `json:"a" schema:"minimum=1"`
		}{},
		"least length of a number": struct {
			A float64 `json:"a" schema:"minLength=1"`
		}{},
		"pattern of a flag": struct {
			A bool `json:"a" schema:"pattern=id"`
		}{},
		"upper bound of a list": struct {
			A []string `json:"a" schema:"maximum=1"`
		}{},
		"items of a text": struct {
			A string `json:"a" schema:"minItems=1"`
		}{},
		"most items of a text": struct {
			A string `json:"a" schema:"maxItems=1"`
		}{},
		"65 fields": reflect.Zero(structOf(65)).Interface(),
		"object of a text": struct {
			A string `json:"a" schema:"object"`
		}{},
		"nullable, optional": struct {
			A *string `json:"a" schema:"nullable"`
		}{},
		"nullable, no pointer": struct {
			A string `json:"a" schema:"required,nullable"`
		}{},
		"no name": struct{ A string }{},
		"one twice": struct {
			A string `json:"a"`
			base
		}{},
		"small float": struct {
			A float32 `json:"a"`
		}{},
		"pattern of the items of a text": struct {
			A string `json:"a" schema:"items=name"`
		}{},
		"map": struct {
			A map[string]string `json:"a"`
		}{},
		"pointer to any": struct {
			A *events.JSON `json:"a"`
		}{},
		"list of pointers": struct {
			A []*string `json:"a"`
		}{},
		"no struct": 1,
	} {
		if _, err := (shapes{}).form(value); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := (shapes{}).form(struct {
		A int64 `json:"a" schema:"required,minimum=-9007199254740991,maximum=9007199254740991"`
	}{}); err != nil {
		t.Errorf("an int64 within 2^53-1: %v", err)
	}
	for name, value := range map[string]any{
		"int64": struct {
			A int64 `json:"a"`
		}{},
		"int64 without a maximum": struct {
			A int64 `json:"a" schema:"required,minimum=0"`
		}{},
		"int64 without a minimum": struct {
			A int64 `json:"a" schema:"required,maximum=9"`
		}{},
		"int64 too low": struct {
			A int64 `json:"a" schema:"required,minimum=-9007199254740992,maximum=9"`
		}{},
		"int64 too high": struct {
			A int64 `json:"a" schema:"required,minimum=0,maximum=9007199254740992"`
		}{},
		"int64 after a struct": struct {
			A struct {
				B string `json:"b"`
			} `json:"a"`
			C int64 `json:"c"`
		}{},
		"int64 inside": struct {
			A []struct {
				B uint64 `json:"b"`
			} `json:"a"`
		}{},
		"Constraint without Check": envelope{},
		"Check without Constraint": loose{},
	} {
		if _, err := (shapes{}).form(value); err == nil {
			t.Errorf("%s: taken as what callers send", name)
		}
	}
}

// structOf returns a struct type with n fields.
func structOf(n int) reflect.Type {
	var fields []reflect.StructField
	for i := range n {
		name := fmt.Sprintf("A%d", i)
		fields = append(fields, reflect.StructField{Name: name, Type: reflect.TypeFor[string](), Tag: reflect.StructTag(fmt.Sprintf(`json:"%s" schema:"required"`, name))})
	}
	return reflect.StructOf(fields)
}

// What tags say is kept where the type can keep it.
func TestTagsThatAreKept(t *testing.T) {
	type Base struct {
		B string `json:"b"`
	}
	type Named struct {
		C string `json:"c"`
	}
	for name, c := range map[string]struct {
		value any
		want  string // the names of its fields
	}{
		"bounds of a number": {struct {
			A float64 `json:"a" schema:"minimum=1,maximum=2"`
		}{}, "a"},
		"lengths of a text": {struct {
			A string `json:"a" schema:"minLength=0,maxLength=2"`
		}{}, "a"},
		"lengths of a list": {struct {
			A []string `json:"a" schema:"minItems=0,maxItems=2"`
		}{}, "a"},
		"an object": {struct {
			A events.JSON `json:"a" schema:"object"`
		}{}, "a"},
		"nullable": {struct {
			A *string `json:"a" schema:"required,nullable"`
		}{}, "a"},
		"a field that is hidden": {struct {
			A, b string `json:"-"`
			C    string `json:"c"`
		}{}, "c"},
		"one that is embedded": {struct {
			Base
			Named `json:"n"`
			D     string `json:"d"`
		}{}, "b, n, d"},
		"64 fields": {reflect.Zero(structOf(64)).Interface(), ""},
	} {
		sh, err := shapes{}.of(reflect.TypeOf(c.value))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if c.want != "" && sh.names() != c.want {
			t.Errorf("%s: %s, not %s", name, sh.names(), c.want)
		} else if c.want == "" && sh.required != 1<<64-1 {
			t.Errorf("%s: %x are required", name, sh.required)
		}
	}
}

// The words of each rule, as refusals and the documentation have them.
func TestWords(t *testing.T) {
	n := func(i int) *int { return &i }
	m := func(i int64) *int64 { return &i }
	for want, r := range map[string]rule{
		"must be one of a, b":                     {kind: text, enum: []string{"a", "b"}},
		"must be a UUID":                          {kind: text, pattern: events.PatternUUID},
		"must be a text":                          {kind: text},
		"must be a text of 2 to 3 characters":     {kind: text, minLength: n(2), maxLength: n(3)},
		"must be a text of at most 3 characters":  {kind: text, maxLength: n(3)},
		"must be a text of at least 1 character":  {kind: text, minLength: n(1)},
		"must be a text of at least 2 characters": {kind: text, minLength: n(2)},
		"must be a list of at least 1 element":    {kind: list, minItems: n(1)},
		"must be a list of 0 to 9 elements":       {kind: list, minItems: n(0), maxItems: n(9)},
		"must be a number":                        {kind: real},
		"must be a number, at most 2":             {kind: real, maximum: m(2)},
		"must be a number, at least -1":           {kind: real, minimum: m(-1)},
		"must be a whole number from 1 to 2":      {kind: whole, minimum: m(1), maximum: m(2)},
		"must be a whole number":                  {kind: wide},
		"may be any JSON":                         {kind: anything},
		"must be an object":                       {kind: anything, object: true},
		"must be true or false":                   {kind: flag},
	} {
		if got := r.words(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if got := describePattern("other"); got != "must match the pattern other" {
		t.Error(got)
	}
	for _, name := range patternNames() {
		if got := describePattern(name); !strings.HasPrefix(got, "must be ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

type loose struct {
	A string `json:"a"`
}

func (loose) Check() error { return nil }

// A number has the bounds of what JSON readers keep exactly, unless its tag has closer ones.
func TestSchemaOfNumbers(t *testing.T) {
	for tag, want := range map[string]string{
		"": `"minimum":-9007199254740991,"maximum":9007199254740991`, "minimum=1": `"minimum":1,"maximum":9007199254740991`,
		"maximum=1":                 `"minimum":-9007199254740991,"maximum":1`,
		"minimum=-9007199254740993": `"minimum":-9007199254740991,"maximum":9007199254740991`,
		"maximum=9007199254740993":  `"minimum":-9007199254740991,"maximum":9007199254740991`,
		"minimum=-2,maximum=7":      `"minimum":-2,"maximum":7`,
	} {
		sh, err := shapes{}.of(reflect.StructOf([]reflect.StructField{{
			Name: "N", Type: reflect.TypeFor[*int64](), Tag: reflect.StructTag(`json:"n" schema:"` + tag + `"`),
		}}))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(document("urn:x", "d", sh, true)); !strings.Contains(got, want) {
			t.Errorf("%s: %s, not %s", tag, got, want)
		}
	}
}

// A document says nothing of a shape twice and stands alone.
func TestSchemaOfAStructThatHoldsItself(t *testing.T) {
	sh, err := shapes{}.of(reflect.TypeFor[events.Result]())
	if err != nil {
		t.Fatal(err)
	}
	got := string(document("urn:x", "d", sh, true))
	if strings.Count(got, `"#/$defs/Result"`) != 2 || strings.Count(got, `"contextId"`) != 2 {
		t.Error(got)
	}
	described, err := Describe(events.Result{})
	if err != nil || len(described) != 41 {
		t.Errorf("%d fields are described: %v", len(described), err)
	}
}
