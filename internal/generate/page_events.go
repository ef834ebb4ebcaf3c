package main

import (
	"fmt"
	"strings"

	"github.com/skein-threads/skein/events"
)

func eventsPage() ([]byte, error) {
	p := newPage("Events")
	p.line("This page lists every event with its fields and an example. To watch events:")
	p.code("sh", "bin/skein tail --from start")
	p.line(`An event says what happened to a thread. It is a CloudEvent 1.0 in structured JSON. All events of
one command on one thread are one message of the log, a CloudEvents JSON batch; on the timeline each
is a message of its own. %s is the content of the event, and %s names the schema and its
version.`, "`data`", "`dataschema`")
	p.line(`Fields may be added: a reader skips unknown ones. Absent fields are left out, never null. An event of
an older version is upcast when it is read, and never rewritten.`)
	p.line("JSON Schemas: [events](../schema/files/events),\n[envelope](../schema/files/event-envelope.json).")
	if err := wholeEvent(p); err != nil {
		return nil, err
	}
	p.line("## All of them")
	var rows [][]string
	for _, r := range events.Catalog() {
		schema := fmt.Sprintf("[%d](../schema/files/events/%s.json)", r.Version, r.Type)
		rows = append(rows, []string{fmt.Sprintf("[`%s`](#%s)", r.Type, anchor(string(r.Type))), schema, "`" + r.Entity() + "`", r.Doc})
	}
	p.line("Events are in the log and on the timeline, unless their section says otherwise. A version links to its schema.")
	p.table([]string{"type", "version", "entity", "meaning"}, rows)
	for _, r := range events.Catalog() {
		if err := eventSection(p, r); err != nil {
			return nil, err
		}
	}
	p.line("The forms of texts are those of [commands](commands.md#forms-of-texts).")
	return p.Bytes(), nil
}

// wholeEvent shows one event with its envelope.
func wholeEvent(p *page) error {
	row, _ := events.Lookup(events.ItemCreatedType)
	e := row.ExampleEvent()
	body, err := e.Append(nil)
	if err != nil {
		return err
	}
	text, err := indented(events.JSON(body))
	if err != nil {
		return err
	}
	p.line("One event, whole:")
	p.code("json", text)
	return nil
}

func eventSection(p *page, r events.Row) error {
	p.line("## %s", r.Type)
	p.line("%s", r.Doc)
	if r.Transient {
		p.line("It is transport: on the timeline's subject, never in the log.")
	}
	var old []string
	for _, up := range r.Upcasts() {
		old = append(old, fmt.Sprintf("- from version %d: %s", up.From, up.Doc))
	}
	if len(old) > 0 {
		p.line("Older versions, as they are read:\n\n%s", strings.Join(old, "\n"))
	}
	if err := p.fields(r.New()); err != nil {
		return err
	}
	text, err := indented(r.Example)
	if err != nil {
		return err
	}
	p.code("json", text)
	return nil
}
