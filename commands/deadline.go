package commands

import (
	"context"
	"strconv"
	"time"

	"github.com/skein-threads/skein/events"
)

// RequestTime bounds a query, and a request for a file's content, whoever waits
// for it.
const RequestTime = 30 * time.Second

// limited returns the context in which a request is answered, and how long that
// may take: as long as its sender says that it waits, and no longer than the
// service allows. A service without a bound has none for anybody: a command that
// is under way is done, and its repeat is answered from the log.
func (s *Service) limited(wait string) (context.Context, context.CancelFunc, time.Duration) {
	if s.most == 0 {
		return s.ctx, func() {}, 0
	}
	limit := s.most
	if ms, err := strconv.ParseInt(wait, 10, 32); err == nil && ms > 0 {
		limit = min(limit, time.Duration(ms)*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	return ctx, cancel, limit
}

// late is the refusal of a request whose time is over. That a sender waits for a
// moment only is nothing that an operator has to know.
func (s *Service) late(limit time.Duration, cause error) *events.Error {
	e := events.Errorf(events.Unavailable, "the request was not answered within %s and was given up; ask for less, or try again", limit)
	if limit == s.most {
		e.Cause = cause
	}
	return e
}
