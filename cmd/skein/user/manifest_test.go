package user

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

const talk = `# what answers
kind: model
name: fast
model: gpt-5-mini
params:
  seed: 9007199254740993
  top_p: 1.0
  big: 123456789012345678901234567890
  e: 1e3
  hex: 0x1F
  half: .5
  neg: -7
  no: no
  on: "on"
  day: 2026-02-20
  none: null
  yes: true
---
kind: prompt
name: help
text: |
  You help.
    Two words: {{customer}}
variables: [customer]
---
# nothing here
---
- kind: tool
  name: find_order
  description: >-
    Finds
    an order.
  type: nats
  parameters: &schema
    type: object
    properties: {order: {type: integer}}
- kind: tool
  definition: {name: other, description: !!str 42, type: go, parameters: *schema}
`

// What is written comes back: numbers to the digit, texts as YAML 1.2 has them.
func TestYAML(t *testing.T) {
	entries, err := readManifest("talk.yaml", []byte(talk))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"model":"gpt-5-mini","name":"fast","params":{"seed":9007199254740993,"top_p":1.0,"big":123456789012345678901234567890,"e":1e3,"hex":31,"half":0.5,"neg":-7,"no":"no","on":"on","day":"2026-02-20","none":null,"yes":true}}`,
		`{"name":"help","text":"You help.\n  Two words: {{customer}}\n","variables":["customer"]}`,
		`{"description":"Finds an order.","name":"find_order","parameters":{"type":"object","properties":{"order":{"type":"integer"}}},"type":"nats"}`,
		`{"name":"other","description":"42","type":"go","parameters":{"type":"object","properties":{"order":{"type":"integer"}}}}`,
	}
	if len(entries) != len(want) {
		t.Fatalf("%d entries", len(entries))
	}
	for i := range want {
		if got := string(entries[i].Definition); got != want[i] {
			t.Errorf("is   %s\nwant %s", got, want[i])
		}
	}
	for path, line := range map[string]int{"": 2, "/kind": 2, "/definition": 2, "/definition/params/top_p": 7, "/definition/params/none/deeper": 16, "/definition/nothing": 2} {
		if got := entries[0].At(path); got != fmt.Sprint("talk.yaml:", line) {
			t.Errorf("%s is at %s, want %d", path, got, line)
		}
	}
	if got := entries[2].At("/definition/parameters/properties/order/type"); got != "talk.yaml:36" {
		t.Error(got)
	}
	if got := entries[3].At("/definition/type"); got != "talk.yaml:38" {
		t.Error(got)
	}
	validator, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkManifest(validator, entries); err != nil || entries[3].Name != "other" {
		t.Error(err)
	}
}

// The same in JSON: values one after another, and lists of them.
func TestJSON(t *testing.T) {
	const text = "\ufeff{\n \"kind\": \"model\",\n \"name\": \"fast\", \"model\": \"x\",\n\t\"params\": {\"a\": [1.50,\n 2]}\n}\n[{\"kind\":\"prompt\",\"name\":\"p\",\n\"definition\":{\"text\":\"x\"}},\n {\"kind\":\"prompt\",\"name\":\"q\",\n\"text\":7}]"
	for _, name := range []string{"a.json", "a.yaml", "-"} {
		entries, err := readManifest(name, []byte(text))
		if err != nil || len(entries) != 3 {
			t.Fatalf("%d, %v", len(entries), err)
		}
		if string(entries[0].Definition) != `{"model":"x","name":"fast","params":{"a":[1.50,2]}}` || entries[1].Name != "p" || string(entries[1].Definition) != `{"text":"x"}` {
			t.Errorf("%s, %s", entries[0].Definition, entries[1].Definition)
		}
		for _, c := range []struct {
			entry, line int
			path        string
		}{{0, 1, ""}, {0, 3, "/definition/model"}, {0, 5, "/definition/params/a/1"}, {1, 7, "/name"}, {1, 8, "/definition/text"}, {2, 9, "/kind"}, {2, 10, "/definition/text"}} {
			if got := entries[c.entry].At(c.path); got != fmt.Sprintf("%s:%d", name, c.line) {
				t.Errorf("%d %s is at %s, want %d", c.entry, c.path, got, c.line)
			}
		}
	}
}

// Each refusal names the file and the line.
func TestRefusals(t *testing.T) {
	validator, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	bomb := "kind: prompt\na: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'l'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for _, c := range []struct{ file, text, want string }{
		{"a.yaml", "kind: model\n  name: x\n", "a.yaml:"},
		{"a.yaml", "kind: model\nname: [x\n", "a.yaml:1: not YAML"},
		{"a.yaml", "just a text", "a.yaml:1: a definition is an object with a kind"},
		{"a.yaml", "name: x\nmodel: y\n", "a.yaml:1: a definition has a kind: model, prompt, agent, tool"},
		{"a.yaml", "---\nkind: prompt\nname: p\ntext: x\n---\nkind: spell\nname: y\n", "a.yaml:6: /kind: there is no kind"},
		{"a.yaml", "kind: model\nname: m\nmodle: x\n", "a.yaml:3: /modle: there is no such field"},
		{"a.yaml", "kind: model\nname: m\nmodel: x\nmodel: y\n", "a.yaml:4: "},
		{"a.yaml", "kind: agent\nname: a\ntype: ai_human\nmodel: m\ntools:\n - ok\n - not ok\n", "a.yaml:7: /tools/1: must be a tool's name"},
		{"a.yaml", "kind: prompt\nname: p\ntext: x\n---\nkind: prompt\nname: p\ntext: y\n", "a.yaml:5: the prompt p is already defined at a.yaml:1"},
		{"a.yaml", "kind: prompt\nname: p\ndefinition: {text: x}\ntext: y\n", "a.yaml:4: next to definition only kind and name"},
		{"a.yaml", "kind: prompt\nname: p\ntext: 1.10\n", "a.yaml:3: /text: must be a text"},
		{"a.yaml", "kind: model\nname: m\nmodel: x\ntemperature: .inf\n", "a.yaml:4: JSON has no number .inf"},
		{"a.yaml", "kind: model\nname: m\n<<: {a: 1}\n", "a.yaml:3: merge keys"},
		{"a.yaml", "kind: model\nname: !!binary aGk=\n", "a.yaml:2: the tag !!binary is not known"},
		{"a.yaml", "kind: model\nname: *none\n", "a.yaml:"},
		{"a.yaml", "kind: model\nname: m\nmodel: x\ncontextTokens: 010\n", "a.yaml:4: the number 010 means different things"},
		{"a.yaml", "kind: model\nname: m\nmodel: x\ncontextTokens: 1_000\n", "a.yaml:4: the number 1_000 means different things"},
		{"a.yaml", "kind: prompt\nx: &x [*x]\n", "more than 64 levels"},
		{"a.yaml", "kind: !!set {a: 1}\n", "a.yaml:1: the tag !!set"},
		{"a.yaml", bomb, "the document has more than"},
		{"a.yaml", "kind: prompt\nx: " + strings.Repeat("[", 80) + strings.Repeat("]", 80), "more than 64 levels"},
		{"a.json", "{\"kind\":\"model\",\n\"name\" \"x\"}", "a.json:2: not JSON"},
		{"a.json", "{\"kind\":\"model\",\n\"name\":", "a.json:2: not JSON"},
		{"a.json", "[\n{\"kind\":\"model\",\n\"name\":\"m\",\"model\":\"\"}]", "a.json:3: /model: must be a text"},
		{"a.json", "kind: model", "a.json:1: not JSON"},
	} {
		entries, err := readManifest(c.file, []byte(c.text))
		if err == nil {
			err = checkManifest(validator, entries)
		}
		if e := events.AsError(err); err == nil || e.Code != events.InvalidRequest || !strings.HasPrefix(e.Message, c.file) || !strings.Contains(e.Message, c.want) {
			t.Errorf("%.120q:\n is  %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`{"a":1,"b":[1,{"c":"x"}]}`, `{"a":1,"b":[1,{"c":"x"}]}`, `[]`},
		{`{"a":1,"b":[1,{"c":"x"}]}`, `{"b":[1,{"c":"y"},3],"d":{"e":null}}`, `[{"path":"/a","from":1},{"path":"/b/1/c","from":"x","to":"y"},{"path":"/b/2","to":3},{"path":"/d","to":{"e":null}}]`},
		{`{"a/b":{}}`, `{"a/b":[]}`, `[{"path":"/a~1b","from":{},"to":[]}]`},
	} {
		got := diffManifest(events.JSON(c.from), events.JSON(c.to))
		b, err := json.Marshal(got, json.FormatNilSliceAsNull(false))
		if err != nil || string(b) != c.want {
			t.Errorf("%s\nwant %s (%v)", b, c.want, err)
		}
	}
}

// The examples of the page of definitions are right, and one of each kind.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "definitions.md"))
	if err != nil {
		t.Fatal(err)
	}
	validator, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[events.DefinitionKind]int{}
	for i, block := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		entries, err := readManifest(fmt.Sprint("block ", i+1), []byte(text))
		if err == nil {
			err = checkManifest(validator, entries)
		}
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			kinds[e.Kind]++
		}
	}
	for _, row := range events.DefinitionRows() {
		if kinds[row.Kind] == 0 {
			t.Errorf("no example of kind %s", row.Kind)
		}
	}
}
