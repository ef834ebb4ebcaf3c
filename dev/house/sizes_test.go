package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// mostMethods is the number of exported methods above which a type is more than one thing.
const mostMethods = 40

// largeTypes lists the types that have more exported methods than they may, with exactly their
// number.
func largeTypes() map[string]int {
	return map[string]int{
		"client.ThreadState":            42,                    // the operations of Standard Agents, which has them on one object
		"commands/thread.preconditions": len(events.Catalog()), // one precondition a type of event: a row without one does not compile
	}
}

func TestTypesAreSmall(t *testing.T) {
	report(t, checkSizes(tree(t), largeTypes()))
}

func checkSizes(files []sourceFile, types map[string]int) []finding {
	var found []finding
	methods := map[string]int{}
	for _, f := range files {
		if f.inTest {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !fn.Name.IsExported() {
				continue
			}
			name := f.dir() + "." + receiver(fn.Recv.List[0].Type)
			if methods[name]++; methods[name] == max(types[name], mostMethods)+1 {
				found = append(found, f.at(fn.Name, fmt.Sprintf("%s has more than %d exported methods", name, methods[name]-1),
					"give a part of it a type of its own"))
			}
		}
	}
	return append(found, stale(types, methods)...)
}

// stale returns a finding for each entry of a list of exceptions that permits more than there is:
// what was made smaller stays so.
func stale(listed, is map[string]int) []finding {
	var found []finding
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		fix := fmt.Sprintf("lower the number to %d", is[name])
		if is[name] <= mostMethods {
			fix = "remove the entry"
		}
		if is[name] < listed[name] || is[name] <= mostMethods {
			found = append(found, finding{
				pos:  token.Position{Filename: "dev/house/sizes_test.go", Line: 1},
				what: fmt.Sprintf("%s may have %d exported methods, and has %d", name, listed[name], is[name]), fix: fix,
			})
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

func TestTypesAreSmall_Bites(t *testing.T) {
	text := "package a\n\ntype T struct{}\n"
	for i := range mostMethods {
		text += fmt.Sprintf("func (t *T) M%d() {}\n", i)
	}
	few := parseSource(t, "a/a.go", []byte(text))
	many := parseSource(t, "a/b.go", []byte("package a\n\nfunc (t T) More() {}\nfunc (t T) own() {}\n"))
	if got := checkSizes([]sourceFile{few}, nil); len(got) != 0 {
		t.Errorf("as many as may be: %v", got)
	}
	if got := checkSizes([]sourceFile{few, many}, nil); len(got) != 1 {
		t.Errorf("one more: %v", got)
	}
	if got := checkSizes([]sourceFile{few, many}, map[string]int{"a.T": mostMethods + 1}); len(got) != 0 {
		t.Errorf("as many as are listed: %v", got)
	}
	if got := checkSizes([]sourceFile{few, many}, map[string]int{"a.T": mostMethods + 2}); len(got) != 1 || !strings.HasSuffix(got[0].fix, " 41") {
		t.Errorf("fewer than are listed: %v", got)
	}
	if got := checkSizes([]sourceFile{few}, map[string]int{"a.T": mostMethods}); len(got) != 1 || got[0].fix != "remove the entry" {
		t.Errorf("no exceptions any more: %v", got)
	}
}
