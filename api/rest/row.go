package rest

import (
	"net/http"
	"strings"
	"sync"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// Row is one route: a command, a query, or a handler of its own.
type Row struct {
	Method string
	Path   string // a pattern of http.ServeMux; {thread} is the thread
	Doc    string

	Command, Query string // its name, noun.verb, unless serve is set

	fill    map[string]string // fields that values of the path fill, by the value's name
	fixed   map[string]string // fields that the route sets
	created func(*events.Reply) (status int, location string)
	serve   func(*service, http.ResponseWriter, *http.Request, *edge.Caller) error
	shows   shown // what OpenAPI says of a handler of its own
}

// pattern returns the row's pattern for the router.
func (r Row) pattern() string { return r.Method + " " + r.Path }

// handler returns the handler that serves the row.
func (r Row) handler(s *service) edge.Handler {
	switch {
	case r.serve != nil:
		return func(w http.ResponseWriter, req *http.Request, c *edge.Caller) error { return r.serve(s, w, req, c) }
	case r.Command != "":
		return func(w http.ResponseWriter, req *http.Request, c *edge.Caller) error { return r.command(w, req, c) }
	default:
		return func(w http.ResponseWriter, req *http.Request, c *edge.Caller) error { return r.query(w, req, c) }
	}
}

// pathValues returns the fields that the path and the route itself set. {thread} is not among
// them.
func (r Row) pathValues(req *http.Request) map[string]string {
	fields := map[string]string{}
	for value, field := range r.fill {
		fields[field] = req.PathValue(value)
	}
	for field, value := range r.fixed {
		fields[field] = value
	}
	return fields
}

// hasThread reports whether the path names a thread.
func (r Row) hasThread() bool { return strings.Contains(r.Path, "{thread}") }

// service holds the state that the handlers share.
type service struct {
	Options
	feeds     *feeds
	described func() ([]byte, error) // the description of all routes, made once
}

// Options says what the routes have besides the client of their caller.
type Options struct {
	Operations Operations     // default none, as in a gateway
	Operators  edge.Operators // who may ask for them
}

// Routes adds the routes of /api to an edge.
func Routes(e *edge.Edge, o Options) {
	s := &service{Options: o, feeds: newFeeds(), described: sync.OnceValues(OpenAPI)}
	e.FoldSlashes("/api/threads/{thread}/files/")
	for _, r := range Rows() {
		e.Handle(r.pattern(), r.handler(s))
	}
}
