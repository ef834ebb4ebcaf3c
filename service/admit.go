package service

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// admit forwards a request to its owner, or accepts it. It returns at once, because an
// endpoint's requests arrive one after another. What is over a limit is refused before it is
// decoded.
func (s *Service) admit(r micro.Request) {
	if !s.answerable(r) {
		return
	}
	tenant, name := s.sender(r)
	now := time.Now()
	switch {
	case s.Alone():
		s.accept(request{message: r, tenant: tenant}, now, quota.InFlight, quota.Rate)
	case !s.paced(tenant, now):
		s.refuseOverLimit(request{message: r, tenant: tenant}, quota.Rate.String())
	case !s.forwards.forward(r, tenant, name, now):
		s.accept(request{message: r, tenant: tenant}, now, quota.InFlight)
	}
}

// acceptForwarded accepts a request that was forwarded to this process, or that it could not
// forward. Its tenant's rate was counted where it arrived.
func (s *Service) acceptForwarded(r incoming) {
	if s.answerable(r) {
		tenant, _ := s.sender(r)
		s.accept(request{message: r, tenant: tenant}, time.Now(), quota.InFlight)
	}
}

// paced counts a request for its tenant's rate alone, wherever it is answered, and reports whether
// that allows it.
func (s *Service) paced(tenant string, now time.Time) bool {
	_, over := s.tenants.Enter(quota.Request{Names: []string{tenant}, Takes: []quota.Kind{quota.Rate}}, now)
	return over == nil
}

// answerable reports whether a reply to a request would do no harm. Without that it is not
// answered.
func (s *Service) answerable(r incoming) bool {
	ok := s.names.Answerable(r.Reply())
	if !ok {
		s.refused(limitReply)
	}
	return ok
}

// limitReply names the reply subject of a request as what refuses it: no answer may be sent on it.
const limitReply = "reply"

// sender returns the tenant and the name of a request, empty where its subject has none.
func (s *Service) sender(r incoming) (tenant, name string) {
	if _, t, n, ok := s.names.ParseRequest(r.Subject()); ok && events.ValidTenant(t) {
		return t, n
	}
	return "", ""
}

// accept passes a request on to its tenant's queue, or refuses it; it returns at once. It counts for
// the limits that it takes. A tenant never holds many more places than are free for all.
func (s *Service) accept(r request, now time.Time, takes ...quota.Kind) {
	hold, over := s.tenants.Enter(quota.Request{Names: []string{r.tenant}, Takes: takes, Free: cap(s.places) - len(s.places) + 1}, now)
	if over != nil {
		s.refuseOverLimit(r, over.Kind.String())
		return
	}
	select {
	case s.places <- struct{}{}:
	default:
		hold.Leave()
		s.refuse(r, events.Errorf(events.Unavailable, "too many requests are in flight; try again"))
		return
	}
	if !s.enter() {
		<-s.places
		hold.Leave()
		s.refuse(r, events.Errorf(events.Unavailable, "the service is stopping; try again"))
		return
	}
	r.hold, r.at = hold, now
	if r.local != nil && r.local.turn {
		s.queue.AddWithTurn(r.tenant, r, now)
		return
	}
	s.queue.Add(r.tenant, r, now)
}

// refuseOverLimit refuses a request that is over a limit of its tenant.
func (s *Service) refuseOverLimit(r request, limit string) {
	s.refused(limit)
	s.fair.Floods.Note(r.tenant, time.Now())
	if r.local != nil {
		r.local.refuse(s.refusals[limit].refusal)
		return
	}
	select {
	case s.over <- overLimit{r.message.Reply(), limit}:
	default: // more than can be answered
	}
}

// refuseWaiting refuses a request that was admitted and has not started.
func (s *Service) refuseWaiting(r request) {
	<-s.places
	r.hold.Leave()
	s.refuseOverLimit(r, quota.InFlight.String())
	s.leave()
}

// overLimit is a request that a limit of its tenant refused.
type overLimit struct{ reply, limit string }

// refusalsAhead is how many refusals may wait to be sent. When a flood brings more,
// some are not answered.
const refusalsAhead = 4096

// refuseOver sends refusals, which are ready-made because a flood may bring very many,
// until the service has ended.
func (s *Service) refuseOver(out *nats.Conn) {
	for {
		select {
		case o := <-s.over:
			if o.reply == "" {
				continue
			}
			e := s.refusals[o.limit]
			if err := out.PublishMsg(&nats.Msg{Subject: o.reply, Header: nats.Header(e.headers), Data: e.body}); err != nil {
				s.logger.Debug().Err(err).Msg("a refusal could not be sent")
			}
		case <-s.ctx.Done():
			return
		}
	}
}
