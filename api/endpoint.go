package api

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// DefineThreadEndpoint returns a handler of requests about one thread, to be registered with
// skein.Server.Endpoint: it answers at /threads/{threadId}/ and the endpoint's name, with any
// method. The thread is looked up first. state can do only what the principal of the request
// may do, and its Execution is nil.
//
// handle must write an answer, or return an error before it writes anything: an *events.Error is
// answered with its status, any other with 500, and so is a panic, which is logged. No answer is a 500
// as well.
func DefineThreadEndpoint(handle func(w http.ResponseWriter, r *http.Request, state *client.ThreadState) error) http.Handler {
	return endpointHandler(handle)
}

// endpointHandler serves a thread endpoint. Outside of [Endpoints] it answers 500: it does not know the
// thread.
type endpointHandler func(w http.ResponseWriter, r *http.Request, state *client.ThreadState) error

// request is what a handler needs to know of its request.
type request struct {
	caller *edge.Caller
	thread string // an id, or key: and a key; not empty
}

// requestKey is the key of a *request in a context.
type requestKey struct{}

// requestOf returns what a context holds.
func requestOf(ctx context.Context) *request {
	req, _ := ctx.Value(requestKey{}).(*request)
	return req
}

// ServeHTTP looks the thread up and calls the handler.
func (h endpointHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := requestOf(r.Context())
	if req == nil {
		writeText(w, http.StatusInternalServerError, "Thread endpoints are served at /threads/{threadId}/{endpoint} only")
		return
	}
	state, err := lookUp(r.Context(), req)
	switch {
	case err == nil:
	case events.IsNotFound(err):
		writeText(w, http.StatusNotFound, "Thread not found: "+req.thread)
		return
	default:
		edge.WriteError(w, err)
		return
	}
	answer := &answer{ResponseWriter: w}
	var known *events.Error
	switch err = h.call(answer, r, state); {
	case answer.begun && err != nil:
		panic(http.ErrAbortHandler) // ends the connection: half an answer must not look whole
	case errors.As(err, &known):
		edge.WriteError(w, known)
	case err != nil: // the program's own, which may have written
		logError(r, "thread endpoint %s: %v", r.URL.Path, err)
		writeText(w, http.StatusInternalServerError, "The endpoint failed")
	case !answer.begun:
		writeText(w, http.StatusInternalServerError, "The endpoint wrote no answer")
	}
}

// call calls the handler. A panic is logged with its stack, and is an error.
func (h endpointHandler) call(w http.ResponseWriter, r *http.Request, state *client.ThreadState) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			logError(r, "thread endpoint %s panicked: %v\n%s", r.URL.Path, p, debug.Stack())
			err = errPanicked
		}
	}()
	return h(w, r, state)
}

// errPanicked is the error of a handler that panicked. The log has more.
var errPanicked = errors.New("it panicked")

// logError logs where the server of the request does.
func logError(r *http.Request, format string, args ...any) {
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}

// lookUp returns the state of the request's thread. The error is a not_found if there is none.
func lookUp(ctx context.Context, req *request) (*client.ThreadState, error) {
	if id, key := events.ThreadRef(req.thread); !events.ValidThreadID(id) && !events.ValidKey(key) {
		return nil, events.Missing("thread", req.thread) // no thread has such an id
	}
	now, err := req.caller.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	return now.Thread(ctx, req.thread)
}

// answer notes whether an answer has begun.
type answer struct {
	http.ResponseWriter
	begun bool
}

func (a *answer) WriteHeader(status int) {
	a.begun = a.begun || status >= 200 // others announce an answer
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(b)
}

// Flush sends what was written.
func (a *answer) Flush() {
	a.begun = true
	_ = http.NewResponseController(a.ResponseWriter).Flush() // the reader may have gone
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// writeText answers with an error in the form of Standard Agents.
func writeText(w http.ResponseWriter, status int, text string) {
	edge.WriteJSON(w, status, struct {
		Error string `json:"error"`
	}{text})
}

// namePattern is the form of an endpoint's name.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// endpointPrefix is where endpoints are served.
const endpointPrefix = "/threads/"

// EndpointRoutes adds all endpoints of a registry to an edge.
func EndpointRoutes(e *edge.Edge, registry *Endpoints) {
	e.HandleTree(endpointPrefix, func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		thread, name, err := parse(r.URL)
		switch {
		case err != nil:
			return err
		case thread == "" && r.Method == http.MethodPost:
			return events.Errorf(events.NotFound, "there is no route %s: threads are made with POST /api/threads; %s{threadId}/{endpoint} has a program's own endpoints", endpointPrefix, endpointPrefix)
		case thread == "":
			writeText(w, http.StatusBadRequest, "Thread ID required")
			return nil
		}
		h := registry.lookUp(name)
		if h == nil {
			return events.Errorf(events.NotFound, "there is no thread endpoint %.64q; those of every server are summary, messages, export and files", name)
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, &request{caller: c, thread: thread})))
		return nil
	})
}

// parse returns the thread and the endpoint that a path names; thread is empty if it names
// none. An endpoint's name is all that follows the thread.
func parse(u *url.URL) (thread, name string, err error) {
	rest := strings.TrimPrefix(u.EscapedPath()+"/", endpointPrefix)
	escaped, name, _ := strings.Cut(rest, "/")
	if thread, err = url.PathUnescape(escaped); err == nil {
		name, err = url.PathUnescape(strings.TrimSuffix(name, "/"))
	}
	if err != nil {
		return "", "", events.Errorf(events.InvalidRequest, "read the path: %w", err)
	}
	return thread, name, nil
}

// checkName reports what is wrong with an endpoint's name.
func checkName(name string) error {
	if !namePattern.MatchString(name) {
		return events.Invalid("/name", "%.64q is no name of an endpoint: 1 to 64 letters, digits, _ and -", name)
	}
	return nil
}
