package house

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// longList lists the tests that make test leaves to make test-long.
const longList = ".ci/long"

// make test leaves out every test of a listed name, and make test-long runs those of
// the listed folders: a line that names no test, or that of two packages, would lose one.
func TestLongTests_AreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top(t), filepath.FromSlash(longList)))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkLong(string(text), testNames(tree(t))) {
		t.Error(problem)
	}
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
			continue // internal/gotest refuses what is neither blank nor a test
		}
		switch folders := tests[fields[1]]; {
		case !slices.Contains(folders, fields[0]):
			problems = append(problems, fmt.Sprintf("%s:%d: %s has no %s; write what it is called now", longList, n+1, fields[0], fields[1]))
		case len(folders) > 1:
			problems = append(problems, fmt.Sprintf("%s:%d: %q have a %s each; rename one of them", longList, n+1, folders, fields[1]))
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
