package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"github.com/skein-threads/skein/dev/repository"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// EK-185: a change of the contract changes its documents, or this fails.
func TestGeneratedFilesAreFresh(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, repository.Root(), true); err != nil {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

func TestCheckNamesWhatIsStale(t *testing.T) {
	root := t.TempDir()
	var out bytes.Buffer
	all, err := outputs(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := bring(&out, root, all, false); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := bring(&out, root, all, true); err != nil || out.Len() > 0 {
		t.Errorf("just written, and stale: %v %s", err, out.String())
	}
	for path, body := range map[string]string{"docs/events.md": "old", "schema/files/events/thread.renamed.json": "{}"} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(root, "schema/files/commit.json")); err != nil {
		t.Fatal(err)
	}
	const want = "schema/files/commit.json\ndocs/events.md\nschema/files/events/thread.renamed.json\n"
	if err := bring(&out, root, all, true); err == nil || out.String() != want {
		t.Errorf("%v: %s", err, out.String())
	}
	out.Reset()
	if err := bring(&out, root, all, false); err != nil || out.String() != want {
		t.Errorf("%v: %s", err, out.String())
	}
	out.Reset()
	if err := bring(&out, root, all, true); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
}

// The schemas accept the example of every row.
func TestExamplesAreRight(t *testing.T) {
	v, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range events.Commands() {
		r, err := c.ExampleRequest()
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := v.DecodeRequest(body)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if _, err := v.DecodeCommand(c.Name, again.Data); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	for _, q := range events.Queries() {
		body, err := json.Marshal(q.Example)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.DecodeQuery(q.Name, body); err != nil {
			t.Errorf("%s: %v", q.Name, err)
		}
	}
	for _, r := range events.Catalog() {
		e := r.ExampleEvent()
		if err := v.Event(&e); err != nil {
			t.Errorf("%s: %v", r.Type, err)
		}
	}
}

// Whatever the AsyncAPI document refers to is in it, so that it resolves wherever it is copied to.
func TestReferencesOfAsyncAPI(t *testing.T) {
	body, err := asyncAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := yaml.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	references := 0
	var check func(path string, is any)
	check = func(path string, is any) {
		switch is := is.(type) {
		case map[string]any:
			if to, ok := is["$ref"].(string); ok {
				if references++; !resolves(doc, to) {
					t.Errorf("%s refers to %s, which is not in the document", path, to)
				}
			}
			for _, keyword := range []string{"$id", "$dynamicRef"} {
				if _, ok := is[keyword].(string); ok && !strings.HasSuffix(path, "/properties") {
					t.Errorf("%s has %s, by which references would be resolved", path, keyword)
				}
			}
			for key, value := range is {
				check(path+"/"+key, value)
			}
		case []any:
			for i, value := range is {
				check(path+"/"+strconv.Itoa(i), value)
			}
		}
	}
	check("#", doc)
	if references < 1000 {
		t.Errorf("only %d references were found", references)
	}
	files, err := schema.Files()
	if err != nil {
		t.Fatal(err)
	}
	embedded := doc.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	for _, f := range files {
		path := strings.TrimSuffix(f.Path, ".json")
		text := strings.ReplaceAll(string(f.Body), `"#/$defs/`, `"#/components/schemas/`+fileSchema(path)+`/schema/$defs/`)
		var want map[string]any
		if err := yaml.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		delete(want, "$id")
		delete(want, "$schema")
		if is, ok := embedded[fileSchema(path)].(map[string]any); ok && !reflect.DeepEqual(is["schema"], any(want)) {
			t.Errorf("%s is not as in its file", path)
		}
	}
	for _, r := range events.Catalog() {
		if !strings.Contains(string(body), "event-"+string(r.Type)+":") {
			t.Errorf("%s is missing", r.Type)
		}
	}
}

// resolves reports whether a reference is to a part of a document.
func resolves(doc any, reference string) bool {
	pointer, inside := strings.CutPrefix(reference, "#/")
	if !inside {
		return false
	}
	for key := range strings.SplitSeq(pointer, "/") {
		members, _ := doc.(map[string]any)
		value, ok := members[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
		if !ok {
			return false
		}
		doc = value
	}
	return true
}

// The order of members is kept, JSON stays as it is, and a text that could be taken for
// something else is quoted.
func TestObject_MarshalYAML(t *testing.T) {
	got, err := yaml.Marshal(object{
		{"plain", "word"}, {"true", "yes"}, {"text", "a: b"}, {"n", 3}, {"flag", true},
		{"empty", object{}}, {"items", list("a", "1")}, {"inside", list(object{{"b", list(1)}, {"a", object{{"c", "d"}}}})}, {"json", events.JSON(`{"a":[1,"2"]}`)},
	})
	const want = `plain: word
"true": "yes"
text: 'a: b'
n: 3
flag: true
empty: {}
items:
    - a
    - "1"
inside:
    - b:
        - 1
      a:
        c: d
json: {"a": [1, "2"]}
`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}
