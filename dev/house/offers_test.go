package house

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"strconv"
	"strings"
	"testing"
)

// Nothing that can be configured is ignored: every exported field of a struct
// named Config, Limits or Options is read by its own package, outside of what
// fills in defaults and validates.
func TestEveryConfigFieldIsRead(t *testing.T) {
	found := 0
	for _, pkg := range typedPackagesOf(t, func(dir string) bool { return room(dir) != "cmd" && dir != "events" }) { // whose options are for others to read
		n, unread := unreadFields(pkg)
		found += n
		for _, field := range unread {
			t.Errorf("%s: nothing reads %s but its defaults; use it or remove it", pkg.types.Path(), field)
		}
	}
	if found < 60 {
		t.Errorf("only %d fields were looked at", found)
	}
}

// isConfig reports whether a type says how something is to work.
func isConfig(name string) bool {
	return strings.HasSuffix(name, "Config") || strings.HasSuffix(name, "Options") || name == "Limits"
}

// unreadFields counts the fields of a package's configurations, and lists those
// that nothing reads.
func unreadFields(pkg typedPackage) (n int, unread []string) {
	owner := map[types.Object]string{}
	scope := pkg.types.Scope()
	for _, name := range scope.Names() {
		of, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || !isConfig(name) || !of.Exported() {
			continue
		}
		if s, ok := of.Type().Underlying().(*types.Struct); ok {
			for i := range s.NumFields() {
				if f := s.Field(i); f.Exported() && !f.Embedded() {
					owner[f] = name + "." + f.Name()
					n++
				}
			}
		}
	}
	if n == 0 {
		return 0, nil
	}
	read := map[types.Object]bool{}
	for _, file := range pkg.files {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && (strings.EqualFold(fn.Name.Name, "withDefaults") || strings.EqualFold(fn.Name.Name, "validate")) {
				continue
			}
			written := map[*ast.Ident]bool{}
			ast.Inspect(decl, func(node ast.Node) bool {
				switch x := node.(type) {
				case *ast.AssignStmt:
					for _, to := range x.Lhs {
						if s, ok := to.(*ast.SelectorExpr); ok {
							written[s.Sel] = true
						}
					}
				case *ast.KeyValueExpr:
					if key, ok := x.Key.(*ast.Ident); ok {
						written[key] = true
					}
				case *ast.Ident:
					if used := pkg.info.Uses[x]; used != nil && !written[x] {
						read[used] = true
					}
				case *ast.CallExpr: // a conversion to another struct takes every field
					if s, ok := conversionOf(pkg, x); ok {
						for i := range s.NumFields() {
							read[s.Field(i)] = true
						}
					}
				}
				return true
			})
		}
	}
	for f, name := range owner {
		if !read[f] {
			unread = append(unread, name)
		}
	}
	return n, unread
}

// conversionOf returns the struct that a call converts to another struct type.
func conversionOf(pkg typedPackage, call *ast.CallExpr) (*types.Struct, bool) {
	if len(call.Args) != 1 {
		return nil, false
	}
	var name *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	}
	arg, ok := call.Args[0].(*ast.Ident)
	if !ok || name == nil {
		return nil, false
	}
	if _, isType := pkg.info.Uses[name].(*types.TypeName); !isType || pkg.info.Uses[arg] == nil {
		return nil, false
	}
	s, ok := pkg.info.Uses[arg].Type().Underlying().(*types.Struct)
	return s, ok
}

// No flag of the command line is ignored: what a flag sets is used somewhere
// else. Of a field of a command's own options the field itself is, and of one that
// belongs to a request or to another package's configuration, the whole.
func TestEveryFlagIsRead(t *testing.T) {
	found := 0
	packages := typedPackagesOf(t, func(dir string) bool { return strings.HasPrefix(dir, "cmd/skein") })
	for _, pkg := range packages {
		n, unread := unreadFlags(pkg, packages...)
		found += n
		for _, flag := range unread {
			t.Errorf("nothing reads what the flag --%s sets", flag)
		}
	}
	if found < 60 {
		t.Errorf("only %d flags were looked at", found)
	}
}

// boundFlag is a flag with what it sets.
type boundFlag struct {
	name string
	to   types.Object
}

// boundFlags returns the flags of a package, and the names with which the calls that add them say
// what they set.
func boundFlags(pkg typedPackage) (flags []boundFlag, binds map[*ast.Ident]bool) {
	binds = map[*ast.Ident]bool{}
	for _, file := range pkg.files {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !strings.HasSuffix(strings.TrimSuffix(method.Sel.Name, "P"), "Var") {
				return true
			}
			address, isAddress := call.Args[0].(*ast.UnaryExpr)
			name, isText := call.Args[1].(*ast.BasicLit)
			if !isAddress || address.Op != token.AND || !isText || name.Kind != token.STRING {
				return true
			}
			said, err := strconv.Unquote(name.Value)
			if err != nil {
				return true
			}
			var set types.Object
			switch x := address.X.(type) {
			case *ast.Ident:
				set = pkg.info.Uses[x]
				binds[x] = true
			case *ast.SelectorExpr:
				set = ownPart(pkg, x)
				ast.Inspect(x, func(inner ast.Node) bool {
					if id, ok := inner.(*ast.Ident); ok {
						binds[id] = true
					}
					return true
				})
			}
			if set != nil {
				flags = append(flags, boundFlag{said, set})
			}
			return true
		})
	}
	return flags, binds
}

