// Command size prints how large the project is: lines of code outside tests and in them, packages,
// dependencies that go.mod names, words of the pages, and the longest functions. Generated code and
// folders that are no packages (testdata, hidden ones) do not count.
//
//	go run ./internal/size [-functions N]
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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	functions := flag.Int("functions", 10, "print the `N` longest functions")
	flag.Parse()
	s, err := measure(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
	s.print(*functions)
}

// size is what a tree has.
type size struct {
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

// measure reads all files below a folder.
func measure(root string) (size, error) {
	s := size{packages: map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		kind := filepath.Ext(name)
		if kind != ".go" && kind != ".md" && name != "go.mod" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch kind {
		case ".go":
			return s.code(path, text)
		case ".md":
			s.words += len(bytes.Fields(text))
		default:
			s.dependencies += dependencies(text)
		}
		return nil
	})
	slices.SortFunc(s.functions, func(a, b function) int { return cmp.Compare(b.lines, a.lines) })
	return s, err
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

func (s size) print(functions int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(name string, n int) { _, _ = fmt.Fprintf(w, "%s\t%d\n", name, n) }
	row("lines outside tests", s.lines)
	row("lines of tests", s.testLines)
	row("packages", len(s.packages))
	row("direct dependencies", s.dependencies)
	row("words of pages", s.words)
	_, _ = fmt.Fprintln(w, "\nlongest functions\tlines")
	for _, f := range s.functions[:min(functions, len(s.functions))] {
		row(fmt.Sprintf("%s\t%s:%d", f.name, f.at.Filename, f.at.Line), f.lines)
	}
	_ = w.Flush()
}
