package eventlog

import (
	"context"
	"errors"
	"time"
)

// FollowHandler is what a follower does. Its functions are called one at a time.
type FollowHandler struct {
	// Take is called with each entry of the log. One without a commit cannot be read, which was
	// counted and reported.
	Take func(Entry) error

	// FlushBy returns when Flush must be called if no entry arrives; zero: it need not. Both are nil
	// for a follower that puts nothing off.
	FlushBy func() time.Time
	Flush   func() error
}

// errFlush is why a wait for an entry ends.
var errFlush = errors.New("it is time to flush")

// Follow follows the log after a sequence until ctx ends, whose cause it returns, or until the log or a
// function of the handler fails. name says who reads, in log lines and metrics.
func Follow(ctx context.Context, log *Log, name string, after uint64, h FollowHandler) error {
	tail, err := log.Tail(ctx, name, after)
	if err != nil {
		return err
	}
	defer tail.Stop()
	for {
		e, err := h.next(ctx, tail)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errFlush):
			err = h.Flush()
		case err == nil:
			err = h.Take(e)
		}
		if err != nil {
			return err
		}
	}
}

// next waits for an entry until it is time to flush.
func (h FollowHandler) next(ctx context.Context, tail *Tail) (Entry, error) {
	if h.FlushBy == nil {
		return tail.Next(ctx)
	}
	by := h.FlushBy()
	switch {
	case by.IsZero():
		return tail.Next(ctx)
	case time.Until(by) <= 0:
		return Entry{}, errFlush
	}
	limited, cancel := context.WithDeadlineCause(ctx, by, errFlush)
	defer cancel()
	return tail.Next(limited)
}
