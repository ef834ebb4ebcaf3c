package edge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// HeaderRequestID is the header with the id of a request, in every answer. It has a second name, by
// which clients of other APIs look for it.
const (
	HeaderRequestID      = "Skein-Request-Id"
	headerOtherRequestID = "X-Request-Id"
)

// The realms.
const (
	ServeRealm   = "serve"
	GatewayRealm = "gateway"
)

// Options configures an Edge.
type Options struct {
	Conn  *nats.Conn    // with the permissions of every tenant that it serves
	Names events.Names  // of subjects; default prefix skein
	Auth  Authenticator // required

	// Service answers commands and queries in the process of the edge, if it does; default none: they
	// go over Conn, as everything else does.
	Service client.Service

	// Realm is the edges that accept each other's tickets and sessions: serve, the default, or gateway.
	// Gateways may write theirs alone, so that none can make a session of an operator's.
	Realm string

	// Serves are the tenants whose links are opened; empty: all that Conn reaches.
	Serves []string

	Hosts   []string       // names by which it may be asked, besides those of its listener
	Origins []string       // whose pages may use it, such as https://shop.example; default its own
	Proxies []netip.Prefix // whose headers X-Forwarded-Host and X-Forwarded-Proto count
	Key     Limits         // of each credential
	Tenant  Limits         // of each tenant
	Fair    float64        // requests per second of a tenant while other tenants are active; further ones wait; default 1,000 for each processor; negative: any number
	// Activity records which tenants are active, here and elsewhere in the process; default: here
	// alone.
	Activity *quota.Activity
	// Bodies are the places for bodies that take long to decode; default DefaultBodies.
	Bodies *quota.Pool

	Metrics Metrics // default none

	Stall      time.Duration // how long a reader may take nothing, and an upload send nothing; default 30 s
	Ping       time.Duration // between two comments of a stream; default 15 s
	SocketPing time.Duration // between two pings of a WebSocket; default 20 s
}

// Edge serves routes. It is safe for concurrent use once all routes are added.
type Edge struct {
	opts  Options
	mux   *http.ServeMux
	trees []tree

	patterns []string // of the mux
	files    []string // prefixes of paths of files; see FoldSlashes

	marks  marks
	meters *meters
	links  *meters // of requests with a link, and no credential

	tickets, sessions passes

	mu      sync.Mutex
	closed  bool
	lasting map[*response]bool // answers that last until something ends them, and whether they are streams
	open    int                // streams
	ended   sync.WaitGroup     // of the handlers of what lasts
}

// tree is a route for all paths that begin with a prefix.
type tree struct {
	prefix string // ends with a slash
	route  route
}

// Caller is who makes a request.
type Caller struct {
	Principal
	Client *client.Client // acts as the principal, and may do no more
	Stall  time.Duration  // how long the caller may take nothing of a stream, or send nothing of a file

	SocketPing time.Duration // between two pings of a WebSocket

	marks  *marks
	paced  func(ctx context.Context, bytes int) error
	decode func(ctx context.Context, size int, work func() error) error
	awaits func(stream bool) error
}

// Weigh waits until so many bytes may be sent to the caller's tenant, or were looked at for it and
// left out. Answers are weighed as they are written, and a WebSocket's frames are not.
func (c *Caller) Weigh(ctx context.Context, bytes int) error { return c.paced(ctx, bytes) }

// Awaits prepares a request that writes something and then waits for a run, or streams it. Before
// anything is written it refuses a credential that may follow no run, and a stream over the limits.
// The request's context ends when the edge closes.
func (c *Caller) Awaits(stream bool) error { return c.awaits(stream) }

// Decode runs work on a body of some bytes, or on a WebSocket's message. A large one takes long to
// decode, so that such work takes turns: it waits for a place, unless the request still has the place
// with which its handler began, which it leaves at its first query or command. The work must not wait
// for anything.
func (c *Caller) Decode(ctx context.Context, size int, work func() error) error {
	return c.decode(ctx, size, work)
}

// Handler answers a request. An error that it returns before it wrote anything is the
// answer; see [WriteError]. The request's context ends when the reader has gone, when the
// credential ends, and, once the answer is a stream or a WebSocket (package stream), when the edge closes.
type Handler func(w http.ResponseWriter, r *http.Request, c *Caller) error

