package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/skein-threads/skein/dev/repository"
)

// ek writes an id in a way that the check of this repository does not take for one.
func ek(n int) string { return fmt.Sprintf("EK-%d", n) }

func TestParseRequirements_IDs(t *testing.T) {
	r, err := parseRequirements("# Page\n\n## Reading\n\n## EK: Kept\n\n- " + ek(1) + " one\n  more\n- " + ek(2) + " two\n  -> so\n\n## AM: Too\n- AM-" + "1 x\n")
	if want := (requirements{ek(1), ek(2), "AM-" + "1"}); err != nil || !slices.Equal(r, want) {
		t.Errorf("%q, %v", r, err)
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

// Every requirement of the five sources is cited by a test.
func TestRequirements_TestsCiteEach(t *testing.T) {
	tree := os.DirFS(repository.Root())
	wanted, err := readRequirements(tree)
	if err != nil {
		t.Fatal(err)
	}
	found, err := findClaims(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range wanted {
		if len(found[id]) == 0 && !strings.HasPrefix(id, "C-") {
			t.Errorf("no test cites %s", id)
		}
	}
}

func TestListCited(t *testing.T) {
	root := t.TempDir()
	for name, body := range map[string]string{
		requirementsPath: "## EK: Kept\n- " + ek(1) + " one\n- " + ek(2) + " two\n",
		"a_test.go":      "package a\n\n// " + ek(2) + "\nfunc TestA() {}\n",
	} {
		place(t, root, name, body)
	}
	var out strings.Builder
	if err := listCited(&out, root, "EK"); err != nil || out.String() != ek(1)+"\n"+ek(2)+"\n  a_test.go TestA\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := listCited(&out, root, "("); err == nil {
		t.Error("a pattern that is none is taken")
	}
}

// Every id in this repository resolves to a requirement.
func TestReferences_Resolve(t *testing.T) {
	if err := checkReferences(repository.Root()); err != nil {
		t.Error(err)
	}
}

func TestReferences_Unresolved(t *testing.T) {
	root := t.TempDir()
	for name, body := range map[string]string{
		requirementsPath: "## EK: Kept\n- " + ek(1) + " one\n- " + ek(2) + " two\n\n## C: Settled\n- C-" + "1 so\n",
		"docs/page.md":   "fine: " + ek(1) + " and C-" + "1\nmissing: " + ek(3) + ", EK-" + "2..4; backwards: EK-" + "9..EK-" + "2\n",
		"go.sum":         "h1:" + ek(0),
		"data.bin":       ek(999) + "\x00",
	} {
		place(t, root, name, body)
	}
	err := checkReferences(root)
	if err == nil {
		t.Fatal("nothing was found")
	}
	var places []string
	for line := range strings.Lines(err.Error()) {
		places = append(places, strings.Join(strings.Fields(line)[:2], " "))
	}
	want := []string{"docs/page.md:2: EK-" + "9..EK-" + "2", "docs/page.md:2: " + ek(3), "docs/page.md:2: " + ek(3), "docs/page.md:2: " + ek(4), "go.sum:1: " + ek(0)}
	if !reflect.DeepEqual(places, want) {
		t.Errorf("%q", places)
	}
}

// place writes a file below a root.
func place(t *testing.T, root, name, body string) {
	t.Helper()
	if err := write(filepath.Join(root, filepath.FromSlash(name)), []byte(body)); err != nil {
		t.Fatal(err)
	}
}
