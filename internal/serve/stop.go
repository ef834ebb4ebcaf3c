package serve

import (
	"context"
	"errors"
	"fmt"
)

// Stop stops everything, gracefully until ctx ends and then at once. It may be
// called any number of times; every call returns after the end, with the same
// error.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		close(s.stopping)
		s.stopErr = s.stop(ctx)
	})
	return s.stopErr
}

func (s *Server) stop(ctx context.Context) error {
	var errs []error
	// Runs first: their tools ask for commands and queries.
	errs = append(errs, within(ctx, "what runs", s.work.drain))
	// Uploads end in commands, so they come next.
	if s.files != nil {
		errs = append(errs, s.files.Stop(ctx))
	}
	// Then commands: queries answer for as long as something is written.
	if s.commands != nil {
		errs = append(errs, s.commands.Stop(ctx))
	}
	if s.queries != nil {
		errs = append(errs, s.queries.Stop(ctx))
	}
	s.background()
	for _, server := range s.http {
		errs = append(errs, server.Shutdown(ctx))
	}
	errs = append(errs, within(ctx, "what runs in the background", s.running.Wait))
	s.work.close()
	if s.dispatcher != nil {
		errs = append(errs, within(ctx, "a snapshot", s.dispatcher.Close))
	}
	errs = append(errs, within(ctx, "writes to the log", func() {
		for _, l := range s.logs {
			l.Close()
		}
	}))
	for _, nc := range s.conns {
		_ = nc.FlushWithContext(ctx) // so that the last answers are sent; the server may have gone
		nc.Close()
	}
	if s.nats != nil {
		errs = append(errs, within(ctx, "the embedded server", s.nats.Shutdown))
	}
	return errors.Join(errs...)
}

// within waits for work until ctx ends.
func within(ctx context.Context, what string, work func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s did not end in time: %w", what, ctx.Err())
	}
}
