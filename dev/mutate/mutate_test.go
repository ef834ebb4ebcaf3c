package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/skein-threads/skein/dev/repository"
)

// The list cannot rot: every mutant applies to the code as it is, leaves it Go, and
// is tested by something that is there.
func TestMutants_ApplyToTheCode(t *testing.T) {
	root := os.DirFS(repository.Root())
	mutants, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 60 {
		t.Errorf("there are %d mutants; the list of a hostile reviewer has 60 and more", len(mutants))
	}
	for _, m := range mutants {
		body, err := m.Apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.File, body, parser.SkipObjectResolution); err != nil {
			t.Errorf("%s is no Go: %v", m.Name, err)
		}
		tests := testsOf(t, root, m.Package)
		for _, one := range strings.Split(m.Run, "|") {
			pattern := regexp.MustCompile(one)
			matches := false
			for name := range tests {
				matches = matches || pattern.MatchString(name)
			}
			if !matches {
				t.Errorf("%s: package %s has no test that matches %q", m.Name, m.Package, one)
			}
		}
	}
}

// testsOf returns the names of a package's tests.
func testsOf(t *testing.T, root fs.FS, pkg string) map[string]bool {
	t.Helper()
	files, err := fs.Glob(root, strings.TrimPrefix(pkg, "./")+"/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, name := range files {
		body, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, body, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

// The lists of the made-up repository of these tests.
const (
	ownCode = "package own\n\n// Add adds.\nfunc Add(a, b int) int {\n\tif a < 0 {\n\t\tpanic(a)\n\t}\n\treturn a + b\n}\n"
	ownTest = "package own\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 2) != 4 {\n\t\tt.Fatal()\n\t}\n}\n"
	ownList = `
# Lines like this one say nothing.
= noticed: the wrong sign
file own/own.go
test ./own TestAdd
-	return a + b
+	return a - b

= unnoticed: another operation
file own/own.go
test ./own TestAdd
-	return a + b
+	return a * b

= no-go: no Go
file own/own.go
test ./own TestAdd
-	return a + b
+	return c

= gone: of what is not there
file own/own.go
test ./own TestAdd
-	return a / b
+	return a

= untested: by a test that is not there
file own/own.go
test ./own TestSubtract
 	if a < 0 {
-		panic(a)
 	}
+	a = 0
`
)

// ownRepository makes a repository with a list of mutants.
func ownRepository(t *testing.T, list string) string {
	t.Helper()
	root := t.TempDir()
	for name, body := range map[string]string{
		"go.mod": "module own\n\ngo 1.24\n", "own/own.go": ownCode, "own/own_test.go": ownTest, folder + "/own.txt": list,
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMutate_SaysWhatBecameOfEach(t *testing.T) {
	root := ownRepository(t, ownList)
	for only, want := range map[string]struct {
		code int
		out  string
	}{
		"^noticed$":          {allKilled, `(?s)killed +noticed .*TestAdd\n1 of 1 mutants killed \(100 %\)`},
		"^(un)?noticed$":     {notAll, `(?s)SURVIVED +unnoticed .*1 of 2 mutants killed \(50 %\)\nnot killed: unnoticed`},
		"^no-go$":            {notAll, `INVALID +no-go .*does not compile: .*undefined: c`},
		"^gone$":             {notAll, `INVALID +gone .*occurs 0 times`},
		"^untested$":         {notAll, `INVALID +untested .*no test has this name`},
		"^nothing-like-it$":  {broken, ``},
		"^unbalanced-group(": {broken, ``},
	} {
		var out bytes.Buffer
		code, err := mutate(t.Context(), &out, options{root: root, only: only, jobs: 2, timeout: time.Minute})
		if code != want.code || (code == broken) != (err != nil) || !regexp.MustCompile(want.out).Match(out.Bytes()) {
			t.Errorf("-only %s: code %d, %v:\n%s", only, code, err, &out)
		}
	}
	if body, err := os.ReadFile(filepath.Join(root, "own/own.go")); err != nil || string(body) != ownCode {
		t.Errorf("the tree was changed: %v\n%s", err, body)
	}
}

// A test that fails always would kill every mutant.
func TestMutate_TestsWithoutAMutantFirst(t *testing.T) {
	root := ownRepository(t, ownList)
	if err := os.WriteFile(filepath.Join(root, "own/own_test.go"), []byte(strings.Replace(ownTest, "!= 4", "!= 5", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code, err := mutate(t.Context(), &out, options{root: root, only: "^noticed$", timeout: time.Minute}); code != broken || err == nil || !strings.Contains(err.Error(), "fail without a mutant") {
		t.Errorf("code %d, %v:\n%s", code, err, &out)
	}
}

func TestRead_RefusesListsThatSayNothing(t *testing.T) {
	const whole = "= a: b\nfile f.go\ntest ./p Test\n-x\n+y\n"
	for name, list := range map[string]string{
		"no file":                "= a: b\ntest ./p Test\n-x\n+y\n",
		"no test":                "= a: b\nfile f.go\n-x\n+y\n",
		"no pattern":             "= a: b\nfile f.go\ntest ./p\n-x\n+y\n",
		"a pattern that is none": "= a: b\nfile f.go\ntest ./p (\n-x\n+y\n",
		"no change":              "= a: b\nfile f.go\ntest ./p Test\n x\n",
		"no old text":            "= a: b\nfile f.go\ntest ./p Test\n+y\n",
		"no title":               "file f.go\n",
		"a title without a text": "= a\n",
		"a name of two words":    "= a b: c\n",
		"an unknown line":        whole + "?\n",
		"a name twice":           whole + whole,
	} {
		t.Run(name, func(t *testing.T) {
			if all, err := Read(fstest.MapFS{folder + "/x.txt": {Data: []byte(list)}}); err == nil {
				t.Errorf("it was read as %+v", all)
			}
		})
	}
	all, err := Read(fstest.MapFS{folder + "/x.txt": {Data: []byte(whole)}, "f.go": {Data: []byte("x\nx\n")}})
	if err != nil || len(all) != 1 || all[0] != (Mutant{Name: "a", About: "b", File: "f.go", Package: "./p", Run: "Test", Old: "x", New: "y"}) {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := all[0].Apply(fstest.MapFS{"f.go": {Data: []byte("x\nx\n")}}); err == nil {
		t.Error("a text that occurs twice was replaced")
	}
}
