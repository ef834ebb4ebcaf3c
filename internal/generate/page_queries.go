package main

import (
	"fmt"
	"reflect"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

func queriesPage() ([]byte, error) {
	list, err := index(queryExamples())
	if err != nil {
		return nil, err
	}
	p := newPage("Queries")
	p.line(`A query is a request on %s; its body is what it takes. It waits, at most 5 s, until its read model has got as far
as %s or %s ask for, and else answers %s: never stale data in silence. The schemas are in
[schema/files/queries](../schema/files/queries), those of the documents in [schema/files/resources](../schema/files/resources).`,
		"`skein.query.{tenant}.{noun}.{verb}`", "`minSeq`", "`minVersion`", "`projection_behind`")
	p.line(`A query has 30 s, and then is given up as %s. A sender that waits for less says so in the header %s, in milliseconds:
nobody works on what nobody waits for. The Go client and the command line say it.`, "`unavailable`", "`"+events.HeaderWait+"`")
	p.line(nothing, schema.MaxDepth)
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
		if err := querySection(p, q, list); err != nil {
			return nil, err
		}
	}
	p.line("# Documents")
	p.line("Times are UTC with three fraction digits. What is absent is left out, and never null. Fields may be added: a\nreader skips those that it does not know. Messages and log lines are as Standard Agents has them: times in\nmicroseconds, every field there, null where nothing is known (see [messages.md](messages.md)).")
	for _, r := range schema.Resources() {
		if r.Name == "request" || r.Name == "reply" { // they are on the page of the commands
			continue
		}
		p.line("## %s", r.Name)
		p.line("%s", r.Doc)
		if err := p.fields(r.New()); err != nil {
			return nil, err
		}
	}
	p.patterns()
	return p.Bytes(), nil
}

// answerOf gives the document that a query answers.
func answerOf(q events.Query) (schema.Resource, error) {
	answer, ok := answers()[q.Name]
	if !ok {
		return schema.Resource{}, fmt.Errorf("no answer of %s; add it in internal/generate", q.Name)
	}
	for _, r := range schema.Resources() {
		if reflect.TypeOf(r.New()) == reflect.TypeOf(answer) {
			return r, nil
		}
	}
	return schema.Resource{}, fmt.Errorf("%T is no resource of package schema", answer)
}

func querySection(p *page, q events.Query, list examples) error {
	p.line("## %s", q.Name)
	answer, err := answerOf(q)
	if err != nil {
		return err
	}
	p.line("%s It answers [%s](#%s).", q.Doc, answer.Name, answer.Name)
	if err := p.fields(q.New()); err != nil {
		return err
	}
	example, err := list.like(q.New())
	if err != nil {
		return err
	}
	text, err := indented(example)
	if err != nil {
		return err
	}
	p.code("json", text)
	return nil
}
