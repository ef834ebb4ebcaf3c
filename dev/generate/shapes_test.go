package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// text returns the fields that a section prints, then its references.
func (s section) text(kind func(schema.Description) string) string {
	var all []string
	for _, f := range s.lines {
		all = append(all, f.Name+" "+kind(f))
	}
	for _, r := range s.as {
		all = append(all, r.as(""))
	}
	return strings.Join(all, "; ")
}

// An object that several tables hold has one section, and no other table prints its fields.
func TestShapes_RepeatedObjectIsPrintedOnce(t *testing.T) {
	s, err := newShapes()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.named(reflect.TypeFor[events.Usage]()); got != "Usage" {
		t.Errorf("the object of events.Usage has the section %q", got)
	}
	names := map[string]bool{}
	for _, each := range s.all() {
		if names[anchor(each.name)] {
			t.Errorf("there are two sections %s; links cannot tell them apart", anchor(each.name))
		}
		names[anchor(each.name)] = true
		for _, f := range each.lines {
			if strings.HasPrefix(f.Name, "usage.") {
				t.Errorf("%s prints %s again", each.name, f.Name)
			}
		}
	}
	if len(s.objects) < 5 {
		t.Errorf("only %d objects have a section", len(s.objects))
	}
}

// A query that is answered with a plain list of documents links to the document, and the list
// has no section; one that says more has a section. A document that no query shows has none. Limits
// are those of what callers send.
func TestShapes_ListLinksToDocument(t *testing.T) {
	page, err := queriesPage()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"Answer: a page of [thread](#thread) in `threads`.": true,
		"Answer: a list of [step](#step) in `steps`.":       true,
		"## thread_list\n":                 false,
		"Answer: [item_list](#item_list).": true,
		"A page of items.\n\n- **`items`** ([item](#item)[])\n- **`total`**": true,
		"## operation_list\n":                    false, // no query answers with it
		"- `title` (≤ 1024): A title for lists.": true,  // thread.update refers to it
		"- `type`: What kind of part it is.":     true,  // no caller sends it
		"A page of a tenant's runs.\n":           true,
		"items[]":                                false,
	} {
		if strings.Contains(string(page), text) != want {
			t.Errorf("the page has %q: %t, want %t", text, !want, want)
		}
	}
}

// What no answer has is on no page.
func TestShapes_InternalFieldsAreOmitted(t *testing.T) {
	s, err := newShapes()
	if err != nil {
		t.Fatal(err)
	}
	fields, err := schema.Describe(events.Thread{})
	if err != nil {
		t.Fatal(err)
	}
	hidden := 0
	for _, f := range fields {
		if strings.HasPrefix(f.Doc, internal) {
			hidden++
		}
	}
	seen, err := s.collapsed(reflect.TypeFor[events.Thread]())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range seen {
		if strings.HasPrefix(f.Doc, internal) || strings.HasPrefix(f.Name, "parents") {
			t.Errorf("%s is internal", f.Name)
		}
	}
	if hidden == 0 {
		t.Error("a thread has no internal fields: test another document")
	}
}

// Fields with the same name, type and text as those of a section are named and not repeated;
// a field that differs in one of them is printed.
func TestRefer(t *testing.T) {
	field := func(name, kind, doc string) schema.Description {
		return schema.Description{Name: name, Type: kind, Doc: doc}
	}
	base := section{name: "thing", lines: []schema.Description{field("a", "id", "An id."), field("b", "time", "A time."), field("c", "text", "A text."), field("d", "text", "Another."), field("e", "object", "An object."), field("e.f", "text", "Its text.")}}
	fields := []schema.Description{field("c", "text", "A text."), field("d", "integer", "Another."), field("b", "time", "A time."), field("a", "id", "An id.")}
	fields[2].Required = true
	for name, c := range map[string]struct {
		fields []schema.Description
		want   string
	}{
		"three are the same": {fields, "d integer; `c`, **`b`**, `a`: as in [thing](#thing)."},
		"two are not enough": {fields[:3], "c text; d integer; b time"},
		"an object is named without its fields": {
			append(fields[:1:1], field("e", "object", "An object."), field("e.f", "text", "Its text.")), "`c`, `e`: as in [thing](#thing).",
		},
	} {
		var got section
		got.lines, got.as = refer(c.fields, []section{base})
		if text := got.text(func(f schema.Description) string { return f.Type }); text != c.want {
			t.Errorf("%s: got %q, want %q", name, text, c.want)
		}
	}
}
