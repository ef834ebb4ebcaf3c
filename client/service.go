package client

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// Service answers requests. A client has two, and asks one of them: its connection, over which any
// Skein may answer, and Options.Service, which answers in this process.
type Service interface {
	// Serves reports whether requests of a kind are for this service now.
	Serves(kind string) bool
	// Request makes one attempt at a request, and returns its answer. A refusal is an *events.Error;
	// after any other error, such as that of ctx, the request may have been executed.
	Request(ctx context.Context, r ServiceRequest) (ServiceAnswer, error)
}

// ServiceRequest is a request to a Service.
type ServiceRequest struct {
	Kind        string // events.KindCommand, KindQuery or KindFile
	Tenant      string
	Name        string          // noun.verb
	Command     *events.Request // a command; neither the client nor the service changes it
	Body        []byte          // any other request, as JSON
	TraceParent string          // the W3C trace context that it is part of; may be empty
}

// ServiceAnswer is the answer to a request.
type ServiceAnswer struct {
	Reply *events.Reply // to a command, if it was not encoded
	Body  []byte        // any other answer
}

// serviceRequest returns a request of the client.
func (c *Client) serviceRequest(kind, name string) ServiceRequest {
	return ServiceRequest{Kind: kind, Tenant: c.opts.Tenant, Name: name, TraceParent: c.opts.TraceParent}
}

// subject returns the NATS subject of a request.
func (c *Client) subject(r ServiceRequest) string {
	return c.opts.Names.Request(r.Kind, r.Tenant, r.Name)
}

// natsService is a Service at the other end of a client's connection.
type natsService struct {
	client *Client
	repeat bool // sends a request again while it is not answered
}

// Serves reports true: what nobody answers over NATS, nobody answers.
func (natsService) Serves(string) bool { return true }

// Request encodes and sends a request, and waits for its answer.
func (s natsService) Request(ctx context.Context, r ServiceRequest) (ServiceAnswer, error) {
	body := r.Body
	if r.Command != nil {
		var err error
		if body, err = encode(r.Command); err != nil {
			return ServiceAnswer{}, err
		}
	}
	answer, err := s.send(ctx, s.client.subject(r), body)
	return ServiceAnswer{Body: answer}, err
}

func (s natsService) send(ctx context.Context, subject string, body []byte) ([]byte, error) {
	c := s.client
	ctx, watched := c.denied.watch(ctx, subject)
	defer watched()
	a, sent := response{}, 1
	if s.repeat {
		a, sent = c.sendRepeatedly(ctx, subject, body)
	} else {
		a = c.sendOnce(ctx, subject, body)
	}
	err := a.err
	if errors.Is(context.Cause(ctx), errDenied) {
		err = nats.ErrPermissionViolation
	}
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return nil, events.TooLarge("the request", int64(len(body)), c.nc.MaxPayload())
	case errors.Is(err, nats.ErrNoResponders):
		return nil, events.Errorf(events.Unavailable, "no responders on %s; is skein serve running on this server? (%w)", subject, err)
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrInvalidConnection), errors.Is(err, nats.ErrConnectionDraining):
		return nil, events.Errorf(events.Unavailable, "the connection is closed: %w", err)
	case errors.Is(err, nats.ErrPermissionViolation):
		return nil, events.Errorf(events.Forbidden, "these credentials may not publish on %s: %w", subject, err)
	case err != nil:
		return nil, err
	case a.refusal == nil:
		return a.body, nil
	case sent > 1 && a.refusal.Retry() && a.refusal.Code != events.ProjectionBehind: // another copy may be executed
		return nil, unknownOutcome(a.refusal)
	}
	return nil, a.refusal
}