// unreadFlags counts the flags that a package has, and lists those whose
// variable nothing else uses, nor, of a field that is exported, one of the others.
func unreadFlags(pkg typedPackage, others ...typedPackage) (n int, unread []string) {
	flags, binds := boundFlags(pkg)
	read := map[types.Object]bool{}
	for id, used := range pkg.info.Uses {
		if !binds[id] {
			read[used] = true
		}
	}
	abroad := map[string]bool{} // names of this package's fields that others read
	for _, other := range others {
		_, binds := boundFlags(other)
		for id, used := range other.info.Uses {
			if v, ok := used.(*types.Var); ok && v.IsField() && v.Exported() && !binds[id] && v.Pkg().Path() == pkg.types.Path() {
				abroad[v.Name()] = true
			}
		}
	}
	// A field of an embedded struct of another package is read with any field or
	// method of that package.
	through := map[*types.Package]bool{}
	for used := range read {
		switch x := used.(type) {
		case *types.Var:
			through[x.Pkg()] = through[x.Pkg()] || x.IsField()
		case *types.Func:
			through[x.Pkg()] = through[x.Pkg()] || x.Signature().Recv() != nil
		}
	}
	for _, f := range flags {
		v, isVar := f.to.(*types.Var)
		if isVar && v.Embedded() {
			if named, ok := types.Unalias(v.Type()).(*types.Named); ok && through[named.Obj().Pkg()] {
				continue
			}
		}
		if !read[f.to] && !(isVar && v.IsField() && abroad[v.Name()]) {
			unread = append(unread, f.name)
		}
	}
	return len(flags), unread
}

// ownPart returns the last part of a selector that the package declares: what
// follows it is of another package's struct, which is handed on whole.
func ownPart(pkg typedPackage, s *ast.SelectorExpr) types.Object {
	if field := pkg.info.Uses[s.Sel]; field != nil && field.Pkg() == pkg.types {
		return field
	}
	switch x := s.X.(type) {
	case *ast.Ident:
		return embedding(pkg, pkg.info.Uses[x], s.Sel.Name)
	case *ast.SelectorExpr:
		return ownPart(pkg, x)
	}
	return nil
}

// embedding returns the embedded field through which a variable has a field, or
// the variable itself.
func embedding(pkg typedPackage, of types.Object, field string) types.Object {
	if of == nil {
		return nil
	}
	_, index, _ := types.LookupFieldOrMethod(of.Type(), true, pkg.types, field)
	if len(index) < 2 {
		return of
	}
	under := of.Type().Underlying()
	if p, ok := under.(*types.Pointer); ok {
		under = p.Elem().Underlying()
	}
	if s, ok := under.(*types.Struct); ok {
		return s.Field(index[0])
	}
	return of
}

func TestOfferRulesBite(t *testing.T) {
	source := `package p

type flags struct{}

func (flags) StringVar(to *string, name, usual string) {}

type Config struct {
	Read, Written, Filled string
	hidden string
}

func (c Config) withDefaults() Config {
	if c.Filled == "" {
		c.Filled = "x"
	}
	c.Written = "y"
	return c
}

func run(c Config) string { return Config{Written: c.Read}.hidden }

func main() {
	var f flags
	var used, unused string
	var o struct{ read, unread string }
	f.StringVar(&used, "used", "")
	f.StringVar(&unused, "unused", "")
	f.StringVar(&o.read, "read", "")
	f.StringVar(&o.unread, "unread", "")
	_ = used + o.read
}
`
	file := parseSource(t, path.Join("p", "p.go"), []byte(source))
	pkg := typeCheck("p", []sourceFile{file}, importing(file.fset, nil)) // it imports nothing
	if n, unread := unreadFields(pkg); n != 3 || len(unread) != 2 {
		t.Errorf("%d fields, unread %v", n, unread)
	}
	if n, unread := unreadFlags(pkg); n != 4 || strings.Join(unread, " ") != "unused unread" {
		t.Errorf("%d flags, unread %v", n, unread)
	}
}

// What a flag sets may be read by another package, by the name of an exported field.
func TestOfferRulesBite_FlagsOfOthers(t *testing.T) {
	shared := parseSource(t, path.Join("p", "p.go"), []byte(`package p

type flags struct{}

func (flags) StringVar(to *string, name, usual string) {}

type Remote struct{ Tenant, Creds string }

func (r *Remote) Flags(f flags) {
	f.StringVar(&r.Tenant, "tenant", "")
	f.StringVar(&r.Creds, "creds", "")
}
`))
	p := typeCheck("p", []sourceFile{shared}, importing(shared.fset, nil))
	other := parseSource(t, path.Join("q", "q.go"), []byte("package q\n\nimport \"p\"\n\nfunc run(r p.Remote) string { return r.Tenant }\n"))
	q := typeCheck("q", []sourceFile{other}, only{p.types})
	if n, unread := unreadFlags(p, p, q); n != 2 || strings.Join(unread, " ") != "creds" {
		t.Errorf("%d flags, unread %v", n, unread)
	}
}

// only imports one package, whatever its path.
type only struct{ pkg *types.Package }

func (o only) Import(string) (*types.Package, error) { return o.pkg, nil }
