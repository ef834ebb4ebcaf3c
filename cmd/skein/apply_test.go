package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const agentsFile = `kind: model
name: gpt-4.1
model: gpt-4.1
params: {seed: 9007199254740993}
---
kind: prompt
name: support
text: |
  You help.
---
kind: tool
name: find_order
description: Finds an order.
type: nats
parameters: {type: object, properties: {order: {type: integer}}}
---
- kind: agent
  name: support
  type: ai_human
  model: gpt-4.1
  prompt: support
  tools: [find_order]
`

type outcomeLine struct {
	Kind, Name, Outcome string
	Version             int
	Changes             []struct{ Path string }
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// SA-55, SA-56, SA-57: definitions are applied, shown, changed and removed; applying
// again changes nothing; they survive a restart, and the read models equal the log.
func TestApply(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := start(t, store)
	file := write(t, "agents.yaml", agentsFile)
	if text := s.ok("apply", "-f", file, "--dry-run"); !strings.Contains(text, "+ agent support, version 1") || !strings.Contains(text, "nothing was written: 4 added, 0 changed, 0 removed, 0 unchanged") {
		t.Error(text)
	}
	if text := s.ok("definition", "list", "--json"); text != "" {
		t.Errorf("a dry run has done something: %s", text)
	}
	added := decodeLines[outcomeLine](t, s.ok("apply", "-f", file, "--json"))
	if len(added) != 4 || added[3].Name != "support" || added[3].Outcome != "added" || added[3].Version != 1 {
		t.Errorf("%+v", added)
	}
	if text := s.ok("apply", "-f", file); text != "no changes: all 4 definitions are up to date\n" {
		t.Errorf("%q", text)
	}
	for _, o := range decodeLines[outcomeLine](t, s.ok("apply", "-f", file, "--json")) {
		if o.Outcome != "unchanged" {
			t.Errorf("%+v", o)
		}
	}
	type definition struct {
		Kind, Name string
		Version    int
		Definition map[string]any
	}
	var got definition
	raw := s.ok("definition", "get", "model", "gpt-4.1", "--json")
	if decode(t, raw, &got); !strings.Contains(raw, `"seed":9007199254740993`) || got.Version != 1 {
		t.Error(raw)
	}
	changed := strings.Replace(agentsFile, "You help.", "You help people.", 1)
	o := run(t, s.env, changed, "apply", "-f", "-", "--dry-run")
	if o.code != 0 || !strings.Contains(o.out, "~ prompt support, version 2\n    /text: \"You help.\\n\" -> \"You help people.\\n\"\n") {
		t.Errorf("%+v", o)
	}
	two := decodeLines[outcomeLine](t, run(t, s.env, changed, "apply", "-f", "-", "--json").out)
	if len(two) != 4 || two[1].Outcome != "changed" || two[1].Version != 2 || len(two[1].Changes) != 1 || two[1].Changes[0].Path != "/text" || two[3].Outcome != "unchanged" {
		t.Errorf("%+v", two)
	}
	// JSON, with a part of the definitions: the others stay, or are removed by --prune.
	part := write(t, "part.json", "[{\"kind\":\"model\",\"name\":\"gpt-4.1\",\"model\":\"gpt-4.1\"},\n{\"kind\":\"prompt\",\"definition\":{\"name\":\"support\",\"text\":\"x\"}}]")
	if text := s.ok("apply", "-f", part); !strings.Contains(text, "0 added, 2 changed, 0 removed, 0 unchanged") {
		t.Error(text)
	}
	if text := s.ok("apply", "-f", part, "--prune"); !strings.Contains(text, "- agent support, version 2\n") || !strings.Contains(text, "- tool find_order, version 2\n") || !strings.Contains(text, "0 added, 0 changed, 2 removed, 2 unchanged") {
		t.Error(text)
	}
	if o := run(t, s.env, "", "definition", "get", "agent", "support"); o.code != 1 || !strings.HasPrefix(o.err, "skein: not_found: ") {
		t.Errorf("%+v", o)
	}
	if text := s.ok("definition", "get", "agent", "support", "--version", "1"); !strings.Contains(text, "agent support, version 1 of") || !strings.Contains(text, `"find_order"`) {
		t.Error(text)
	}
	before := s.ok("definition", "list", "--json")
	s.stop()

	s = start(t, store)
	if list := decodeLines[definition](t, s.ok("definition", "list", "--json")); len(list) != 2 || list[0].Version != 2 || s.ok("definition", "list", "--json") != before {
		t.Errorf("after a restart %+v", list)
	}
	if text := s.ok("definition", "list", "--kind", "prompt"); !strings.Contains(text, "support") || strings.Contains(text, "gpt") {
		t.Error(text)
	}
	if text := s.ok("apply", "-f", part, "--prune"); !strings.HasPrefix(text, "no changes: all 2 ") {
		t.Error(text)
	}
	if text := s.ok("replay", "--verify"); !strings.Contains(text, " 0 differ") {
		t.Error(text)
	}
	s.ok("replay", "definitions")
	s.ok("audit", "verify")
	s.stop()
}

// Each refusal is one line with file and line, and changes nothing.
func TestApply_Refusals(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	for _, c := range []struct {
		file, text string
		code       int
		want       string
	}{
		{"a.yaml", "kind: model\nname: m\nmodle: x\n", 1, "a.yaml:3: /modle: there is no such field"},
		{"a.yaml", "kind: model\nname: m\nmodel: [x\n", 1, "not YAML"},
		{"a.yaml", "kind: prompt\nname: p\ntext: x\n---\nkind: agent\nname: a\ntype: ai_human\nmodel: m\ntools:\n- t\n", 1, "a.yaml:8: /model: agent a refers to the model m, which is not defined"},
		{"a.yaml", "kind: tool\nname: t\ndescription: x\ntype: mcp\nserver:\n  command: x\n  env:\n  - TOKEN=abc\n", 1, "a.yaml:8: /server/env/0: must be the name of a variable, without a value"},
		{"a.json", "[{\"kind\":\"tool\",\"name\":\"t\",\"description\":\"x\",\"type\":\"go\",\n\"parameters\":{\"type\":\"object\",\n\"required\":1}}]", 1, "a.json:3: /parameters/required: is no JSON Schema"},
		{"empty.yaml", "# nothing\n", 0, ""},
	} {
		o := run(t, s.env, "", "apply", "-f", write(t, c.file, c.text))
		if o.code != c.code || !strings.Contains(o.err, c.want) || c.code != 0 && (!strings.HasPrefix(o.err, "skein: invalid_request: ") || strings.Count(o.err, "\n") != 1) {
			t.Errorf("%q: %+v", c.text, o)
		}
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"apply", 2, "apply needs -f FILE"}, {"apply -f", 2, "skein: usage: "}, {"apply x", 2, "skein: usage: "}, {"apply -f nowhere.yaml", 1, "nowhere.yaml"},
		{"definition", 2, "skein: usage: "}, {"definition get agent", 2, "skein: usage: "}, {"definition get spell x", 2, "KIND"},
		{"definition get agent x --version -1", 2, "--version: -1; use a number from 0 on: its version"}, {"definition list --kind x", 2, "--kind"},
		{"definition get agent x", 1, "skein: not_found: "}, {"definition get agent a*b", 1, "skein: invalid_request: "},
	} {
		if o := run(t, s.env, "", strings.Fields(c.args)...); o.code != c.code || !strings.Contains(o.err, c.want) || strings.Count(o.err, "\n") != 1 {
			t.Errorf("skein %s: %+v", c.args, o)
		}
	}
	if o := run(t, s.env, "", "apply", "-f", "-", "--prune"); o.code != 1 || !strings.Contains(o.err, "would remove all") {
		t.Errorf("an empty file that prunes: %+v", o)
	}
	if text := s.ok("definition", "list", "--json"); text != "" {
		t.Errorf("something was written: %s", text)
	}
	s.stop()
}

// Two concurrent applies do not lose each other's changes.
func TestApply_Concurrent(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	const each = 6
	done := make(chan outcome, 2)
	for who := range 2 {
		go func() {
			var last outcome
			for n := range each {
				text := fmt.Sprintf("kind: prompt\nname: own%d\ntext: v%d\n---\nkind: prompt\nname: shared\ntext: v%d of %d\n", who, n, n, who)
				if last = run(t, s.env, text, "apply", "-f", "-"); last.code != 0 {
					break
				}
			}
			done <- last
		}()
	}
	for range 2 {
		if o := <-done; o.code != 0 {
			t.Errorf("%+v", o)
		}
	}
	type definition struct {
		Name    string
		Version int
	}
	want := map[string]int{"own0": each, "own1": each, "shared": 2 * each}
	for _, d := range decodeLines[definition](t, s.ok("definition", "list", "--json")) {
		if want[d.Name] != d.Version {
			t.Errorf("%+v, want %d", d, want[d.Name])
		}
		delete(want, d.Name)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
	s.ok("audit", "verify")
	s.stop()
}
