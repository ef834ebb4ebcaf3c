package house

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// make test leaves out every test of a listed name, and make test-long and make test-alone run those
// of the listed folders: a line that names no test, or that of two packages, would lose one.
func TestLongTests_AreThere(t *testing.T) {
	for _, list := range []string{".ci/long", ".ci/alone", ".ci/unraced"} {
		text, err := os.ReadFile(filepath.Join(top(t), filepath.FromSlash(list)))
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range checkLong(string(text), testNames(tree(t))) {
			t.Errorf("%s:%s", list, problem)
		}
	}
}

// Where CI leaves a package to the race detector, a test that skips under it runs nowhere unless
// a list names it.
func TestUnraced_ListsWhatTheDetectorSkips(t *testing.T) {
	listed := map[string]bool{}
	for _, list := range []string{".ci/long", ".ci/alone", ".ci/unraced"} {
		text, err := os.ReadFile(filepath.Join(top(t), filepath.FromSlash(list)))
		if err != nil {
			t.Fatal(err)
		}
		for row := range strings.Lines(string(text)) {
			row, _, _ = strings.Cut(row, "#")
			listed[strings.Join(strings.Fields(row), " ")] = true
		}
	}
	found := 0
	for _, f := range tree(t) {
		for _, name := range skipUnderRace(f) {
			found++
			if test := f.dir() + " " + name; !listed[test] {
				t.Errorf("%s skips under the race detector: add the line %q to .ci/unraced", name, test)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d tests that skip under the race detector: the rule has lost what it looks for", found)
	}
}

// skipUnderRace returns the tests of a file that ask whether the race detector is on.
func skipUnderRace(f sourceFile) (names []string) {
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(fn.Name.Name, "Test") {
			continue
		}
		asks := false
		ast.Inspect(fn, func(n ast.Node) bool {
			name, ok := n.(*ast.Ident)
			asks = asks || ok && (name.Name == "raced" || name.Name == "raceDetector")
			return !asks
		})
		if asks {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// testNames finds the folders that have a test of each name.
func testNames(files []sourceFile) map[string][]string {
	folders := map[string][]string{}
	for _, f := range files {
		if !f.inTest {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				folders[fn.Name.Name] = append(folders[fn.Name.Name], f.dir())
			}
		}
	}
	return folders
}

func checkLong(list string, tests map[string][]string) (problems []string) {
	for n, row := range strings.Split(list, "\n") {
		row, _, _ = strings.Cut(row, "#")
		fields := strings.Fields(row)
		if len(fields) != 2 {
			continue // dev/gotest refuses what is neither blank nor a test
		}
		switch folders := tests[fields[1]]; {
		case !slices.Contains(folders, fields[0]):
			problems = append(problems, fmt.Sprintf("%d: %s has no %s; write what it is called now", n+1, fields[0], fields[1]))
		case len(folders) > 1:
			problems = append(problems, fmt.Sprintf("%d: %q have a %s each; rename one of them", n+1, folders, fields[1]))
		}
	}
	return problems
}

func TestLongRulesBite(t *testing.T) {
	tests := map[string][]string{"TestA": {"a"}, "TestB": {"a", "b"}}
	for row, want := range map[string]int{"a TestA": 0, "# a TestC": 0, "": 0, "b TestA": 1, "a TestC": 1, "b TestB": 1} {
		if got := checkLong(row+"\n", tests); len(got) != want {
			t.Errorf("%q: %q, want %d", row, got, want)
		}
	}
}

// make test-race leaves out packages whose code begins nothing that runs at once, and shares nothing
// with it.
func TestAlone_BeginsNoGoroutine(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	alone := regexp.MustCompile(`(?m)^ALONE = (.+)$`).FindSubmatch(text)
	if alone == nil {
		t.Fatal("the Makefile names no packages that begin no goroutine: ALONE")
	}
	leftOut, n := regexp.MustCompile("^("+string(alone[1])+")$"), 0
	for _, f := range tree(t) {
		if leftOut.MatchString(f.dir()) && !strings.HasSuffix(f.path, "_test.go") {
			report(t, checkAlone(f))
			n++
		}
	}
	if n == 0 {
		t.Error("ALONE in the Makefile matches no package")
	}
}

// checkAlone finds what runs at once with something else, or is guarded from it.
func checkAlone(f sourceFile) (found []finding) {
	const fix = "take its package out of ALONE in the Makefile: the race detector watches it then"
	ast.Inspect(f.ast, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			found = append(found, f.at(node, "a goroutine is begun", fix))
		case *ast.CallExpr:
			if called, ok := node.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Go" && len(node.Args) > 0 {
				found = append(found, f.at(node, "a goroutine is begun", fix))
			}
		case *ast.SelectorExpr:
			if of, ok := node.X.(*ast.Ident); ok && (of.Name == "sync" || of.Name == "atomic") && !slices.Contains(harmless, node.Sel.Name) {
				found = append(found, f.at(node, "memory is guarded", fix))
			}
		}
		return true
	})
	return found
}

// harmless is what of package sync guards nothing that changes.
var harmless = []string{"OnceFunc", "OnceValue", "OnceValues", "Pool"}

func TestAloneRulesBite(t *testing.T) {
	for body, want := range map[string]int{
		"": 0, "go f()": 1, "group.Go(f)": 1, "at.Go().Equal(now)": 0, "var mu sync.Mutex": 1, "atomic.AddInt64(n, 1)": 1,
		"f := sync.OnceValue(g)": 0,
	} {
		f := parseSource(t, "a/a.go", []byte("package a\n\nfunc a() {\n"+body+"\n}\n"))
		if got := checkAlone(f); len(got) != want {
			t.Errorf("%q: %v, want %d", body, got, want)
		}
	}
}