// New returns an Edge without routes.
func New(o Options) (*Edge, error) {
	if o.Conn == nil || o.Auth == nil {
		return nil, errors.New("an edge needs a connection and an authenticator")
	}
	if o.Names.Prefix == "" {
		o.Names = events.DefaultNames()
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	o.Realm = cmp.Or(o.Realm, ServeRealm)
	o.Stall, o.Ping, o.SocketPing = cmp.Or(o.Stall, streamStall), cmp.Or(o.Ping, streamPing), cmp.Or(o.SocketPing, socketPing)
	if o.Bodies == nil {
		o.Bodies = quota.NewPool("bodies", quota.Places{Total: DefaultBodies()}, nil)
	}
	e := &Edge{opts: o, mux: http.NewServeMux(), lasting: map[*response]bool{}, meters: newMeters(o.Key, o.Tenant, o.Fair, o.Activity), links: linkMeters(o.Fair)}
	e.meters.metrics, e.links.metrics = o.Metrics, o.Metrics
	e.tickets = passes{edge: e, kind: "ticket", once: true, lasts: ticketLasts, ofCredential: mostOfCredential, ofTenant: mostOfTenant}
	e.sessions = passes{edge: e, kind: "session", lasts: sessionLasts, ofCredential: mostOfCredential, ofTenant: mostOfTenant}
	return e, nil
}

// Handle adds a route. The pattern is one of http.ServeMux, with a method.
func (e *Edge) Handle(pattern string, h Handler) { e.add(pattern, route{e, h, nil}) }

// HandlePages adds a route for people: refuse writes the answer when there is a refusal, in
// place of [WriteError].
func (e *Edge) HandlePages(pattern string, h Handler, refuse func(http.ResponseWriter, *http.Request, error)) {
	e.add(pattern, route{e, h, refuse})
}

// HandlePublic adds a route that authenticates nobody.
func (e *Edge) HandlePublic(pattern string, h http.Handler) { e.add(pattern, public{h}) }

func (e *Edge) add(pattern string, h http.Handler) {
	e.patterns = append(e.patterns, pattern)
	e.mux.Handle(pattern, h)
}

// Routes lists the patterns of the routes, and the prefixes of trees.
func (e *Edge) Routes() []string {
	list := slices.Clone(e.patterns)
	for _, t := range e.trees {
		list = append(list, t.prefix)
	}
	return list
}

// public is a handler that needs no principal.
type public struct{ http.Handler }

func (p public) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.Handler.ServeHTTP(routed(w), r)
}

// HandleTree adds a route for every method, and for all paths that begin with prefix, which
// ends with a slash. Paths reach h as they were sent: http.ServeMux would answer one with
// an empty segment with a redirect.
func (e *Edge) HandleTree(prefix string, h Handler) {
	e.trees = append(e.trees, tree{prefix, route{e, h, nil}})
}

// FoldSlashes makes one slash of several in what follows a prefix, which ends with a slash and may
// have wildcards for whole segments: in the path of a file they mean the same.
func (e *Edge) FoldSlashes(prefix string) { e.files = append(e.files, prefix) }

// ServeHTTP serves the routes.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := &measured{ResponseWriter: w, metrics: e.opts.Metrics, surface: surfaceOf(r.URL.Path), arrived: time.Now()}
	readRest := afterRefusal(w, r)
	e.serve(m, r)
	m.begin(http.StatusOK) // what net/http sends for a handler that wrote nothing
	if readRest != nil && m.status >= http.StatusBadRequest && m.status != http.StatusRequestTimeout {
		readRest()
	}
}

// serve serves the routes to a writer that is measured.
func (e *Edge) serve(w http.ResponseWriter, r *http.Request) {
	id := uuid.Must(uuid.NewV7()).String()
	w.Header().Set(HeaderRequestID, id)
	w.Header().Set(headerOtherRequestID, id)
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// net/http does not tell whether there was a length, too, by which a proxy may have
		// taken what follows for a part of this request.
		w.Header().Set("Connection", "close")
	}
	err := e.checkHost(r)
	preflight := false
	if err == nil {
		preflight, err = e.checkOrigin(w, r)
	}
	switch {
	case err != nil:
		e.refuse(w, r, err)
		return
	case preflight:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if !utf8.ValidString(r.URL.Path) { // no id, key or name is like this
		e.refuse(w, r, noRoute(r))
		return
	}
	for _, t := range e.trees {
		if strings.HasPrefix(r.URL.Path+"/", t.prefix) {
			t.route.ServeHTTP(w, r)
			return
		}
	}
	r = e.folded(r)
	if !plain(r.URL.EscapedPath()) || strings.ContainsRune(r.URL.Path, 0) { // http.ServeMux would redirect
		e.refuse(w, r, noRoute(r))
		return
	}
	m := &unrouted{to: w, header: http.Header{}}
	if e.mux.ServeHTTP(m, r); m.status != 0 {
		e.refuse(w, r, m.refusal(w, r))
	}
}

