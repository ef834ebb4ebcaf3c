package api

import (
	"net/http"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/api/a2a"
	"github.com/skein-threads/skein/api/agui"
	"github.com/skein-threads/skein/api/chat"
	"github.com/skein-threads/skein/api/completions"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openaifiles"
	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/api/rest"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// Options configures a Handler.
type Options struct {
	Conn    *nats.Conn         // with the permissions of every tenant that is served; required
	Service client.Service     // see edge.Options
	Names   events.Names       // of subjects; default prefix skein
	Auth    edge.Authenticator // required
	Ops     http.Handler       // serves /healthz, /readyz and /metrics; required

	Realm   string        // see edge.Options
	Serves  []string      // see edge.Options
	Listen  ListenOptions // whom the listener serves, and how
	OpenOps bool          // metrics need no credential, as on loopback

	Activity *quota.Activity // see edge.Options
	Bodies   *quota.Pool     // see edge.Options

	Metrics    edge.Metrics    // default none
	System     console.System  // what the console shows to operators; default nothing
	Operations rest.Operations // what /api/operations shows to them; default nothing
	Operators  []string        // ids of keys whose holders see it
	Prices     []string        // of models, for the console; see console.Options

	A2AAgent string // whose card is at /.well-known/agent-card.json; default none

	Endpoints *Endpoints // thread endpoints; default those of every server
}

// Handler serves everything that Skein has over HTTP. It is safe for concurrent use.
type Handler struct{ edge *edge.Edge }

// New returns a Handler.
func New(o Options) (*Handler, error) {
	own := edge.Options{Conn: o.Conn, Service: o.Service, Names: o.Names, Auth: o.Auth, Realm: o.Realm, Metrics: o.Metrics, Serves: o.Serves, Activity: o.Activity, Bodies: o.Bodies}
	if err := o.Listen.Edge(&own); err != nil {
		return nil, err
	}
	e, err := edge.New(own)
	if err != nil {
		return nil, err
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if path != "/metrics" || o.OpenOps {
			e.HandlePublic("GET "+path, o.Ops)
			continue
		}
		e.Handle("GET "+path, func(w http.ResponseWriter, r *http.Request, _ *edge.Caller) error {
			o.Ops.ServeHTTP(w, r)
			return nil
		})
	}
	edge.RouteSessions(e)
	if o.Endpoints == nil {
		o.Endpoints = NewEndpoints()
	}
	EndpointRoutes(e, o.Endpoints)
	operators := edge.OperatorKeys(o.Operators)
	rest.Routes(e, rest.Options{Operations: o.Operations, Operators: operators})
	chat.Routes(e)
	openresponses.Routes(e)
	completions.Routes(e)
	openaifiles.Routes(e)
	embeddingsRoutes(e)
	if err := mcpRoutes(e, o.Listen.Tokens.Issuer); err != nil {
		return nil, err
	}
	agui.Routes(e)
	a2a.Routes(e, a2a.Options{Agent: o.A2AAgent})
	if err := console.Routes(e, console.Options{System: o.System, Operators: operators, Prices: o.Prices}); err != nil {
		return nil, err
	}
	return &Handler{e}, nil
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.edge.ServeHTTP(w, r) }

// Routes lists the patterns of all routes, as http.ServeMux has them, and the prefixes under
// which every path is served.
func (h *Handler) Routes() []string { return h.edge.Routes() }

// Close ends the streams of the handler, each after the event that it is sending, and
// returns when they have ended. Other requests continue.
func (h *Handler) Close() { h.edge.Close() }
