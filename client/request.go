package client

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// Times of a request.
const (
	attemptTimeout = 8 * time.Second  // after this an unanswered request is sent again
	longestAttempt = 30 * time.Second // the same for one that takes long: a service gives up after it
	firstPause     = 20 * time.Millisecond
	longestPause   = time.Second

	// An attempt with less time than this would hardly be answered, and would leave open
	// whether the request arrived.
	shortestAttempt = 50 * time.Millisecond
)

// limited returns a context that ends after the client's timeout, unless the caller's
// ends earlier.
func (c *Client) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.opts.Timeout)
}

// request sends a request until it has a final answer, and returns the answer's body. The request
// may be sent again before it is answered; see requestSingly. The error is an *events.Error.
func (c *Client) request(ctx context.Context, kind, name string, body []byte) ([]byte, *events.Error) {
	return c.requestBy(ctx, kind, name, body, natsService{c, true})
}

// requestSingly is request for what must not be sent again while an answer may still come.
func (c *Client) requestSingly(ctx context.Context, kind, name string, body []byte) ([]byte, *events.Error) {
	return c.requestBy(ctx, kind, name, body, natsService{c, false})
}

func (c *Client) requestBy(ctx context.Context, kind, name string, body []byte, over natsService) ([]byte, *events.Error) {
	r := c.serviceRequest(kind, name)
	answer, err := c.guarded(ctx, c.subject(r), body, func(body []byte) ([]byte, error) {
		r.Body = body
		answer, refusal := c.requestUntilFinal(ctx, r, over)
		if refusal != nil {
			return nil, refusal
		}
		return answer.Body, nil
	})
	if err != nil {
		return nil, events.AsError(err)
	}
	return answer, nil
}

// execute sends a command until it has a final answer, and returns the reply.
func (c *Client) execute(ctx context.Context, name string, command *events.Request) (*events.Reply, *events.Error) {
	r := c.serviceRequest(events.KindCommand, name)
	r.Command = command
	reply, err := c.guardedCommand(ctx, c.subject(r), command, func() (*events.Reply, error) {
		answer, refusal := c.requestUntilFinal(ctx, r, natsService{c, true})
		if refusal != nil {
			return nil, refusal
		}
		if answer.Reply != nil {
			return answer.Reply, nil
		}
		return decode[events.Reply](answer.Body)
	})
	if err != nil {
		return nil, events.AsError(err)
	}
	return reply, nil
}

// requestUntilFinal is request without the guard.
func (c *Client) requestUntilFinal(ctx context.Context, r ServiceRequest, over natsService) (ServiceAnswer, *events.Error) {
	ctx, cancel := c.limited(ctx)
	defer cancel()
	lost := false            // a request may have arrived while its answer was lost
	var behind *events.Error // what was told last of a read model that is behind
	began, patience := time.Now(), attemptTimeout
	for attempts := requests().Start(); ; {
		begun := time.Now()
		answer, err := c.attempt(ctx, patience, r, over)
		if err == nil {
			return answer, nil
		}
		lost = lost || err.Details != nil && err.Details.Outcome == unknown
		if err.Code == events.ProjectionBehind {
			behind = err
		}
		if final(err, time.Since(began)) || c.nc.IsClosed() || attempts.Wait(ctx) != nil {
			if behind != nil && errors.Is(err, context.DeadlineExceeded) {
				err = behind // an attempt for which no time was left knows less
			}
			if lost && err.Retry() {
				err = unknownOutcome(err)
			}
			return ServiceAnswer{}, err
		}
		patience = moreTime(patience, time.Since(begun))
	}
}

// moreTime returns how long the attempt may take that follows one that was given a time, and took one.
// An answer that takes longer than an attempt, such as a large page of a slow machine, would else be
// begun again and again, and never come.
func moreTime(given, took time.Duration) time.Duration {
	return max(given, min(2*took, longestAttempt))
}

// takeoverWait is how long a query is repeated whose read model is behind: where a Skein has died,
// another one writes the read models after up to 6 s.
const takeoverWait = 2 * events.FreshWait

// final reports whether a refusal ends a request that began some time ago.
func final(err *events.Error, after time.Duration) bool {
	switch err.Code {
	case events.QueueFull:
		return true
	case events.ProjectionBehind:
		return after >= takeoverWait
	default:
		return !err.Retry()
	}
}

// unknown is the outcome of a command that may or may not have been executed.
const unknown = "unknown"

func unknownOutcome(err *events.Error) *events.Error {
	e := *err
	details := events.ErrorDetails{}
	if e.Details != nil {
		details = *e.Details
	}
	details.Outcome = unknown
	e.Details = &details
	return &e
}

// attempt makes one attempt at a request, which may take as long as patience: at the service of this
// process if that serves it, and over NATS otherwise.
func (c *Client) attempt(ctx context.Context, patience time.Duration, r ServiceRequest, over natsService) (ServiceAnswer, *events.Error) {
	one, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var s Service = over
	if own := c.opts.Service; own != nil && own.Serves(r.Kind) {
		s = own
	}
	answer, err := s.Request(one, r)
	var refusal *events.Error
	switch {
	case err == nil:
		return answer, nil
	case errors.As(err, &refusal):
		return ServiceAnswer{}, refusal
	}
	e := events.Errorf(events.Unavailable, "no answer on %s: %w", c.subject(r), err)
	e.Details = &events.ErrorDetails{Outcome: unknown}
	return ServiceAnswer{}, e
}

// message returns a request, with the trace that it is part of.
func (c *Client) message(subject string, body []byte) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Data = body
	if c.opts.TraceParent != "" {
		m.Header.Set(events.HeaderTraceParent, c.opts.TraceParent)
	}
	return m
}

// repeatUntilDone repeats an operation until it succeeds or ctx ends. A server that restarts
// may lose one without saying so, hence each attempt waits only as long as a request does.
func (c *Client) repeatUntilDone(ctx context.Context, do func(context.Context) error) error {
	for attempts := requests().Start(); ; {
		one, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := do(one)
		cancel()
		lost := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrDisconnected)
		if !lost || c.nc.IsClosed() || attempts.Wait(ctx) != nil {
			return err
		}
	}
}

// requests is the policy for repeating a request after a temporary failure.
func requests() retry.Policy {
	return retry.Policy{First: firstPause, Max: longestPause, Useful: shortestAttempt, Jitter: true}
}

// encode returns a request's body as JSON. The error is an invalid_request.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, events.Invalid("", "encode the request as JSON: %w", err)
	}
	return b, nil
}

// decode decodes an answer.
func decode[T any](body []byte) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(body, v); err != nil {
		return nil, events.Errorf(events.Unavailable, "read the answer: %w", err)
	}
	return v, nil
}

// checkName refuses the name of a command or a query that is no noun.verb. Nobody answers on its
// subject, which may even be none, and a request would be repeated until its time is over. Whether
// there is such a command, or query, is the server's to say: it may be newer than this client.
func checkName(kind, name string) error {
	noun, verb, _ := strings.Cut(name, ".")
	if isWord(noun) && isWord(verb) {
		return nil
	}
	list := "events.Commands"
	if kind == "query" {
		list = "events.Queries"
	}
	return events.Invalid("", "the %s %.80q cannot exist: a name is noun.verb, such as thread.get, of letters, digits, _ and -; see %s", kind, name, list)
}

// isWord reports whether a text is 1 to 64 letters, digits, _ and -.
func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
