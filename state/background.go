package state

import (
	"context"
	"runtime/debug"

	"github.com/skein-threads/skein/internal/excerpt"
)

// WaitUntil runs f in the background: the response does not wait for it, and its failure never
// changes the response. The context of f has the values of ctx, and ends only when App.Shutdown
// gives up. When f returns, the state that it has written is saved. An error or a panic is
// logged, and recorded on the thread.
//
// The work is lost if the process is killed. What must be done is an effect of the thread.
// The error is an *EndedError if the request has ended, with its background work.
func WaitUntil(ctx context.Context, f func(context.Context) error) error {
	s := scopeOf(ctx)
	if !s.hold() {
		return &EndedError{SessionID: s.session.ID}
	}
	go func() {
		defer s.release(ctx)
		ctx, cancel := s.app.detach(ctx)
		defer cancel()
		defer s.save(ctx)
		if err := protect(ctx, f); err != nil {
			s.save(ctx) // which creates the thread that the error is recorded on
			s.fail(ctx, "background work failed", err)
		}
	}()
	return nil
}

// protect calls f, and returns a panic as a *PanicError.
func protect(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return excerpt.Readable(f(ctx))
}
