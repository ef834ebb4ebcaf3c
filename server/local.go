package server

import (
	"context"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/service"
)

// localService answers requests of clients in this process without NATS: a command reaches the
// dispatcher, and its reply the client, as Go values. It implements client.Service.
//
// It serves while no other Skein shares its requests. With others, requests go over NATS: they reach
// the process that owns their thread, and one that hangs delays them by a second instead of all the
// time that they have.
type localService struct{ server *Server }

// Serves reports whether commands and queries are answered here.
func (l localService) Serves(kind string) bool {
	return kind != events.KindFile && l.server.commands.Alone()
}

// Request answers a request.
func (l localService) Request(ctx context.Context, r client.ServiceRequest) (client.ServiceAnswer, error) {
	call, s := service.Call{Tenant: r.Tenant, Name: r.Name}, l.server
	if r.Command == nil {
		call.Size = len(r.Body)
		call.Handle = func(ctx context.Context) (any, error) {
			out, err := s.reading.queries.Handle(ctx, r.Tenant, r.Name, r.Body, service.Meta{TraceParent: r.TraceParent})
			if err != nil {
				return nil, err
			}
			return service.Encode(out)
		}
		out, err := s.queries.Do(ctx, call)
		body, _ := out.(service.Bytes)
		return client.ServiceAnswer{Body: body}, err
	}
	call.Size = commands.Size(r.Command)
	call.Handle = func(ctx context.Context) (any, error) {
		if err := s.affords(ctx, r.Tenant, r.Name, func() events.JSON { return r.Command.Data }); err != nil {
			return nil, err
		}
		return s.dispatcher.Execute(ctx, r.Tenant, r.Name, r.Command, commands.Meta{TraceParent: r.TraceParent})
	}
	out, err := s.commands.Do(ctx, call)
	reply, _ := out.(*events.Reply)
	return client.ServiceAnswer{Reply: reply}, err
}

var _ client.Service = localService{}
