package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/dev/repository"
)

const module = "github.com/skein-threads/skein"

// sourceFile is one Go file of the tree.
type sourceFile struct {
	path   string // From the top of the tree, with slashes: events/item.go.
	ast    *ast.File
	fset   *token.FileSet
	lines  int
	inTest bool // The name ends in _test.go.
}

// finding is one broken rule at one place.
type finding struct {
	pos  token.Position
	what string
	fix  string
}

func (f finding) String() string {
	return f.pos.Filename + ":" + strconv.Itoa(f.pos.Line) + ": " + f.what + "; " + f.fix
}

// report fails the test once for each finding.
func report(t *testing.T, findings []finding) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

// at makes a finding about a node of the file.
func (f sourceFile) at(node ast.Node, what, fix string) finding {
	return finding{pos: f.fset.Position(node.Pos()), what: what, fix: fix}
}

// dir is the folder of the file, "." at the top.
func (f sourceFile) dir() string { return path.Dir(f.path) }

// importPaths maps each import to its node.
func (f sourceFile) importPaths() map[string]*ast.ImportSpec {
	specs := map[string]*ast.ImportSpec{}
	for _, spec := range f.ast.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil {
			specs[name] = spec
		}
	}
	return specs
}

// localImport turns an import path of this module into a folder.
func localImport(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, module+"/")
}

// parseSource reads one file from memory, as a tree of its own.
func parseSource(t testing.TB, name string, text []byte) sourceFile {
	t.Helper()
	file, err := parseInto(token.NewFileSet(), name, text)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// parseInto reads one file of a tree, whose files share the positions.
func parseInto(fset *token.FileSet, name string, text []byte) (sourceFile, error) {
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return sourceFile{}, fmt.Errorf("%s does not parse: %w", name, err)
	}
	return sourceFile{
		path:   name,
		ast:    file,
		fset:   fset,
		lines:  bytes.Count(text, []byte("\n")),
		inTest: strings.HasSuffix(name, "_test.go"),
	}, nil
}

// top returns the folder that holds go.mod.
func top(t testing.TB) string {
	t.Helper()
	dir, err := findTop()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func findTop() (string, error) {
	dir, err := filepath.Abs(repository.Root())
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("dev/house is not two folders below go.mod: %w", err)
	}
	return dir, nil
}

// tree returns every Go file of the modules, in order of path. They are read once, for
// all tests: nobody changes them.
func tree(t testing.TB) []sourceFile {
	t.Helper()
	files, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var readTree = sync.OnceValues(func() ([]sourceFile, error) {
	root, err := findTop()
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []sourceFile
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != root && skipped(name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file, err := parseInto(fset, filepath.ToSlash(rel), text)
		files = append(files, file)
		return err
	})
	return files, err
})

// skipped tells the folders that the go command does not see either.
func skipped(dir string) bool {
	base := filepath.Base(dir)
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || slices.Contains([]string{"testdata", "vendor", "bin", "skein-data"}, base)
}
