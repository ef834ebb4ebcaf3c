package house

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// typedPackage is a package with what the type checker knows of it.
type typedPackage struct {
	fset  *token.FileSet
	files []*ast.File
	types *types.Package
	info  *types.Info
}

// typedPackages checks the types of every package outside internal. A package
// that does not compile is judged by what can be known of it; that it compiles
// is for the compiler to say.
func typedPackages(t *testing.T) []typedPackage {
	t.Helper()
	return typedPackagesOf(t, func(dir string) bool { return room(dir) != "internal" })
}

// typedPackagesOf checks the types of the packages that are wanted.
func typedPackagesOf(t *testing.T, wanted func(dir string) bool) []typedPackage {
	t.Helper()
	exports, listed := listExports(t, "./...")
	parsed := map[string]sourceFile{}
	for _, f := range tree(t) {
		parsed[f.path] = f
	}
	var packages []typedPackage
	for _, p := range listed {
		dir, local := localImport(p.ImportPath)
		if !local || !wanted(dir) {
			continue
		}
		var files []sourceFile
		for _, name := range p.GoFiles {
			if f, ok := parsed[path.Join(dir, name)]; ok {
				files = append(files, f)
			}
		}
		if len(files) > 0 {
			packages = append(packages, typeCheck(p.ImportPath, files, exports))
		}
	}
	return packages
}

// listedPackage is what is used of the answer of go list.
type listedPackage struct {
	ImportPath string
	Export     string   // The file with the compiled package's types.
	GoFiles    []string // Those of this system, without tests.
}

// listExports asks the go command for packages and all they import, and where
// their compiled types are.
func listExports(t *testing.T, patterns ...string) (exports map[string]string, listed []listedPackage) {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-e", "-export", "-deps", "-json=ImportPath,Export,GoFiles"}, patterns...)...)
	list.Dir = top(t)
	out, err := list.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	exports = map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return exports, listed
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		exports[p.ImportPath] = p.Export
		listed = append(listed, p)
	}
}

// typeCheck checks what it can and leaves the rest unknown.
func typeCheck(importPath string, files []sourceFile, exports map[string]string) typedPackage {
	pkg := typedPackage{
		fset: files[0].fset,
		info: &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}},
	}
	for _, f := range files {
		pkg.files = append(pkg.files, f.ast)
	}
	config := types.Config{
		Error: func(error) {}, // Goes on after an error.
		Importer: importer.ForCompiler(pkg.fset, "gc", func(path string) (io.ReadCloser, error) {
			if exports[path] == "" {
				return nil, fmt.Errorf("no compiled types of %s", path)
			}
			return os.Open(exports[path])
		}),
	}
	pkg.types, _ = config.Check(importPath, pkg.fset, pkg.files, pkg.info) // Never nil.
	return pkg
}
