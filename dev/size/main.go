// Command size prints how large each module of the project is: lines of code outside tests and in
// them, packages, dependencies that go.mod names, and words of the pages; and the longest functions
// of all. Generated code and
// folders that are no packages (testdata, hidden ones) do not count.
//
//	go run ./dev/size [-functions N]
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	functions := flag.Int("functions", 10, "print the `N` longest functions")
	flag.Parse()
	all, err := measure(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
	all.print(*functions)
}

// sizes are the modules of a tree, by the folder of their go.mod.
type sizes map[string]*size

// of returns the module that a path belongs to.
func (all sizes) of(path string) *size {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if s := all[dir]; s != nil {
			return s
		}
	}
}

// size is what a module has.
type size struct {
	module                  string
	lines, testLines, words int
	packages                map[string]bool // folders
	dependencies            int
	functions               []function
}

// function is a function outside tests.
type function struct {
	at    token.Position
	name  string
	lines int
}

// measure reads all files below the folder of a module.
func measure(root string) (sizes, error) {
	all := sizes{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "bin") {
				return fs.SkipDir
			}
			text, err := os.ReadFile(filepath.Join(path, "go.mod"))
			if err != nil && path != root {
				return nil // a folder of the module above
			}
			all[path] = &size{module: path, packages: map[string]bool{}, dependencies: dependencies(text)}
			return err
		}
		kind := filepath.Ext(name)
		if kind != ".go" && kind != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if kind == ".go" {
			return all.of(path).code(path, text)
		}
		all.of(path).words += len(bytes.Fields(text))
		return nil
	})
	return all, err
}

// code counts a file of Go.
func (s *size) code(path string, text []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	lines := bytes.Count(text, []byte("\n"))
	if strings.HasSuffix(path, "_test.go") {
		s.testLines += lines
		return nil
	}
	s.lines += lines
	s.packages[filepath.Dir(path)] = true
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			at := fset.Position(f.Pos())
			s.functions = append(s.functions, function{at, f.Name.Name, fset.Position(f.End()).Line - at.Line + 1})
		}
	}
	return nil
}

// dependencies counts the modules that a go.mod names for its own code.
func dependencies(text []byte) (n int) {
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.Contains(fields[0], ".") && strings.HasPrefix(fields[1], "v") && !strings.Contains(line, "// indirect") {
			n++
		}
	}
	return n
}

func (all sizes) print(functions int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	list := slices.SortedFunc(maps.Values(all), func(a, b *size) int { return cmp.Compare(a.module, b.module) })
	row := func(name string, cell func(*size) any) {
		_, _ = fmt.Fprint(w, name)
		for _, s := range list {
			_, _ = fmt.Fprintf(w, "\t%v", cell(s))
		}
		_, _ = fmt.Fprintln(w)
	}
	row("module", func(s *size) any { return s.module })
	row("lines outside tests", func(s *size) any { return s.lines })
	row("lines of tests", func(s *size) any { return s.testLines })
	row("packages", func(s *size) any { return len(s.packages) })
	row("direct dependencies", func(s *size) any { return s.dependencies })
	row("words of pages", func(s *size) any { return s.words })
	_ = w.Flush()
	var longest []function
	for _, s := range list {
		longest = append(longest, s.functions...)
	}
	slices.SortFunc(longest, func(a, b function) int { return cmp.Compare(b.lines, a.lines) })
	_, _ = fmt.Fprintln(w, "\nlongest functions\tlines")
	for _, f := range longest[:min(functions, len(longest))] {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s:%d\n", f.name, f.lines, f.at.Filename, f.at.Line)
	}
	_ = w.Flush()
}
