package house

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

// The files with examples of a package that is for programs can be copied into a program: they
// import nothing internal, and use nothing of the package's other test files.
func TestExamples_CompileOutsideTheModule(t *testing.T) {
	examples := examplesOf(tree(t))
	if len(examples) < 6 {
		t.Fatalf("only %d files with examples were found", len(examples))
	}
	for _, f := range examples {
		report(t, checkExample(f, examples))
	}
}

// examplesOf returns the files with examples of packages that others can import.
func examplesOf(files []sourceFile) (examples []sourceFile) {
	for _, f := range files {
		at := room(f.dir())
		if f.inTest && at != "internal" && at != "dev" && at != "cmd" && at != "examples" && slices.ContainsFunc(f.ast.Decls, isExample) {
			examples = append(examples, f)
		}
	}
	return examples
}

func isExample(d ast.Decl) bool {
	fn, ok := d.(*ast.FuncDecl)
	return ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Example")
}

func checkExample(f sourceFile, examples []sourceFile) (found []finding) {
	if !strings.HasSuffix(f.ast.Name.Name, "_test") {
		found = append(found, f.at(f.ast.Name, "an example is in the package itself", "write it as a program would, in package "+f.ast.Name.Name+"_test"))
	}
	known := map[string]bool{}
	for importPath, spec := range f.importPaths() {
		if strings.Contains(importPath+"/", "/internal/") {
			found = append(found, f.at(spec, "an example imports "+importPath, "write it with what programs can import"))
		}
		if spec.Name != nil {
			known[spec.Name.Name] = true
		}
		for _, part := range strings.FieldsFunc(importPath, func(r rune) bool { return r == '/' || r == '.' || r == '-' }) {
			known[part] = true
		}
		known[path.Base(importPath)] = true
	}
	for _, other := range examples {
		if other.dir() == f.dir() {
			for name := range other.ast.Scope.Objects {
				known[name] = true
			}
		}
	}
	for _, name := range f.ast.Unresolved {
		if !known[name.Name] && types.Universe.Lookup(name.Name) == nil {
			found = append(found, f.at(name, fmt.Sprintf("an example uses %s, which another file declares", name.Name), "declare it in the file of the example"))
		}
	}
	return found
}

func TestExampleRulesBite(t *testing.T) {
	const right = "package client_test\n\nimport (\n\t\"fmt\"\n\t\"github.com/nats-io/nats.go\"\n)\n\nfunc Example() { fmt.Println(len(url), nats.Name) }\n\nconst url = \"x\"\n"
	for text, want := range map[string]int{
		right: 0,
		strings.Replace(right, "client_test", "client", 1):         1,
		strings.Replace(right, "nats.Name", "serverOf(t)", 1):      2,
		strings.Replace(right, "nats-io/nats.go", "a/internal", 1): 2,
	} {
		f := parseSource(t, "client/example_test.go", []byte(text))
		if got := checkExample(f, nil); len(examplesOf([]sourceFile{f})) != 1 || len(got) != want {
			t.Errorf("%q: %d findings, want %d: %v", text, len(got), want, got)
		}
	}
	if got := examplesOf([]sourceFile{parseSource(t, "internal/a/a_test.go", []byte(right))}); len(got) != 0 {
		t.Errorf("examples that nobody can import: %v", got)
	}
}
