package edge

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// What those who hold links may use of an edge: each tenant's together, and all together. They
// have nobody's credential, so they take nothing of the limits of those who have one.
func linkLimits() (tenant, all Limits) {
	return Limits{Rate: 50, InFlight: 16}, Limits{Rate: 500, InFlight: 64}
}

// linkMeters returns the meters of links. What is sent to all who hold links has the pace that one
// tenant has while others are active.
func linkMeters(fair float64) *meters {
	tenant, all := linkLimits()
	return &meters{
		what: [2]string{"the links of the tenant", "all links"}, gate: quota.NewGate(tenant.quota(), all.quota()),
		sent: newPace(cmp.Or(fair, fairRate()), nil), // its callers are anonymous
	}
}

// HandleLink adds a route for holders of links: to threads of the tenant that the path names as
// {tenant}. Its caller may ask what the token in the link opens, and nothing else. A session, a
// ticket or a key of the request counts for nothing.
func (e *Edge) HandleLink(pattern string, h Handler, refuse func(http.ResponseWriter, *http.Request, error)) {
	e.add(pattern, linkRoute{e, h, refuse})
}

// linkRoute is a handler for holders of links.
type linkRoute struct {
	edge   *Edge
	handle Handler
	refuse func(http.ResponseWriter, *http.Request, error)
}

func (l linkRoute) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &response{ // it limits how long a reader takes nothing, and how much all of them take
		ResponseWriter: routed(w), ctx: r.Context(), edge: l.edge, end: func(error) {},
		paced: func(ctx context.Context, bytes int) error { return l.edge.links.weighSent(ctx, quota.Anonymous, bytes) },
	}
	if err := l.answer(answer, r); err != nil {
		l.refuse(answer, r, err)
	}
}

func (l linkRoute) answer(w *response, r *http.Request) error {
	tenant := r.PathValue("tenant")
	if serves := l.edge.opts.Serves; !events.ValidTenant(tenant) || len(serves) > 0 && !slices.Contains(serves, tenant) {
		return events.Errorf(events.NotFound, "no share has this token")
	}
	place, err := l.edge.links.admit(Principal{Subject: tenant}, false, false, time.Now())
	if err != nil {
		return err
	}
	defer place.release()
	c, err := client.New(l.edge.opts.Conn, client.Options{Tenant: tenant, Names: l.edge.opts.Names, Service: l.edge.opts.Service, Guard: linkGuard{l.edge.opts.Names}})
	if err != nil {
		return err
	}
	return l.handle(w, r, &Caller{Principal: Principal{Tenant: tenant, Subject: "link"}, Client: c, Stall: l.edge.opts.Stall, paced: w.paced})
}

// linkGuard holds a client to the one query that a token answers for. It implements
// client.Guard.
type linkGuard struct{ names events.Names }

// Command permits nothing.
func (g linkGuard) Command(context.Context, string, *events.Request, func() (*events.Reply, error)) (*events.Reply, error) {
	return nil, onlyShared()
}

// Request permits the query thread.shared.
func (g linkGuard) Request(_ context.Context, subject string, body []byte, send func([]byte) ([]byte, error)) ([]byte, error) {
	if kind, _, name, ok := g.names.ParseRequest(subject); !ok || kind != "query" || name != "thread.shared" {
		return nil, onlyShared()
	}
	return send(body)
}

// Publish permits nothing.
func (g linkGuard) Publish(context.Context, string) error { return onlyShared() }

// Subscribe permits nothing.
func (g linkGuard) Subscribe(context.Context, string) error { return onlyShared() }

// Receive permits nothing.
func (g linkGuard) Receive(context.Context, string) (bool, error) { return false, onlyShared() }

// Deliver does nothing: there is nothing to deliver.
func (g linkGuard) Deliver(string, int64) {}

func onlyShared() error {
	return events.Errorf(events.Forbidden, "a link opens the messages of its thread, and nothing else")
}

var _ client.Guard = linkGuard{}
