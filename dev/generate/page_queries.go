package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

func queriesPage() ([]byte, error) {
	p, err := newPage("Queries")
	if err != nil {
		return nil, err
	}
	p.here = true
	p.line(`Every query, and the document that answers it. A query is a request on
%s, and its body holds its fields:`, "`skein.query.{tenant}.{noun}.{verb}`")
	p.code("sh", "bin/skein query thread.get '{\"threadId\":\"key:hello\"}'")
	p.line(`A query has 30 s, and then fails as %s. A caller that waits for less says so in the header
%s, in milliseconds; the clients of this repository send it. [What a request may
contain](commands.md#the-request) and the [errors](commands.md#errors) are those of commands.`, "`unavailable`", "`"+events.HeaderWait+"`")
	p.line("JSON Schemas: [queries](../schema/files/queries), [documents](../schema/files/resources).\n[How to read the fields](commands.md#how-to-read-the-fields).")
	p.line("## Fields that queries share")
	p.shared()
	neither, noVersion, err := withoutPosition()
	if err != nil {
		return nil, err
	}
	p.line(`A query waits until its read model shows %s and %s, and all that the log had when the
answering process started. If it names a thread, it waits for that thread only; a query of
definitions waits for definitions only. After 5 s, or a little before its sender stops waiting
(header %s), it answers %s, with the position of the read model: it never returns older data. Ask
again to wait longer. Every query takes %[1]s and %[2]s, except that
%[5]s take neither, and %[6]s no %[2]s. A field
without a text selects the entries with that value.`, "`minSeq`", "`minVersion`", "`"+events.HeaderWait+"`", "`projection_behind`", neither, noVersion)
	for _, q := range events.Queries() {
		if err := querySection(p, q); err != nil {
			return nil, err
		}
	}
	if err := documentSections(p); err != nil {
		return nil, err
	}
	return p.Bytes(), nil
}

func querySection(p *page, q events.Query) error {
	p.line("## %s", q.Name)
	answer, err := answerOf(q)
	if err != nil {
		return err
	}
	fields, err := p.shapes.collapsed(reflect.TypeOf(q.New()))
	if err != nil {
		return err
	}
	rest, shared := splitShared(fields)
	text := fmt.Sprintf("%s Answer: %s.", q.Doc, p.shapes.answer(answer.Name))
	if len(shared) > 0 {
		text += " Shared: " + strings.Join(shared, ", ") + "."
	}
	p.line("%s", text)
	if len(rest) > 0 || len(shared) == 0 {
		p.described(rest, nil)
	}
	return p.instructive(q.Example, 3)
}

// answer links to the document that answers a query or, if that is a plain list, to those
// that it lists.
func (s *shapes) answer(name string) string {
	for _, each := range s.documents {
		if held := s.lists(each); each.name == name && held != "" {
			what := "a list"
			if each.notes == pageNote {
				what = "a page"
			}
			return fmt.Sprintf("%s of [%s](#%s) in `%s`", what, held, anchor(held), each.lines[0].Name)
		}
	}
	return fmt.Sprintf("[%s](#%s)", name, anchor(name))
}

// lists returns the document that a document lists, if it does nothing else.
func (s *shapes) lists(each section) string {
	if len(each.lines) != 1 || len(each.as) > 0 || each.lines[0].Type != "list of object" {
		return ""
	}
	return s.named(each.lines[0].Holds)
}

// withoutPosition lists the queries that take neither minSeq nor minVersion, and those that take
// no minVersion.
func withoutPosition() (neither, noVersion string, err error) {
	var none, some []string
	for _, q := range events.Queries() {
		fields, err := schema.Describe(q.New())
		if err != nil {
			return "", "", err
		}
		takes := func(name string) bool {
			return slices.ContainsFunc(fields, func(f schema.Description) bool { return f.Name == name })
		}
		switch {
		case takes("minVersion"):
		case takes("minSeq"):
			some = append(some, "`"+q.Name+"`")
		default:
			none = append(none, "`"+q.Name+"`")
		}
	}
	return strings.Join(none, ", "), strings.Join(some, ", "), nil
}

// answerOf returns the document that answers a query.
func answerOf(q events.Query) (schema.Resource, error) {
	for _, r := range schema.Resources() {
		if reflect.TypeOf(r.New()) == reflect.TypeOf(q.Answer) {
			return r, nil
		}
	}
	return schema.Resource{}, fmt.Errorf("%s is answered with %T, which is not in events.Documents(); add its row", q.Name, q.Answer)
}

// documentSections writes the documents, then the objects that several tables hold.
func documentSections(p *page) error {
	p.line("# Documents")
	p.line(`Times are UTC with three fraction digits. Absent fields are left out, never null. Fields may be added:
a reader skips unknown ones. A status is a state of [a machine](state-machines.md). Messages and log lines follow Standard Agents: times in microseconds,
every field present, null where nothing is known ([messages](messages.md)). A page that is not the
last one has %s, the %s of the query for the next page. Documents that are only in
buckets or reports are in the JSON Schemas. A document with the mark *Stamped* has:`, "`nextCursor`", "`cursor`")
	stamp, err := schema.Describe(events.Stamp{})
	if err != nil {
		return err
	}
	p.described(stamp, nil)
	docs := map[string]string{}
	for _, r := range schema.Resources() {
		docs[r.Name] = r.Doc
	}
	answers := map[string]bool{}
	for _, q := range events.Queries() {
		answer, err := answerOf(q)
		if err != nil {
			return err
		}
		answers[answer.Name] = true
	}
	received, err := p.shapes.received()
	if err != nil {
		return err
	}
	for _, each := range p.shapes.documents {
		if answers[each.name] && p.shapes.lists(each) != "" {
			continue // its query says it
		}
		p.line("## %s", each.name)
		doc := docs[each.name]
		if each.notes != pageNote || !strings.HasPrefix(doc, "A page of ") {
			doc += each.notes
		}
		p.line("%s", doc)
		p.output = !received[each.name]
		p.described(each.lines, each.as)
	}
	p.line("# Objects")
	p.line("Several commands, events or documents hold these. They are named as in the JSON Schemas.")
	for _, each := range p.shapes.objects {
		p.line("## %s", each.name)
		p.output = !received[each.name]
		p.described(each.lines, each.as)
	}
	return nil
}
