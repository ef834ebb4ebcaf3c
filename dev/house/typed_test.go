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
	"sync"
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
	return typedPackagesOf(t, func(dir string) bool { return room(dir) != "internal" && room(dir) != "dev" })
}

// typedPackagesOf returns the packages that are wanted, with their types. They are
// checked once, for all tests.
func typedPackagesOf(t *testing.T, wanted func(dir string) bool) []typedPackage {
	t.Helper()
	all, err := checkTree()
	if err != nil {
		t.Fatal(err)
	}
	var packages []typedPackage
	for _, p := range all {
		if dir, _ := localImport(p.types.Path()); wanted(dir) {
			packages = append(packages, p)
		}
	}
	return packages
}

// checkTree checks the types of every package of the module but those of the top.
var checkTree = sync.OnceValues(func() ([]typedPackage, error) {
	exports, listed, err := exportsOf("./...")
	if err != nil {
		return nil, err
	}
	files, err := readTree()
	if err != nil {
		return nil, err
	}
	parsed := map[string]sourceFile{}
	for _, f := range files {
		parsed[f.path] = f
	}
	from := importing(files[0].fset, exports)
	var packages []typedPackage
	for _, p := range listed {
		dir, local := localImport(p.ImportPath)
		if !local {
			continue
		}
		var files []sourceFile
		for _, name := range p.GoFiles {
			if f, ok := parsed[path.Join(dir, name)]; ok {
				files = append(files, f)
			}
		}
		if len(files) > 0 {
			packages = append(packages, typeCheck(p.ImportPath, files, from))
		}
	}
	return packages, nil
})

// listedPackage is what is used of the answer of go list.
type listedPackage struct {
	ImportPath string
	Export     string   // The file with the compiled package's types.
	GoFiles    []string // Those of this system, without tests.
}

// listExports returns how packages are imported, and all they import.
func listExports(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	exports, _, err := exportsOf(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return exports
}

// exportsOf asks the go command for packages and all they import, and where
// their compiled types are.
func exportsOf(patterns ...string) (exports map[string]string, listed []listedPackage, err error) {
	list := exec.Command("go", append([]string{"list", "-e", "-export", "-deps", "-json=ImportPath,Export,GoFiles"}, patterns...)...)
	if list.Dir, err = findTop(); err != nil {
		return nil, nil, err
	}
	out, err := list.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, nil, fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
		}
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	exports = map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return exports, listed, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		listed = append(listed, p)
	}
}

// importing returns an importer of compiled packages, which reads each once.
func importing(fset *token.FileSet, exports map[string]string) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no compiled types of %s", path)
		}
		return os.Open(exports[path])
	})
}

// typeCheck checks what it can and leaves the rest unknown.
func typeCheck(importPath string, files []sourceFile, from types.Importer) typedPackage {
	pkg := typedPackage{
		fset: files[0].fset,
		info: &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}},
	}
	for _, f := range files {
		pkg.files = append(pkg.files, f.ast)
	}
	config := types.Config{
		Error:    func(error) {}, // Goes on after an error.
		Importer: from,
	}
	pkg.types, _ = config.Check(importPath, pkg.fset, pkg.files, pkg.info) // Never nil.
	return pkg
}
