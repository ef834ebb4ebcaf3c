package schema

import (
	"bytes"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
		"items of a text": struct {
			A string `json:"a" schema:"minItems=1"`
		}{},
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
			A *jsontext.Value `json:"a"`
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
	for name, value := range map[string]any{
		"int64": struct {
			A int64 `json:"a"`
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

type loose struct {
	A string `json:"a"`
}

func (loose) Check() error { return nil }

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
	if err != nil || len(described) != 33 {
		t.Errorf("%d fields are described: %v", len(described), err)
	}
}
