package service

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/skein-threads/skein/events"
)

// RequestTime bounds a query, and a request for a file's content, however long the caller
// would wait.
const RequestTime = 30 * time.Second

// deadline returns the context in which a request is answered, and how long that
// may take since it was admitted: as long as its sender says that it waits, and no longer
// than the service allows. A service without a bound has none for any request: a command in
// flight is completed, and its repeat is answered from the log.
func (s *Service) deadline(admitted time.Time, wait time.Duration) (context.Context, context.CancelFunc, time.Duration) {
	if s.most == 0 {
		return s.ctx, func() {}, 0
	}
	limit := s.most
	if wait > 0 {
		limit = min(limit, wait)
	}
	ctx, cancel := context.WithDeadline(s.ctx, admitted.Add(limit))
	return ctx, cancel, limit
}

// waitOf returns how long the sender of a message says that it waits; 0: it does not say.
func waitOf(headers micro.Headers) time.Duration {
	ms, err := strconv.ParseInt(headers.Get(events.HeaderWait), 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// late returns the refusal of a request whose time is over. It has a cause, which is
// logged, only if the service's own bound ended it: a sender that waits for a moment
// only does not concern the operator.
func (s *Service) late(limit time.Duration, cause error) *events.Error {
	e := events.Errorf(events.Unavailable, "the request was not answered within %s and was given up; ask for less, or try again", limit)
	if limit == s.most {
		e.Cause = cause
	}
	return e
}
