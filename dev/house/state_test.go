package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// stateAllowed lists the package-level variables that may stay although their
// type can change: "file name" and why. Nobody may assign to them all the same.
// Keep it small: a function that returns the value is nearly always as good.
func stateAllowed() map[string]string {
	const index = "an index of the catalog, built once and only read: every event, chunk and command is looked up in it"
	return map[string]string{
		"commands/thread/table.go decisionOf": index,
		"events/catalog.go rows":              index,
		"events/chunk.go chunkKinds":          index,
		"events/declare.go queriesByName":     index,
		"events/declare.go commandsByName":    index,
		"events/declare.go queriesByType":     index,
		"events/declare.go commandsByType":    index,
	}
}

func TestNoStateAtPackageLevel(t *testing.T) {
	allowed := stateAllowed()
	used := map[string]bool{}
	for _, pkg := range typedPackages(t) {
		for _, s := range checkState(pkg) {
			if _, ok := allowed[s.key]; ok && !s.assigned {
				used[s.key] = true
				continue
			}
			t.Error(s.finding)
		}
	}
	for key := range allowed {
		if !used[key] {
			t.Errorf("stateAllowed() lists %q, which is not needed any more; remove it", key)
		}
	}
}

// stateFinding is a finding with its name in stateAllowed.
type stateFinding struct {
	finding
	key      string
	assigned bool // Somebody really changes it.
}

// checkState looks at every variable at package level: its type must not let
// others change it, and nobody may assign to it.
func checkState(pkg typedPackage) []stateFinding {
	const fix = "return it from a function, or make it a field of what uses it"
	var found []stateFinding
	add := func(id *ast.Ident, assigned bool, what string) {
		pos := pkg.fset.Position(id.Pos())
		found = append(found, stateFinding{finding{pos, what, fix}, pos.Filename + " " + id.Name, assigned})
	}
	assigned := assignments(pkg)
	for _, file := range pkg.files {
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				value := spec.(*ast.ValueSpec)
				for i, id := range value.Names {
					object := pkg.info.Defs[id]
					if id.Name == "_" || object == nil {
						continue
					}
					if where, ok := assigned[object]; ok {
						add(id, true, fmt.Sprintf("%s is state at package level, changed at %s:%d", id.Name, where.Filename, where.Line))
						continue
					}
					if len(value.Values) == len(value.Names) && isFixed(value.Values[i]) {
						continue
					}
					if kind := mutable(id.Name, object.Type()); kind != "" {
						add(id, false, fmt.Sprintf("%s is state at package level: %s can be changed by any caller that sees it", id.Name, kind))
					}
				}
			}
		}
	}
	return found
}

// isFixed tells initial values that never change whatever their type: a
// compiled regular expression.
func isFixed(value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	return ok && types.ExprString(call.Fun) == "regexp.MustCompile"
}

// mutable names the reason why a variable of the type can be changed through a
// copy of it, or is empty.
func mutable(name string, t types.Type) string {
	if isError(t) && strings.HasPrefix(strings.ToLower(name), "err") {
		return "" // A sentinel.
	}
	if t.String() == "embed.FS" {
		return ""
	}
	if inside := synchronised(t); inside != "" {
		return inside
	}
	switch t.Underlying().(type) {
	case *types.Map:
		return "a map"
	case *types.Slice:
		return "a slice"
	case *types.Pointer:
		return "what a pointer points to"
	case *types.Signature:
		return "a variable function"
	case *types.Chan:
		return "a channel"
	case *types.Interface:
		return "what an interface holds"
	}
	return ""
}

func isError(t types.Type) bool {
	errorType := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	return types.Implements(t, errorType)
}

// synchronised finds a lock or an atomic in the value itself; both exist only
// to guard state.
func synchronised(t types.Type) string {
	if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != nil {
		switch named.Obj().Pkg().Path() {
		case "sync", "sync/atomic":
			return "a " + named.Obj().Pkg().Name() + "." + named.Obj().Name()
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for field := range u.Fields() {
			if inside := synchronised(field.Type()); inside != "" {
				return inside
			}
		}
	case *types.Array:
		return synchronised(u.Elem())
	}
	return ""
}

// assignments finds every assignment to a variable at package level or to a
// part of it.
func assignments(pkg typedPackage) map[types.Object]token.Position {
	found := map[types.Object]token.Position{}
	note := func(target ast.Expr) {
		for {
			switch e := target.(type) {
			case *ast.ParenExpr:
				target = e.X
			case *ast.IndexExpr:
				target = e.X
			case *ast.SelectorExpr:
				target = e.X
			case *ast.StarExpr:
				target = e.X
			case *ast.Ident:
				if object := pkg.info.Uses[e]; object != nil && object.Parent() == pkg.types.Scope() {
					found[object] = pkg.fset.Position(e.Pos())
				}
				return
			default:
				return
			}
		}
	}
	for _, file := range pkg.files {
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.AssignStmt:
				for _, target := range n.Lhs {
					note(target)
				}
			case *ast.IncDecStmt:
				note(n.X)
			}
			return true
		})
	}
	return found
}

func TestStateRulesBite(t *testing.T) {
	exports := listExports(t, "sync/atomic", "regexp", "embed", "errors")
	for body, want := range map[string]int{
		`var version = "dev"`:                  0,
		`var point = struct{ x, y int }{1, 2}`: 0,
		`type point struct{}; func f() any { var m = map[int]int{}; m[1] = 2; return m }`: 0,
		`import "errors"; var ErrGone = errors.New("gone")`:                               0,
		`type E struct{}; func (*E) Error() string { return "" }; var errGone = &E{}`:     0,
		`import "regexp"; var word = regexp.MustCompile("a")`:                             0,
		`import "embed"; var files embed.FS`:                                              0,
		`type I interface{}; type T struct{}; var _ I = (*T)(nil)`:                        0,
		`var m = map[int]int{}`:                                                           1,
		`var a, b = []int{}, "fine"`:                                                      1,
		`type table []int; func build() table { return nil }; var rows = build()`:         1,
		`var p = &struct{}{}`:                                                             1,
		`var p = new(int)`:                                                                1,
		`var now = func() int { return 0 }`:                                               1,
		`var i any`:                                                                       1,
		`var c = make(chan int)`:                                                          1,
		`import "sync"; var mu sync.Mutex`:                                                1,
		`import "sync/atomic"; var guarded struct{ n [2]atomic.Int64 }`:                   1,
		`var count int; func f() { count++ }`:                                             1,
		`var point struct{ x int }; func f() { (point.x) = 1 }`:                           1,
		`var cells [2]int; func f() { cells[0], _ = 1, 2 }`:                               1,
	} {
		file := parseSource(t, "events/a.go", []byte("package events; "+body))
		pkg := typeCheck(module+"/events", []sourceFile{file}, importing(file.fset, exports))
		if got := checkState(pkg); len(got) != want {
			t.Errorf("%s: %d findings, want %d: %v", body, len(got), want, got)
		}
	}
}
