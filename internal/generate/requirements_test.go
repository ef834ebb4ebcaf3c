package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

// ek writes an id in a way that the check of this repository does not take for one.
func ek(n int) string { return fmt.Sprintf("EK-%d", n) }

func TestParseRequirements_Blocks(t *testing.T) {
	r, err := parseRequirements("# Page\n\n## EK: Kept\n\n- " + ek(1) + " one\n  more\n- " + ek(2) + " two\n  -> so\n  it is\n\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []block{
		{text: "# Page"}, {}, {text: "## EK: Kept"}, {}, {id: ek(1), text: "one more"}, {id: ek(2), text: "two", settled: "so it is"}, {},
	}
	if !reflect.DeepEqual(r.blocks, want) || !reflect.DeepEqual(r.sources, []source{{"EK", "Kept", 2}}) {
		t.Errorf("%+v %+v", r.blocks, r.sources)
	}
}

func TestParseRequirements_IDOutOfOrder(t *testing.T) {
	for name, text := range map[string]string{
		"gap":            "## EK: a\n- " + ek(1) + " x\n- " + ek(3) + " y",
		"twice":          "## EK: a\n- " + ek(1) + " x\n- " + ek(1) + " y",
		"other source":   "## AM: a\n- " + ek(1) + " x",
		"before heading": "- " + ek(1) + " x",
	} {
		if _, err := parseRequirements(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A test claims what it cites itself, and what the helpers that it uses cite. A
// comment between two declarations belongs to the second.
func TestFindClaims_TestsAndHelpers(t *testing.T) {
	text := "package p\n\n// " + ek(1) + "..EK-" + "3.\nfunc TestA(t *testing.T) { rows() }\n\n" +
		"func rows() []string { return []string{\"" + ek(4) + "\"} }\n\n// " + ek(5) + "\n\nvar table = 1\n\n" +
		"func TestB(t *testing.T) { use(table) // " + ek(6) + "\n}\n\n// " + ek(7) + "\n"
	found, err := findClaims(fstest.MapFS{
		"a/p_test.go":          {Data: []byte(text)},
		"a/p.go":               {Data: []byte("package p // " + ek(8))},
		"b/p_test.go":          {Data: []byte("package p\nfunc TestElsewhere() { rows() }")},
		".hidden/p_test.go":    {Data: []byte("package p // " + ek(9))},
		"skein-data/x_test.go": {Data: []byte("not Go")},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, b, file := []claim{{"a/p_test.go", "TestA"}}, []claim{{"a/p_test.go", "TestB"}}, []claim{{"a/p_test.go", ""}}
	want := claims{ek(1): a, ek(2): a, ek(3): a, ek(4): a, ek(5): b, ek(6): b, ek(7): file}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
}

func TestRequirement_NotShown(t *testing.T) {
	p := &page{}
	p.requirement(block{id: ek(1), text: strings.Repeat("word ", 30)}, nil)
	p.requirement(block{id: ek(2), text: "two", settled: "so"}, []claim{{"a_test.go", "TestA"}, {"a_test.go", "TestB"}, {"b_test.go", ""}})
	lines := strings.Split(p.String(), "\n")
	want := []string{"  - *Not shown yet.*", "- **" + ek(2) + "** two", "  - Settled: so", "  - `TestA`, `TestB` in [a_test.go]; [b_test.go]", ""}
	if got := lines[2:]; !reflect.DeepEqual(got, want) || len(lines[0]) > columns {
		t.Errorf("%q", lines)
	}
}

// Every id in this repository resolves to a requirement.
func TestReferences_Resolve(t *testing.T) {
	if err := checkReferences("../.."); err != nil {
		t.Error(err)
	}
}

func TestReferences_Unresolved(t *testing.T) {
	root := t.TempDir()
	text := "fine: " + ek(1) + " and C-" + "51\nmissing: " + ek(195) + ", EK-" + "193..196; backwards: EK-" + "9..EK-" + "2\n"
	for name, body := range map[string]string{"docs/page.md": text, "go.sum": "h1:" + ek(0), "data.bin": ek(999) + "\x00"} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := checkReferences(root)
	if err == nil {
		t.Fatal("nothing was found")
	}
	var places []string
	for line := range strings.Lines(err.Error()) {
		places = append(places, strings.Join(strings.Fields(line)[:2], " "))
	}
	want := []string{"docs/page.md:2: EK-" + "9..EK-" + "2", "docs/page.md:2: " + ek(195), "docs/page.md:2: " + ek(195), "docs/page.md:2: " + ek(196), "go.sum:1: " + ek(0)}
	if !reflect.DeepEqual(places, want) {
		t.Errorf("%q", places)
	}
}
