package server

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime/agents"
	"github.com/skein-threads/skein/runtime/webhooks"
	"github.com/skein-threads/skein/service"
)

// startWebhooks delivers events to the tenants' webhooks, in one process that has workers.
func (s *Server) startWebhooks(background context.Context, directory *agents.Directory, queries *query.Queries) error {
	log, err := s.open("webhooks")
	if err != nil {
		return err
	}
	hub := webhooks.New(log, webhooks.Config{Endpoint: directory.Endpoint, Thread: threadOf(queries), Metrics: s.metrics, Places: s.places(placesWebhooks, 0)}, s.logger)
	s.hold(background, log, webhooks.Lease, hub.Run)
	return nil
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
