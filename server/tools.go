package server

import (
	"context"
	"errors"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/threads/threadtools"
)

// tools returns the tools that are built in: they read other threads of the tenant, for the
// user of the thread on which they are called.
func (s *states) tools() ([]runtime.Tool, error) {
	read, err := runtime.DefineTool(
		runtime.ToolSpec{Name: threadtools.ReadTool, Description: threadtools.ReadDescription, Idempotent: true},
		func(ctx context.Context, in *runtime.ToolInput, a threadtools.ReadArgs) (*threadtools.Page, error) {
			r, err := s.reader(in)
			if err != nil {
				return nil, err
			}
			return again(r.Read(ctx, a))
		})
	if err != nil {
		return nil, err
	}
	find, err := runtime.DefineTool(
		runtime.ToolSpec{Name: threadtools.FindTool, Description: threadtools.FindDescription, ReadOnly: true},
		func(ctx context.Context, in *runtime.ToolInput, a threadtools.FindArgs) (*threadtools.Found, error) {
			r, err := s.reader(in)
			if err != nil {
				return nil, err
			}
			return again(r.Find(ctx, a))
		})
	return []runtime.Tool{read, find}, err
}

func (s *states) reader(in *runtime.ToolInput) (*threadtools.Reader, error) {
	c, err := s.of(in.Tenant)
	if err != nil {
		return nil, err
	}
	return threadtools.ForRun(c, in.ThreadID, in.Rights), nil
}

// again returns an error that may pass as one that is retried.
func again[T any](v T, err error) (T, error) {
	if refusal := (*events.Error)(nil); errors.As(err, &refusal) && refusal.Retry() {
		err = &runtime.RetryError{Err: err}
	}
	return v, err
}
