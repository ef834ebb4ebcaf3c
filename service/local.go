package service

import (
	"context"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// Alone reports whether this process is the only one that answers the service's requests, as far as
// it knows.
func (s *Service) Alone() bool { return s.forwards == nil || s.forwards.peers.alone() }

// Call is a request of this process.
type Call struct {
	Tenant, Name string
	Size         int // about how many bytes it would have as a message; a message holds no more
	// Handle answers the request, as the service's handler answers those that come over NATS. It must
	// not return [Answered].
	Handle func(context.Context) (any, error)
}

// Do answers a request of this process within the limits of those over NATS: in its tenant's queue,
// until the service stops. It returns what Handle returns, or a refusal without its cause. Bytes are
// refused if no message would hold them. One whose ctx has a [quota.Turn] does not wait for its
// tenant's fair rate a second time. A request over NATS is not interrupted when its sender no
// longer waits, and neither is this one: after an error of ctx, it may yet be executed.
func (s *Service) Do(ctx context.Context, c Call) (any, error) {
	if most := s.nc.MaxPayload(); most > 0 && int64(c.Size) > most {
		return nil, events.TooLarge("the request", int64(c.Size), most)
	}
	if err := events.CheckTenant("", c.Tenant); err != nil {
		return nil, err
	}
	r := &localRequest{Call: c, turn: quota.TakeTurn(ctx, c.Tenant), done: make(chan localAnswer, 1)}
	now := time.Now()
	if end, ok := ctx.Deadline(); ok {
		r.wait = max(time.Millisecond, end.Sub(now).Truncate(time.Millisecond))
	}
	s.accept(request{local: r, tenant: c.Tenant}, now, quota.InFlight, quota.Rate)
	select {
	case a := <-r.done:
		if a.refusal != nil {
			return nil, a.refusal
		}
		return a.out, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// localRequest is a request of this process.
type localRequest struct {
	Call
	turn bool             // it has waited for its tenant's rate
	wait time.Duration    // how long its caller waits; 0: as long as it takes
	done chan localAnswer // has room for the answer, which nobody may wait for
}

type localAnswer struct {
	out     any
	refusal *events.Error
}

// refuse answers with what of a refusal would cross the wire. That is a copy, since other requests may
// be refused with the same one.
func (r *localRequest) refuse(refusal *events.Error) {
	own := *refusal
	own.Cause = nil
	if refusal.Details != nil {
		details := *refusal.Details
		own.Details = &details
	}
	r.done <- localAnswer{refusal: &own}
}
