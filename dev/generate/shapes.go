package main

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// section is a table on the page of queries that other tables link to: a document, or an
// object that several tables hold.
type section struct {
	name  string
	of    reflect.Type
	notes string               // what its fields are besides
	lines []schema.Description // those that are printed there
	as    []reference
}

// reference names the fields of a table that a section has with the same type and meaning.
type reference struct {
	section string
	fields  []schema.Description
}

// shapes are the sections, in the order of the page.
type shapes struct{ documents, objects []section }

// leastShared is how many rows must be the same before a table refers to a section for them,
// or an object gets a section.
const leastShared = 3

// newShapes finds which objects occur more than once in the tables of all pages, and adds
// a section for each.
func newShapes() (*shapes, error) {
	s := &shapes{}
	var roots []reflect.Type
	answers, err := answered()
	if err != nil {
		return nil, err
	}
	for _, r := range schema.Resources() {
		if t := reflect.TypeOf(r.New()); isPart(r) {
			roots = append(roots, t)
		} else if answers[t] {
			s.documents = append(s.documents, section{name: r.Name, of: t})
		}
	}
	for _, c := range events.Commands() {
		roots = append(roots, reflect.TypeOf(c.New()))
	}
	for _, r := range events.Catalog() {
		roots = append(roots, reflect.TypeOf(r.New()))
	}
	for _, q := range events.Queries() {
		roots = append(roots, reflect.TypeOf(q.New()))
	}
	for {
		object, err := s.mostRepeated(roots)
		if err != nil {
			return nil, err
		}
		if object == nil {
			break
		}
		s.objects = append(s.objects, section{name: object.Name(), of: object})
	}
	slices.SortFunc(s.objects, func(a, b section) int { return cmp.Compare(a.name, b.name) })
	return s, s.fill()
}

// answered returns the types that queries answer with, and those that they hold.
func answered() (map[reflect.Type]bool, error) {
	types := map[reflect.Type]bool{}
	for _, q := range events.Queries() {
		answer := reflect.TypeOf(q.Answer)
		fields, err := schema.Describe(q.Answer)
		if err != nil {
			return nil, err
		}
		types[answer] = true
		for _, f := range fields {
			if f.Holds != nil {
				types[f.Holds] = true
			}
		}
	}
	return types, nil
}

// isPart reports whether a resource is on the page of commands.
func isPart(r schema.Resource) bool { return r.Name == "request" || r.Name == "reply" }

// all returns the sections in the order of the page.
func (s *shapes) all() []section { return slices.Concat(s.documents, s.objects) }

// named returns the name of the section of a type, which may be nil, or "".
func (s *shapes) named(t reflect.Type) string {
	if t == nil {
		return ""
	}
	for _, each := range s.all() {
		if each.of == t {
			return each.name
		}
	}
	return ""
}

// mostRepeated returns the object without a section whose repetition costs most rows, or nil.
func (s *shapes) mostRepeated(roots []reflect.Type) (reflect.Type, error) {
	occurrences := map[reflect.Type]int{}
	rows := map[reflect.Type]int{}
	for _, each := range s.all() {
		roots = append(roots, each.of)
	}
	for _, root := range roots {
		fields, err := s.collapsed(root)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			if f.Holds == nil || s.named(f.Holds) != "" {
				continue
			}
			occurrences[f.Holds]++
			rows[f.Holds] = 0
			for _, inner := range fields {
				if isWithin(inner.Name, f.Name) {
					rows[f.Holds]++
				}
			}
		}
	}
	var most reflect.Type
	saved := func(t reflect.Type) int { return (occurrences[t] - 1) * rows[t] }
	for t := range occurrences {
		if saved(t) < leastShared || rows[t] < 2 {
			continue
		}
		if most == nil || saved(t) > saved(most) || saved(t) == saved(most) && t.Name() < most.Name() {
			most = t
		}
	}
	return most, nil
}

// isWithin reports whether a qualified name is of a field of the object, or of the objects of
// the list, with the other name.
func isWithin(name, object string) bool {
	return strings.HasPrefix(name, object+".") || strings.HasPrefix(name, object+"[].")
}

// collapsed returns the fields of a struct that readers see. A field that holds the object
// of a section omits its fields.
func (s *shapes) collapsed(of reflect.Type) ([]schema.Description, error) {
	fields, err := schema.Describe(reflect.Zero(of).Interface())
	if err != nil {
		return nil, err
	}
	var out []schema.Description
	omitted := ""
	for _, f := range fields {
		if omitted != "" && isWithin(f.Name, omitted) {
			continue
		}
		if strings.HasPrefix(f.Doc, internal) {
			omitted = f.Name
			continue
		}
		if s.named(f.Holds) != "" {
			omitted = f.Name
		}
		out = append(out, f)
	}
	return out, nil
}

