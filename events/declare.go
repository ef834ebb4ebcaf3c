package events

import (
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Command declares one command: its name noun.verb, its data, and the events that it may make.
// The function that decides it is declared in commands/thread.
type Command struct {
	Name    string
	Doc     string
	Example any // of its data, for the documentation
	Events  []Type
	Creates bool // it needs no threadId
	Single  bool // it cannot be part of a thread.commit
	First   bool // it can be part of one as its first command only
	Tenant  bool // it belongs to the tenant rather than a thread: it has no threadId
	// Unlogged says that the command changes nothing in the log, and so makes no event.
	Unlogged bool
	Relates  Relates

	new    func() any
	decode func(JSON) (any, error)
}

// New returns a zero value of the command's data.
func (c Command) New() any { return c.new() }

// Decode decodes the command's data strictly: an unknown field is an error. It validates types
// only, not the rest of the schema.
func (c Command) Decode(raw JSON) (any, error) { return c.decode(raw) }

func command[T any](name, doc string, example T, made ...Type) Command {
	return Command{Name: name, Doc: doc, Example: example, Events: made, new: func() any { return *new(T) }, decode: strict[T]}
}

// by returns the rows of a catalog by a key that each has for itself.
func by[K comparable, R any](rows []R, key func(R) K) map[K]R {
	m := make(map[K]R, len(rows))
	for _, r := range rows {
		m[key(r)] = r
	}
	return m
}

// strict decodes a value and refuses unknown fields, repeated names and invalid UTF-8.
func strict[T any](raw JSON) (any, error) {
	var v T
	err := json.Unmarshal(raw, &v, json.RejectUnknownMembers(true))
	return v, err
}

var commandsByName = by(Commands(), func(c Command) string { return c.Name })

// LookupCommand returns the command of that name, and reports whether there is one.
func LookupCommand(name string) (Command, bool) {
	c, ok := commandsByName[name]
	return c, ok
}

var commandsByType = by(Commands(), func(c Command) reflect.Type { return reflect.TypeOf(c.Example) })

// CommandOf returns the command whose data has the Go type of data, and reports whether
// there is one.
func CommandOf(data any) (Command, bool) {
	c, ok := commandsByType[reflect.TypeOf(data)]
	return c, ok
}

// Query declares one query.
type Query struct {
	Name    string
	Doc     string
	Example any // of its data, for the documentation
	Answer  any // a zero value of the document that answers it
	Scope   Scope
	Entries Entries // of ManyThreads

	new func() any
}

// Scope returns what of a tenant the command changes.
func (c Command) Scope() Scope {
	switch {
	case strings.HasPrefix(c.Name, "definition."):
		return OfDefinitions
	case c.Tenant:
		return WholeTenant
	default:
		return OneThread
	}
}

// of returns the query with a scope other than OneThread.
func (q Query) of(s Scope) Query {
	q.Scope = s
	return q
}

// listing returns the query with the scope ManyThreads.
func (q Query) listing(list, thread string) Query {
	q.Scope, q.Entries = ManyThreads, Entries{list, thread}
	return q
}

// relating returns the command with the threads that it concerns besides its own.
func (c Command) relating(r Relates) Command {
	c.Relates = r
	return c
}

// New returns a zero value of the query's data.
func (q Query) New() any { return q.new() }

// Waits reports whether the query takes minSeq, and so can wait for a read model.
func (q Query) Waits() bool {
	_, ok := reflect.TypeOf(q.Example).FieldByName("Fresh")
	return ok
}

// QueryFor is the data of a query that an A answers, such as a [GetThread], for a Thread. Only
// types of this package are.
type QueryFor[A any] interface{ answer() A }

// query declares a query whose data is a T and whose answer is an A.
func query[T QueryFor[A], A any](name, doc string, example T) Query {
	return Query{Name: name, Doc: doc, Example: example, Answer: *new(A), new: func() any { return *new(T) }}
}

var queriesByName = by(Queries(), func(q Query) string { return q.Name })

// LookupQuery returns the query of that name, and reports whether there is one.
func LookupQuery(name string) (Query, bool) {
	q, ok := queriesByName[name]
	return q, ok
}

var queriesByType = by(Queries(), func(q Query) reflect.Type { return reflect.TypeOf(q.Example) })

// QueryOf returns the query whose data has the Go type of data, and reports whether
// there is one.
func QueryOf(data any) (Query, bool) {
	q, ok := queriesByType[reflect.TypeOf(data)]
	return q, ok
}

// Document declares what a query answers or a read model holds. It has a JSON Schema
// of its own.
type Document struct {
	Name string
	Doc  string

	new func() any
}

// New returns a zero value of the document's Go type.
func (d Document) New() any { return d.new() }

func document[T any](name, doc string) Document {
	return Document{Name: name, Doc: doc, new: func() any { return *new(T) }}
}

// The examples of the rows tell one story: a thread about an order, one turn, one
// tool. The pages of docs/ show them, and tests check them against the schemas.
const (
	exampleTenant    = "acme"
	exampleThread    = "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405162"
	exampleChild     = "T-0195e5d0-4d2b-7a11-8e05-2b3c4d5e6f70"
	exampleContext   = "ctx_0195e5d03c1a7b2e9f441d2e3f405163"
	exampleQuestion  = "itm_0195e5d03c1a7b2e9f441d2e3f405164"
	exampleAnswer    = "itm_0195e5d03c1a7b2e9f441d2e3f405165"
	exampleExecution = "exe_0195e5d03c1a7b2e9f441d2e3f405166"
	exampleStep      = "stp_0195e5d03c1a7b2e9f441d2e3f405167"
	exampleEffect    = "0195e5d0-3c1a-4b2e-9f44-1d2e3f405168"
	exampleCommand   = "0195e5d0-3c1a-7b2e-9f44-1d2e3f405169"
	exampleSession   = "sess_0195e5d03c1a7b2e9f441d2e3f405170"
	exampleMoment    = "2026-02-20T12:00:00.000Z"
)

// exampleText returns the content of a message.
func exampleText(text string) JSON {
	return JSON(`[{"type":"input_text","text":"` + text + `"}]`)
}

// ExampleRequest returns the body of a command's example.
func (c Command) ExampleRequest() (Request, error) {
	body, err := json.Marshal(c.Example, json.Deterministic(true))
	r := Request{CommandID: exampleCommand, Data: body}
	if !c.Creates && !c.Tenant {
		r.ThreadID = exampleThread
	}
	return r, err
}

// ExampleEvent returns the row's example with its envelope.
func (r Row) ExampleEvent() Event {
	return Event{
		ID: EventID(exampleTenant, exampleThread, exampleCommand, 0), Type: r.Type, Subject: exampleQuestion,
		Time: TimeOf(time.Date(2026, 2, 20, 12, 0, 0, 123456000, time.UTC)), Tenant: exampleTenant, ThreadID: exampleThread,
		Version: 3, CommandID: exampleCommand, Correlation: exampleExecution, Actor: "ada", Data: r.Example,
	}
}
