package house

import (
	"fmt"
	"go/ast"
	"testing"

	"github.com/skein-threads/skein/events"
)

// Sizes above which a type or a package is more than one thing.
const (
	mostMethods = 40 // exported, of one type
	mostFiles   = 25 // of one package, tests not counted
)

// largeTypes lists the types that have more exported methods than they may, with their
// number, which may only go down.
func largeTypes() map[string]int {
	return map[string]int{
		"commands/thread.rules": len(events.Catalog()), // one precondition a type of event: a row without one does not compile
		"client.Client":         87,                    // one a command and query; the generated ones are to go to types by entity
	}
}

// largePackages lists the packages that have more files than they may, with their
// number, which goes up only with a new noun.
func largePackages() map[string]int {
	return map[string]int{
		"audit": 27, "client": 30, "commands/thread": 40, "events": 69, "projections/query": 28, "runtime": 36,
	}
}

func TestTypesAndPackagesAreSmall(t *testing.T) {
	report(t, checkSizes(tree(t), largeTypes(), largePackages()))
}

func checkSizes(files []sourceFile, types, packages map[string]int) []finding {
	var found []finding
	methods, sizes := map[string]int{}, map[string]int{}
	for _, f := range files {
		if f.inTest {
			continue
		}
		dir := f.dir()
		if sizes[dir]++; sizes[dir] == max(packages[dir], mostFiles)+1 {
			found = append(found, f.at(f.ast.Name, fmt.Sprintf("package %s has more than %d files", dir, sizes[dir]-1),
				"move what belongs together into a package of its own"))
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !fn.Name.IsExported() {
				continue
			}
			name := dir + "." + receiver(fn.Recv.List[0].Type)
			if methods[name]++; methods[name] == max(types[name], mostMethods)+1 {
				found = append(found, f.at(fn.Name, fmt.Sprintf("%s has more than %d exported methods", name, methods[name]-1),
					"give a part of it a type of its own"))
			}
		}
	}
	return found
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func TestTypesAndPackagesAreSmall_Bites(t *testing.T) {
	text := "package a\n\ntype T struct{}\n"
	for i := range mostMethods {
		text += fmt.Sprintf("func (t *T) M%d() {}\n", i)
	}
	few := parseSource(t, "a/a.go", []byte(text))
	many := parseSource(t, "a/b.go", []byte("package a\n\nfunc (t T) More() {}\nfunc (t T) own() {}\n"))
	if got := checkSizes([]sourceFile{few}, nil, nil); len(got) != 0 {
		t.Errorf("as many as may be: %v", got)
	}
	if got := checkSizes([]sourceFile{few, many}, nil, nil); len(got) != 1 {
		t.Errorf("one more: %v", got)
	}
	if got := checkSizes([]sourceFile{few, many}, map[string]int{"a.T": mostMethods + 1}, nil); len(got) != 0 {
		t.Errorf("as many as are listed: %v", got)
	}
	var files []sourceFile
	for i := range mostFiles + 2 {
		files = append(files, parseSource(t, fmt.Sprintf("a/f%d.go", i), []byte("package a\n")))
	}
	if got := checkSizes(files, nil, nil); len(got) != 1 {
		t.Errorf("two files too many: %v", got)
	}
}
