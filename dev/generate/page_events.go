package main

import (
	"fmt"

	"github.com/skein-threads/skein/events"
)

func eventsPage() ([]byte, error) {
	p, err := newPage("Events")
	if err != nil {
		return nil, err
	}
	p.output = true
	p.line("Every event, with its fields. To watch events:")
	p.code("sh", "bin/skein tail --from start")
	p.line(`An event says what happened to a thread. It is a CloudEvent 1.0 in structured JSON. All events of
one command on one thread are one message of the log, a CloudEvents JSON batch; on the timeline each
is a message of its own. %s is the content of the event, and %s names the schema and its
version. The part of the type before the first dot is the entity, as in subjects.`, "`data`", "`dataschema`")
	p.line(`Fields may be added: a reader skips unknown ones. Absent fields are left out, never null. An event of
an older version is upcast when it is read, and never rewritten.`)
	p.line("JSON Schemas: [events](../schema/files/events), [envelope](../schema/files/event-envelope.json).\n[How to read the fields](commands.md#how-to-read-the-fields).")
	if err := wholeEvent(p); err != nil {
		return nil, err
	}
	p.line("The fields are those of `data`. Events have version 1, and are in the log and on the\ntimeline, unless their section says otherwise.")
	for _, r := range events.Catalog() {
		if err := eventSection(p, r); err != nil {
			return nil, err
		}
	}
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
	p.line("One event, whole:")
	return p.example(events.JSON(body))
}

func eventSection(p *page, r events.Row) error {
	p.line("## %s", r.Type)
	text := r.Doc
	if r.Version > 1 {
		text += fmt.Sprintf(" Version %d.", r.Version)
	}
	if r.Transient {
		text += " It is only on the timeline's subject."
	}
	p.line("%s", text)
	for _, up := range r.Upcasts() {
		p.line("Read from version %d: %s", up.From, up.Doc)
	}
	return p.fields(r.New())
}
