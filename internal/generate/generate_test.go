package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// EK-185: a change of the contract changes its documents, or this fails.
func TestGeneratedFilesAreFresh(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, "../..", true); err != nil {
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

// Whatever the AsyncAPI document refers to is there.
func TestReferencesOfAsyncAPI(t *testing.T) {
	body, err := asyncAPI()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(body), "\n") {
		_, path, ok := strings.Cut(line, `"$ref": "../`)
		if !ok {
			continue
		}
		if _, err := os.Stat(filepath.Join("../..", strings.TrimSuffix(path, `"`))); err != nil {
			t.Error(err)
		}
	}
	for _, r := range events.Catalog() {
		if !strings.Contains(string(body), "event-"+string(r.Type)+":") {
			t.Errorf("%s is missing", r.Type)
		}
	}
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
