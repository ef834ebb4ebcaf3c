package house

import (
	"go/types"
	"slices"
	"testing"
)

// integersAllowed are the integers of the packages that a Go program uses, other than
// int64 and int (of lengths and counts that no request and no document has).
func integersAllowed() []string {
	return []string{
		"events.Time",             // a type, so that no microseconds are taken for something else
		"events.Commit.Seq",       // a message of the log: its sequence as NATS has it
		"events.BrokenError.Seq",  // that of one that cannot be read
		"events.DecodeCommit.seq", // that of one that is to be read
	}
}

// A Go program that takes a sequence or a version from one answer and puts it into the
// next request converts nothing: int64 is the one type of both.
func TestIntegersOfPublicPackages(t *testing.T) {
	packages := typedPackagesOf(t, func(dir string) bool { return dir == "events" || dir == "client" })
	if len(packages) != 2 {
		t.Fatalf("%d packages; want events and client", len(packages))
	}
	var used []string
	for _, p := range packages {
		for place, kind := range integersOf(p.types) {
			if slices.Contains(integersAllowed(), place) || slices.Contains(integersAllowed(), kind) {
				used = append(used, place, kind)
				continue
			}
			t.Errorf("%s is a %s; make it int64, as all sequences, versions and counts of requests and documents are", place, kind)
		}
	}
	for _, name := range integersAllowed() {
		if !slices.Contains(used, name) {
			t.Errorf("integersAllowed() lists %q, which is not needed any more; remove it", name)
		}
	}
}

// integersOf finds what is exported and has an integer other than int64 and int, by
// place: package.Type.Field, package.Func.param or package.Type.Method.param.
func integersOf(p *types.Package) map[string]string {
	found := map[string]string{}
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		place := p.Name() + "." + name
		switch object := object.(type) {
		case *types.TypeName:
			if s, ok := object.Type().Underlying().(*types.Struct); ok {
				integersOfStruct(found, place, s)
			}
			if object.IsAlias() {
				continue
			}
			methods := types.NewMethodSet(types.NewPointer(object.Type()))
			for i := range methods.Len() {
				if m := methods.At(i).Obj(); m.Exported() && m.Pkg() == p {
					integersOfCall(found, place+"."+m.Name(), m.Type().(*types.Signature))
				}
			}
		case *types.Func:
			integersOfCall(found, place, object.Type().(*types.Signature))
		}
	}
	return found
}

func integersOfStruct(found map[string]string, place string, s *types.Struct) {
	for i := range s.NumFields() {
		f := s.Field(i)
		if !f.Exported() {
			continue
		}
		if inner, ok := f.Type().(*types.Struct); ok {
			integersOfStruct(found, place+"."+f.Name(), inner)
		}
		integerIn(found, place+"."+f.Name(), f.Type())
	}
}

func integersOfCall(found map[string]string, place string, s *types.Signature) {
	for v := range s.Params().Variables() {
		integerIn(found, place+"."+v.Name(), v.Type())
	}
	for v := range s.Results().Variables() {
		integerIn(found, place+"."+v.Name(), v.Type())
	}
}

// integerIn notes an integer that stands in a type, through pointers, lists and functions.
func integerIn(found map[string]string, place string, t types.Type) {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		integerIn(found, place, t.Elem())
	case *types.Slice:
		if b, ok := t.Elem().(*types.Basic); !ok || b.Kind() != types.Byte {
			integerIn(found, place, t.Elem())
		}
	case *types.Map:
		integerIn(found, place, t.Key())
		integerIn(found, place, t.Elem())
	case *types.Signature:
		integersOfCall(found, place, t)
	case *types.Basic:
		if t.Info()&types.IsInteger != 0 && t.Kind() != types.Int64 && t.Kind() != types.Int {
			found[place] = t.String()
		}
	case *types.Named:
		b, ok := t.Underlying().(*types.Basic)
		if ok && b.Info()&types.IsInteger != 0 && t.Obj().Pkg() != nil && t.Obj().Pkg().Name() == "events" {
			found[place] = "events." + t.Obj().Name()
		}
	}
}
