package server

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/api/a2a"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime/agents"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/runtime/webhooks"
	"github.com/skein-threads/skein/service"
)

// startWebhooks delivers events to the tenants' webhooks, in one process that has workers.
func (s *Server) startWebhooks(background context.Context, directory *agents.Directory, queries *query.Queries) error {
	log, err := s.open("webhooks")
	if err != nil {
		return err
	}
	hub := webhooks.New(log, webhooks.Config{
		Endpoint: directory.Endpoint, Thread: threadOf(queries), Metrics: s.metrics, Places: s.places(placesWebhooks, 0),
		Push: func(to *events.SetPush) (remote.Endpoint, error) {
			return directory.Address("the url of a push", to.URL)
		},
		Update: s.updates(log.Conn()),
	}, s.logger)
	s.hold(background, log, webhooks.Lease, hub.Run)
	return nil
}

// openPushes opens the store of pushes: the URLs to which updates of runs are sent.
func (a *assembly) openPushes() error {
	allowed, err := egress.Parse(a.cfg.EgressAllow)
	if err != nil {
		return err
	}
	a.pushes = webhooks.NewPushes(a.log, allowed)
	return nil
}

// updates returns how the updates of runs are written.
func (s *Server) updates(nc *nats.Conn) func(context.Context, *events.SetPush, *events.Event, uint64) (*webhooks.Update, error) {
	return func(ctx context.Context, to *events.SetPush, e *events.Event, seq uint64) (*webhooks.Update, error) {
		c, err := client.New(nc, client.Options{Tenant: e.Tenant, Names: s.cfg.Names, Service: localService{s}})
		if err != nil {
			return nil, err
		}
		n, err := a2a.Notify(ctx, c.WithMinSeq(int64(seq)), to, e)
		if err != nil {
			return nil, err
		}
		return &webhooks.Update{Type: n.Type, Body: n.Body, Last: n.Last}, nil
	}
}

// threadOf returns how threads are read for webhooks.
func threadOf(queries *query.Queries) func(ctx context.Context, tenant, thread string, seq uint64) (*events.Thread, error) {
	return func(ctx context.Context, tenant, thread string, seq uint64) (*events.Thread, error) {
		least := int64(seq)
		body, err := json.Marshal(events.GetThread{ThreadID: thread, Fresh: events.Fresh{MinSeq: &least}})
		if err != nil {
			return nil, err
		}
		got, err := queries.Handle(ctx, tenant, "thread.get", body, service.Meta{})
		if err != nil {
			return nil, err
		}
		doc, ok := got.(*events.Thread)
		if !ok {
			return nil, fmt.Errorf("thread.get returned a %T", got)
		}
		return doc, nil
	}
}
