package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// claim says that a test cites a requirement.
type claim struct {
	file string // from the root of the repository, with slashes
	test string // "" when the file cites it and no test of it does
}

// claims are those of each requirement, by its id.
type claims map[string][]claim

// testFunction is a function that go test runs.
var testFunction = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)([^a-z]|$)`)

// findClaims reads the tests below a root. An id in a test, in its comment, or in what
// the test uses from the test files of its package, is a claim of that test.
func findClaims(root fs.FS) (claims, error) {
	found := claims{}
	folders := map[string][]string{}
	err := walk(root, func(name string) error {
		if strings.HasSuffix(name, "_test.go") {
			folders[path.Dir(name)] = append(folders[path.Dir(name)], name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if err := found.folder(root, folders[folder]); err != nil {
			return nil, err
		}
	}
	for id, list := range found {
		slices.SortFunc(list, func(a, b claim) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.test, b.test)) })
		found[id] = slices.Compact(list)
	}
	return found, nil
}

// declaration is a top-level declaration of a test file.
type declaration struct {
	file  string
	names []string        // that it declares
	test  string          // its name, if go test runs it
	ids   []string        // that it cites
	uses  map[string]bool // names that it mentions
}

// folder adds the claims of one package's test files.
func (c claims) folder(root fs.FS, files []string) error {
	var all []*declaration
	for _, name := range files {
		body, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		declared, err := readDeclarations(name, body)
		if err != nil {
			return err
		}
		all = append(all, declared...)
	}
	for _, d := range all {
		if len(d.ids) == 0 {
			continue
		}
		made := []claim{{file: d.file, test: d.test}}
		if users := testsUsing(all, d); d.test == "" && len(users) > 0 {
			made = users
		}
		for _, id := range d.ids {
			c[id] = append(c[id], made...)
		}
	}
	return nil
}

// testsUsing lists the tests that lead to a declaration, by the names that they
// mention.
func testsUsing(all []*declaration, of *declaration) []claim {
	var tests []claim
	reached := map[*declaration]bool{of: true}
	for queue := []*declaration{of}; len(queue) > 0; queue = queue[1:] {
		for _, d := range all {
			if reached[d] || !slices.ContainsFunc(queue[0].names, func(name string) bool { return d.uses[name] }) {
				continue
			}
			reached[d] = true
			if d.test != "" {
				tests = append(tests, claim{file: d.file, test: d.test})
			} else {
				queue = append(queue, d)
			}
		}
	}
	return tests
}

// readDeclarations parses a test file. A comment between two declarations belongs to
// the one that follows; what stands before the package clause, or after the last
// declaration, belongs to the file.
func readDeclarations(name string, body []byte) ([]*declaration, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, body, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	whole := &declaration{file: name}
	if err := whole.cite(body[:offset(file.Name.End())]); err != nil {
		return nil, err
	}
	all := []*declaration{whole}
	from := offset(file.Name.End())
	for _, d := range file.Decls {
		to := offset(d.End())
		if general, is := d.(*ast.GenDecl); is && general.Tok == token.IMPORT {
			continue
		}
		one := &declaration{file: name, names: declaredNames(d), uses: mentioned(d)}
		if fn, is := d.(*ast.FuncDecl); is && fn.Recv == nil && testFunction.MatchString(fn.Name.Name) && fn.Name.Name != "TestMain" {
			one.test = fn.Name.Name
		}
		if err := one.cite(body[from:to]); err != nil {
			return nil, err
		}
		all = append(all, one)
		from = to
	}
	return all, whole.cite(body[from:])
}

func (d *declaration) cite(text []byte) error {
	ids, err := citedIDs(string(text))
	d.ids = append(d.ids, ids...)
	return err
}

func declaredNames(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return []string{d.Name.Name}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			}
		}
		return names
	}
	return nil
}

func mentioned(d ast.Decl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(d, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is {
			names[id.Name] = true
		}
		return true
	})
	return names
}
