package serve

import (
	"context"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// localService answers requests of clients in this process without NATS. It implements
// client.Service.
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
func (l localService) Request(ctx context.Context, r client.ServiceRequest) ([]byte, error) {
	s := l.server.commands
	if r.Kind == events.KindQuery {
		s = l.server.queries
	}
	return s.Do(ctx, r.Tenant, r.Name, r.Body, r.TraceParent)
}

var _ client.Service = localService{}