// internal begins the text of a field of a read model that no answer has.
const internal = "Internal: "

// fill decides which rows each section prints, so that later ones refer to earlier ones.
func (s *shapes) fill() error {
	var before []section
	for _, list := range []*[]section{&s.documents, &s.objects} {
		for i := range *list {
			each := &(*list)[i]
			fields, err := s.collapsed(each.of)
			if err != nil {
				return err
			}
			fields, each.notes, err = withoutUsual(fields)
			if err != nil {
				return err
			}
			each.lines, each.as = refer(fields, before)
			before = append(before, *each)
		}
	}
	return nil
}

// pageNote marks a document that is one page of a list.
const pageNote = " A page."

// withoutUsual removes the fields that documents have in common, and says which there were.
func withoutUsual(fields []schema.Description) (rest []schema.Description, notes string, err error) {
	stamp, err := schema.Describe(events.Stamp{})
	rest = slices.DeleteFunc(fields, func(f schema.Description) bool {
		switch {
		case f == stamp[0]:
			notes += " Stamped."
		case slices.Contains(stamp, f):
		case f.Name == "nextCursor":
			notes += pageNote
		default:
			return false
		}
		return true
	})
	return rest, notes, err
}

// received returns the sections that describe what callers send, in part at least.
func (s *shapes) received() (map[string]bool, error) {
	names := map[string]bool{}
	for _, c := range events.Commands() {
		lines, as, err := s.table(c.New())
		if err != nil {
			return nil, err
		}
		s.receive(names, lines, as)
	}
	for _, q := range events.Queries() {
		lines, err := s.collapsed(reflect.TypeOf(q.New()))
		if err != nil {
			return nil, err
		}
		s.receive(names, lines, nil)
	}
	return names, nil
}

// receive adds the sections that fields of what callers send lead to.
func (s *shapes) receive(names map[string]bool, lines []schema.Description, as []reference) {
	for _, r := range as {
		names[r.section] = true
	}
	for _, f := range lines {
		name := s.named(f.Holds)
		if name == "" || names[name] {
			continue
		}
		names[name] = true
		for _, each := range s.all() {
			if each.name == name {
				s.receive(names, each.lines, each.as)
			}
		}
	}
}

// table returns the rows of a struct, and what it has in common with sections.
func (s *shapes) table(value any) ([]schema.Description, []reference, error) {
	fields, err := s.collapsed(reflect.TypeOf(value))
	if err != nil {
		return nil, nil, err
	}
	lines, as := refer(fields, s.all())
	return lines, as, nil
}

// refer splits fields into those to print, and those that a section prints with the same name,
// type and meaning.
func refer(fields []schema.Description, sections []section) (lines []schema.Description, as []reference) {
	lines = fields
	for {
		var best reference
		for _, each := range sections {
			var same []schema.Description
			for _, f := range lines {
				if slices.ContainsFunc(each.lines, func(d schema.Description) bool { return isSame(d, f) }) {
					same = append(same, f)
				}
			}
			if len(same) > len(best.fields) {
				best = reference{each.name, same}
			}
		}
		if len(best.fields) < leastShared {
			return lines, as
		}
		as = append(as, reference{best.section, outermost(best.fields)})
		lines = slices.DeleteFunc(slices.Clone(lines), func(f schema.Description) bool {
			return slices.ContainsFunc(best.fields, func(d schema.Description) bool { return d.Name == f.Name || isWithin(f.Name, d.Name) })
		})
	}
}

// outermost returns the fields that are not within another of them.
func outermost(fields []schema.Description) (out []schema.Description) {
	for _, f := range fields {
		if !slices.ContainsFunc(fields, func(d schema.Description) bool { return isWithin(f.Name, d.Name) }) {
			out = append(out, f)
		}
	}
	return out
}

// isSame reports whether two fields mean the same.
func isSame(a, b schema.Description) bool {
	return a.Name == b.Name && a.Type == b.Type && a.Doc == b.Doc && a.Holds == b.Holds
}

// as says which fields are printed elsewhere.
func (r reference) as(page string) string {
	return fmt.Sprintf("%s: as in [%s](%s#%s).", namesOf(r.fields), r.section, page, anchor(r.section))
}
