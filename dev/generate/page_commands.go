package main

import (
	"fmt"
	"slices"
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
	p, err := newPage("Commands")
	if err != nil {
		return nil, err
	}
	p.line(`Every command, with its fields and events. A command is a request on
%s:`, "`skein.cmd.{tenant}.{noun}.{verb}`")
	p.code("sh", `bin/skein cmd thread.create '{"key":"hello"}'`)
	p.line(`A reply means that the events are durable, and visible to a query with the reply's %s. Publish the
same command on %s, and it is stored and executed exactly once; a
refusal then appears on the timeline as %s.`, "`seq`", "`skein.submit.{tenant}.{noun}.{verb}`", "[`command.rejected`](events.md#commandrejected)")
	p.line("JSON Schemas: [commands](../schema/files/commands).")
	p.line("%s", legend())
	if err := requestSections(p); err != nil {
		return nil, err
	}
	for _, c := range events.Commands() {
		if err := commandSection(p, c); err != nil {
			return nil, err
		}
	}
	p.patterns()
	return p.Bytes(), nil
}

// requestSections says what holds for every command.
func requestSections(p *page) error {
	p.line("## The request")
	if err := p.fields(events.Request{}); err != nil {
		return err
	}
	p.line(nothing, schema.MaxDepth)
	p.line("One request, whole:")
	c, _ := events.LookupCommand("thread.status")
	r, err := c.ExampleRequest()
	if err != nil {
		return err
	}
	if err := p.example(r); err != nil {
		return err
	}
	p.line(`The fields and the example of a command are those of %s. A command needs a %s and may be part of a
%s, unless one of these words follows its description:`, "`data`", "`threadId`", "`thread.commit`")
	p.item("- ", "*Tenant*: it belongs to the tenant, and takes no `threadId`.")
	p.item("- ", "*New*: it needs no `threadId`.")
	p.item("- ", "*Alone*: it cannot be part of a `thread.commit`.")
	p.item("- ", "*First*: in a `thread.commit` it must be the first command.")
	p.WriteByte('\n')
	p.line("## The reply")
	if err := p.fields(events.Reply{}); err != nil {
		return err
	}
	p.line("## Errors")
	p.line("A refusal has the header `%s`, a number, and the body\n`{\"error\": {\"code\", \"message\", \"details\"?}}`. The details of an `invalid_request` name the `path` of\nthe fault, a JSON pointer.", events.HeaderErrorCode)
	p.line("The codes are %s. The same request may succeed later after %s.", strings.Join(numbered(codes()), ", "), strings.Join(retried(codes()), ", "))
	return nil
}

func codes() []events.Code {
	return []events.Code{
		events.InvalidRequest, events.Unauthorized, events.Forbidden, events.NotFound, events.VersionConflict, events.AlreadyExists, events.Held, events.PositionAhead,
		events.PayloadTooLarge, events.IllegalTransition, events.QueueFull, events.Unavailable, events.ProjectionBehind,
	}
}

// numbered names codes with their numbers.
func numbered(codes []events.Code) (all []string) {
	for _, code := range codes {
		all = append(all, fmt.Sprintf("`%s` (%d)", code, code.Status()))
	}
	return all
}

// retried names the codes after which the same request may succeed later.
func retried(codes []events.Code) (all []string) {
	for _, code := range codes {
		if (&events.Error{Code: code}).Retry() {
			all = append(all, "`"+string(code)+"`")
		}
	}
	return all
}

// eventsOf lists the events of a command: those of another command, if that has nearly as many, and
// the rest.
func eventsOf(c events.Command) string {
	var like events.Command
	for _, each := range events.Commands() {
		if each.Name == c.Name {
			break // a command with the same events refers to the first
		}
		if len(each.Events) > len(like.Events) && slices.Equal(each.Events, c.Events) {
			like = each
		}
	}
	for _, each := range events.Commands() {
		if len(each.Events) < len(c.Events) && len(each.Events) > len(like.Events) && without(each.Events, c.Events) == nil {
			like = each
		}
	}
	if len(like.Events) <= 4 {
		return names(c.Events)
	}
	text := fmt.Sprintf("those of [`%s`](#%s)", like.Name, anchor(like.Name))
	if rest := without(c.Events, like.Events); rest != nil {
		text += ", and " + names(rest)
	}
	return text
}

// without returns the types that are not in the other list.
func without(types, other []events.Type) (rest []events.Type) {
	for _, each := range types {
		if !slices.Contains(other, each) {
			rest = append(rest, each)
		}
	}
	return rest
}

func commandSection(p *page, c events.Command) error {
	p.line("## %s", c.Name)
	facts := []string{c.Doc}
	switch {
	case c.Tenant:
		facts = append(facts, "*Tenant.*")
	case c.Creates:
		facts = append(facts, "*New.*")
	}
	if c.Single {
		facts = append(facts, "*Alone.*")
	}
	if c.First {
		facts = append(facts, "*First.*")
	}
	switch {
	case c.Unlogged:
		facts = append(facts, "No event.")
	case len(c.Events) > 0:
		facts = append(facts, "Events: "+eventsOf(c)+".")
	default:
		facts = append(facts, "Events: those of its commands.")
	}
	p.line("%s", strings.Join(facts, " "))
	if err := p.fields(c.New()); err != nil {
		return err
	}
	return p.instructive(c.Example, 3)
}
