package server

import (
	"sync"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
)

// How long the users of a flooding tenant are suspended: twice as long each time, until
// they have been quiet for a while.
const (
	firstSuspension = 5 * time.Second
	lastSuspension  = 5 * time.Minute
	forgiveAfter    = 10 * time.Minute
)

// suspensions records the tenants that have flooded.
type suspensions struct {
	mu  sync.Mutex // guards the fields below
	was map[string]suspension
}

type suspension struct {
	end  time.Time
	took time.Duration
}

// next returns for how long to suspend a tenant now, 0 if it is suspended already.
func (s *suspensions) next(tenant string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, one := range s.was {
		if now.Sub(one.end) > forgiveAfter {
			delete(s.was, name)
		}
	}
	one, ok := s.was[tenant]
	switch {
	case now.Before(one.end):
		return 0
	case ok:
		one.took = min(2*one.took, lastSuspension)
	default:
		one.took = firstSuspension
	}
	one.end = now.Add(one.took)
	if s.was == nil {
		s.was = map[string]suspension{}
	}
	s.was[tenant] = one
	return one.took
}

// flooded suspends the loudest users of a tenant on the embedded server for a while:
// their messages cost the server more than a refusal here. Without accounts it
// suspends the tenant. A server in another process is not Skein's to control.
func (s *Server) flooded(tenant string) {
	switch {
	case s.nats == nil:
		if s.suspended.next(tenant, time.Now()) > 0 {
			s.logger.Warn().Str("tenant", tenant).Msg("a tenant floods, and its connections are not Skein's to end: other tenants wait with it; use the embedded server, or end them there")
		}
		return
	case s.cfg.Access == "":
		s.suspendTenant(tenant)
		return
	}
	folder, err := access.Open(s.cfg.Access)
	if err != nil {
		s.logger.Warn().Err(err).Msg("a tenant floods, and its account is unknown")
		return
	}
	d := s.suspended.next(tenant, time.Now())
	if d == 0 {
		return
	}
	users, err := s.nats.Suspend(folder.TenantAccount(tenant), d)
	if err != nil {
		s.logger.Warn().Err(err).Str("tenant", tenant).Msg("a tenant floods, and cannot be suspended")
		return
	}
	s.metrics.Suspended()
	s.logger.Warn().Str("tenant", tenant).Int("users", users).Dur("for", d).Msg("a tenant floods: its loudest users are suspended for a while")
}

// neighbourFor is how long after its last request a tenant is spared the floods of others.
const neighbourFor = 10 * time.Minute

// suspendTenant has the embedded server drop all requests of a tenant for a while, before they
// reach this process, unless the tenant is the only one. Without accounts its connections cannot be
// told from those of others.
func (s *Server) suspendTenant(tenant string) {
	now := time.Now()
	if !s.activity.Others(tenant, now.Add(-neighbourFor)) {
		return
	}
	d := s.suspended.next(tenant, now)
	if d == 0 {
		return
	}
	requests, _ := events.Publisher.Subjects(s.cfg.Names, tenant)
	if err := s.nats.Drop(requests, d); err != nil {
		s.logger.Warn().Err(err).Str("tenant", tenant).Msg("a tenant floods, and cannot be suspended")
		return
	}
	s.metrics.Suspended()
	s.logger.Warn().Str("tenant", tenant).Dur("for", d).Msg("a tenant floods: the server drops its requests for a while; with --access only its loudest users are suspended")
}
