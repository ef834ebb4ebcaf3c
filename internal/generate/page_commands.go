package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// nothing says which values count as absent in what callers send.
const nothing = `An optional field that is null is absent. An optional text that is "" is absent too, unless the
field says that an empty text clears something. A required field may not be null. Where any JSON is
accepted, null is an ordinary value. Unknown fields, duplicate names, invalid UTF-8 and more than %d
levels of objects and lists are refused.`

func commandsPage() ([]byte, error) {
	p := newPage("Commands")
	p.line(`This page lists every command with its fields, its events and an example. A command is a request on
%s:`, "`skein.cmd.{tenant}.{noun}.{verb}`")
	p.code("sh", `bin/skein cmd thread.create '{"key":"hello"}'`)
	p.line(`A reply means that the events are durable, and visible to a query with the reply's %s. Publish the
same command on %s, and it is stored and executed exactly once; a
refusal then appears on the timeline as %s.`, "`seq`", "`skein.submit.{tenant}.{noun}.{verb}`", "[`command.rejected`](events.md#commandrejected)")
	p.line("JSON Schemas: [commands](../schema/files/commands).")
	p.line(nothing, schema.MaxDepth)
	p.line("## The request")
	if err := p.fields(events.Request{}); err != nil {
		return nil, err
	}
	p.line("## The reply")
	if err := p.fields(events.Reply{}); err != nil {
		return nil, err
	}
	p.line("## Errors")
	p.line("A refusal has the header `%s` and the body\n`{\"error\": {\"code\", \"message\", \"details\"?}}`. The details of an `invalid_request` name the `path` of\nthe fault, a JSON pointer.", events.HeaderErrorCode)
	p.table([]string{"code", "number", "the same request may succeed later"}, errorRows())
	p.line("## All of them")
	var rows [][]string
	for _, c := range events.Commands() {
		rows = append(rows, []string{fmt.Sprintf("[`%s`](#%s)", c.Name, anchor(c.Name)), c.Doc})
	}
	p.table([]string{"command", "meaning"}, rows)
	p.line("A command needs a `threadId` and may be part of a `thread.commit`, unless its section says otherwise.")
	for _, c := range events.Commands() {
		if err := commandSection(p, c); err != nil {
			return nil, err
		}
	}
	p.patterns()
	return p.Bytes(), nil
}

func codes() []events.Code {
	return []events.Code{
		events.InvalidRequest, events.Unauthorized, events.Forbidden, events.NotFound, events.VersionConflict, events.AlreadyExists, events.Held,
		events.PayloadTooLarge, events.IllegalTransition, events.QueueFull, events.Unavailable, events.ProjectionBehind,
	}
}

func errorRows() [][]string {
	var rows [][]string
	for _, code := range codes() {
		retry := "no"
		if code.Retry() {
			retry = "yes"
		}
		rows = append(rows, []string{"`" + string(code) + "`", strconv.Itoa(code.Status()), retry})
	}
	return rows
}

func commandSection(p *page, c events.Command) error {
	p.line("## %s", c.Name)
	p.line("%s", c.Doc)
	var facts []string
	switch {
	case c.Tenant:
		facts = append(facts, "It belongs to the tenant, and takes no `threadId`.")
	case c.Creates:
		facts = append(facts, "It needs no `threadId`.")
	}
	if c.Single {
		facts = append(facts, "It cannot be part of a `thread.commit`.")
	}
	if c.First {
		facts = append(facts, "In a `thread.commit` it must be the first command.")
	}
	if len(facts) > 0 {
		p.line("%s", strings.Join(facts, " "))
	}
	if c.Unlogged {
		p.line("It makes no event.")
	} else if len(c.Events) > 0 {
		p.line("Events: %s.", names(c.Events))
	} else {
		p.line("Events: those of its commands.")
	}
	if err := p.fields(c.New()); err != nil {
		return err
	}
	r, err := c.ExampleRequest()
	if err != nil {
		return err
	}
	text, err := indented(r)
	if err != nil {
		return err
	}
	p.code("json", text)
	return nil
}
