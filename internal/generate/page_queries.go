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
	p := newPage("Queries")
	p.line(`This page lists every query and the document that answers it. A query is a request on
%s, and its body holds its fields:`, "`skein.query.{tenant}.{noun}.{verb}`")
	p.code("sh", "bin/skein query thread.get '{\"threadId\":\"key:hello\"}'")
	p.line(`A query has 30 s, and then fails as %s. A caller that waits for less says so in the header
%s, in milliseconds, so that no work is done for a caller that is gone. The Go
client and the CLI send it.`, "`unavailable`", "`"+events.HeaderWait+"`")
	p.line("JSON Schemas: [queries](../schema/files/queries), [documents](../schema/files/resources).")
	p.line(nothing, schema.MaxDepth)
	p.line("## Which state a query reads")
	p.line(`These fields mean the same in every query that has them. A query waits for its read model, at most
5 s, and otherwise answers %s: it never returns older data than was asked for. Every query
takes %s and %s, unless its section says otherwise.`, "`projection_behind`", "`minSeq`", "`minVersion`")
	shared, err := sharedFields()
	if err != nil {
		return nil, err
	}
	p.described(shared)
	p.line("## All of them")
	var rows [][]string
	for _, q := range events.Queries() {
		answer, err := answerOf(q)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{fmt.Sprintf("[`%s`](#%s)", q.Name, anchor(q.Name)), q.Doc, fmt.Sprintf("[%s](#%s)", answer.Name, answer.Name)})
	}
	p.table([]string{"query", "meaning", "answer"}, rows)
	for _, q := range events.Queries() {
		if err := querySection(p, q, shared); err != nil {
			return nil, err
		}
	}
	p.line("# Documents")
	p.line(`Times are UTC with three fraction digits. Absent fields are left out, never null. Fields may be added:
a reader skips unknown ones. Messages and log lines follow Standard Agents: times in microseconds,
every field present, null where nothing is known ([messages](messages.md)). A document that is stamped
also has:`)
	stamp, err := schema.Describe(events.Stamp{})
	if err != nil {
		return nil, err
	}
	p.described(stamp)
	for _, r := range schema.Resources() {
		if r.Name == "request" || r.Name == "reply" { // they are on the page of the commands
			continue
		}
		p.line("## %s", r.Name)
		fields, err := documentFields(r)
		if err != nil {
			return nil, err
		}
		stamped := ""
		fields = slices.DeleteFunc(fields, func(f schema.Description) bool {
			known := slices.Contains(stamp, f)
			if known {
				stamped = " It is stamped."
			}
			return known
		})
		p.line("%s%s", r.Doc, stamped)
		p.described(fields)
	}
	p.line("The forms of texts are those of [commands](commands.md#forms-of-texts).")
	return p.Bytes(), nil
}

// sharedFields returns the fields that say which state a query reads.
func sharedFields() ([]schema.Description, error) {
	fields, err := schema.Describe(events.GetThread{})
	return slices.DeleteFunc(fields, func(f schema.Description) bool {
		return f.Name != "minSeq" && f.Name != "minVersion" && !strings.HasPrefix(f.Name, "at")
	}), err
}

// documentFields returns the fields of a document. A field that holds documents
// with a section of their own links there and omits their fields.
func documentFields(r schema.Resource) ([]schema.Description, error) {
	fields, err := schema.Describe(r.New())
	if err != nil {
		return nil, err
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(r.New())) {
		held := f.Type
		for held.Kind() == reflect.Slice || held.Kind() == reflect.Pointer {
			held = held.Elem()
		}
		section := sectionOf(held)
		if section == "" || section == r.Name {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = slices.DeleteFunc(fields, func(d schema.Description) bool {
			return strings.HasPrefix(d.Name, name+".") || strings.HasPrefix(d.Name, name+"[].")
		})
		for i := range fields {
			if d := &fields[i]; d.Name == name {
				before, _ := strings.CutSuffix(d.Type, "object")
				d.Type = fmt.Sprintf("%s[%s](#%s)", before, section, section)
			}
		}
	}
	return fields, nil
}

// sectionOf returns the name of the document of a Go type, or "" if it has none.
func sectionOf(t reflect.Type) string {
	for _, r := range schema.Resources() {
		if reflect.TypeOf(r.New()) == t {
			return r.Name
		}
	}
	return ""
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

func querySection(p *page, q events.Query, shared []schema.Description) error {
	p.line("## %s", q.Name)
	answer, err := answerOf(q)
	if err != nil {
		return err
	}
	fields, err := schema.Describe(q.New())
	if err != nil {
		return err
	}
	also := " It takes no `minSeq`."
	fields = slices.DeleteFunc(fields, func(f schema.Description) bool {
		known := f.Name != "at" && slices.Contains(shared, f)
		if known && f.Name == "minSeq" {
			also = ""
		}
		return known
	})
	p.line("%s The answer is [%s](#%s).%s", q.Doc, answer.Name, answer.Name, also)
	p.described(fields)
	text, err := indented(q.Example)
	if err != nil {
		return err
	}
	p.code("json", text)
	return nil
}