// refuse answers a request that nobody is known to make.
func (e *Edge) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if late := e.meters.begin(r.Context(), quota.Anonymous, 1); late != nil {
		err = late
	}
	WriteError(w, err)
}

// Close ends the streams, each after the event that it is sending, and the requests that wait for a
// run, and waits for their handlers. Later ones end at once; other requests continue.
func (e *Edge) Close() {
	e.mu.Lock()
	e.closed = true
	for w := range e.lasting {
		w.end(errClosing)
	}
	e.mu.Unlock()
	e.ended.Wait()
}

// errClosing ends what lasts of an edge that closes.
var errClosing = events.Errorf(events.Unavailable, "this process of Skein stops; what was begun goes on: resume the stream, or send the same request again")

// route is a handler with its edge.
type route struct {
	edge   *Edge
	handle Handler
	refuse func(http.ResponseWriter, *http.Request, error) // nil: WriteError
}

func (t route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w = routed(w)
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	ctx, turn := quota.WithTurn(ctx)
	answer := &response{ResponseWriter: w, ctx: ctx, edge: t.edge, end: end}
	defer answer.done()
	err := t.answer(answer, r.WithContext(ctx), turn)
	if closing := Closing(ctx); closing != nil && err != nil {
		err = closing
	}
	switch {
	case err == nil || answer.began:
	case t.refuse != nil:
		t.refuse(answer, r, err)
	default:
		WriteError(answer, err)
	}
}

func (t route) answer(w *response, r *http.Request, turn *quota.Turn) error {
	meters := t.edge.meters
	c, err := t.edge.caller(w, r)
	if err != nil {
		if late := meters.begin(r.Context(), quota.Anonymous, 1); late != nil {
			err = late
		}
		return err
	}
	noteKnown(r.Context())
	defer w.endWith(c.Principal)()
	c.paced = func(ctx context.Context, bytes int) error { return meters.weighSent(ctx, c.Tenant, bytes) }
	w.paced = c.paced
	c.awaits = func(stream bool) error { return w.awaits(c.Principal, stream) }
	c.decode = func(ctx context.Context, size int, work func() error) error {
		return w.decode(ctx, c.Tenant, size, work)
	}
	if w.place, err = meters.admit(c.Principal, isUpload(r), mayStream(r), time.Now()); err == nil {
		err = meters.begin(r.Context(), c.Tenant, 1)
		if err == nil && mayStream(r) { // not while what others of the tenant sent is too much
			err = meters.weighSent(r.Context(), c.Tenant, 0)
		}
		if err == nil { // last: it takes a place for a large body, with which nothing is waited for
			err = w.readBody(r, c.Tenant)
		}
	} else if late := meters.begin(r.Context(), c.Tenant, 1); late != nil { // who is refused waits, too
		err = late
	}
	if err != nil {
		return err
	}
	turn.Grant(c.Tenant)
	return t.handle(w, r, c)
}

// caller returns who makes a request.
func (e *Edge) caller(w *response, r *http.Request) (*Caller, error) {
	p, err := e.principal(r)
	if err != nil {
		return nil, err
	}
	o := client.Options{Tenant: p.Tenant, Names: e.opts.Names, Service: e.opts.Service, Actor: p.Subject}
	within, err := reachOf(p, e.opts.Conn, o)
	if err != nil {
		return nil, err
	}
	o.TraceParent = r.Header.Get(events.HeaderTraceParent)
	guard := &guard{names: e.opts.Names, who: p, marks: &e.marks, fresh: readsOwnWrites(r.URL.Path), reach: within, decoded: w.leaveBody, done: w.dropBody}
	guard.follows = func(ctx context.Context) error { return e.meters.begin(ctx, p.Tenant, followCost) }
	o.Guard = guard
	c, err := client.New(e.opts.Conn, o)
	if err != nil {
		return nil, err
	}
	return &Caller{Principal: p, Client: c, Stall: e.opts.Stall, SocketPing: e.opts.SocketPing, marks: &e.marks}, nil
}
