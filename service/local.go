package service

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// Alone reports whether this process is the only one that answers the service's requests, as far as
// it knows.
func (s *Service) Alone() bool { return s.forwards == nil || s.forwards.peers.alone() }

// Do answers a request of this process as it does one over NATS: within the same limits, in its
// tenant's queue, until the service stops. It returns the body of the answer, or a refusal without
// its cause. A request over NATS is not interrupted when its sender no longer waits, and neither is
// this one: after an error of ctx, it may yet be executed. The endpoint's handler must not
// return [Answered].
func (s *Service) Do(ctx context.Context, tenant, name string, body []byte, traceParent string) ([]byte, error) {
	if most := s.nc.MaxPayload(); most > 0 && int64(len(body)) > most {
		return nil, events.TooLarge("the request", int64(len(body)), most)
	}
	if err := events.CheckTenant("", tenant); err != nil {
		return nil, err
	}
	r := &localRequest{subject: s.names.Request(s.kind, tenant, name), headers: micro.Headers{}, body: body, done: make(chan localAnswer, 1)}
	if traceParent != "" {
		r.headers[events.HeaderTraceParent] = []string{traceParent}
	}
	now := time.Now()
	if end, ok := ctx.Deadline(); ok {
		r.headers[events.HeaderWait] = []string{strconv.FormatInt(max(1, end.Sub(now).Milliseconds()), 10)}
	}
	s.accept(r, tenant, now, quota.InFlight, quota.Rate)
	select {
	case a := <-r.done:
		if a.refusal != nil {
			return nil, a.refusal
		}
		return a.body, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// localRequest is a request of this process.
type localRequest struct {
	subject string
	headers micro.Headers
	body    []byte
	done    chan localAnswer // has room for the answer, which nobody may wait for
}

type localAnswer struct {
	body    []byte
	refusal *events.Error
}

func (r *localRequest) Subject() string        { return r.subject }
func (r *localRequest) Headers() micro.Headers { return r.headers }
func (r *localRequest) Data() []byte           { return r.body }
func (r *localRequest) Reply() string          { return "" }

// answer answers with a body, or with what of a refusal would cross the wire. That is a copy, since
// other requests may be refused with the same one.
func (r *localRequest) answer(body []byte, refusal *events.Error) {
	if refusal == nil {
		r.done <- localAnswer{body: body}
		return
	}
	own := *refusal
	own.Cause = nil
	if refusal.Details != nil {
		details := *refusal.Details
		own.Details = &details
	}
	r.done <- localAnswer{refusal: &own}
}
