package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skein-threads/skein/internal/retry"
)

// Stop stops everything, gracefully until ctx ends and then immediately. It may be
// called any number of times; every call returns after the end, with the same error: then the
// store is free for another process. Code of the program that ignores the end of its context
// may still run.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		close(s.stopping)
		s.stopErr = s.stop(ctx)
	})
	return s.stopErr
}

// outageGrace is the time of requests when nothing can be written any more.
const outageGrace = 2 * time.Second

// stop stops part after part. If the store cannot be written, a request that waits for
// a write cannot finish: it has a moment, and then its connection is closed. That is
// not a failure of the stop, since what was acknowledged is stored.
func (s *Server) stop(ctx context.Context) error {
	graceful, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.outage.Begun():
		case <-graceful.Done():
			return
		}
		if retry.Sleep(graceful, outageGrace) {
			cancel()
		}
	}()
	err := s.stopParts(ctx, graceful)
	if err != nil && s.outage.Err() != nil {
		s.logger.Warn().Err(err).Msg("the store cannot be written, so not everything was finished")
		return nil
	}
	return err
}

// stopParts finishes requests until graceful ends, and everything else until ctx ends.
func (s *Server) stopParts(ctx, graceful context.Context) error {
	var errs []error
	if s.api != nil { // streams end, and their readers resume elsewhere
		errs = append(errs, within(graceful, "streams over HTTP", s.api.Close))
	}
	if s.agents != nil {
		errs = append(errs, s.agents.Stop(graceful))
	}
	// Runs first: their tools send commands and queries.
	errs = append(errs, within(graceful, "what runs", s.work.drain))
	if s.embeddings != nil {
		errs = append(errs, s.embeddings.Stop(graceful))
	}
	// Uploads end in commands, so they come next.
	if s.files != nil {
		errs = append(errs, s.files.Stop(graceful))
	}
	// Then commands: queries are answered as long as something is written.
	if s.commands != nil {
		errs = append(errs, s.commands.Stop(graceful))
	}
	if s.queries != nil {
		errs = append(errs, s.queries.Stop(graceful))
	}
	s.background()
	if s.site != nil {
		errs = append(errs, s.site.Stop(graceful))
	}
	if s.keys != nil {
		s.keys.Close()
	}
	if s.outage.Err() != nil {
		for _, nc := range s.conns {
			nc.Close() // which ends requests that wait for a write
		}
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
		_ = nc.FlushWithContext(ctx) // to send the last answers; the server may have gone
		nc.Close()
	}
	if s.nats != nil {
		// Without ctx: it waits for nobody, and the store is not free before.
		releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeGrace)
		defer cancel()
		errs = append(errs, within(releasing, "the embedded server", s.nats.Shutdown))
	}
	return inOneLine(errs, ctx.Err())
}

// storeGrace is how long the embedded server may take to release its store.
const storeGrace = time.Minute

// inOneLine joins errors, those that say that ctx ended as one. over is the error of ctx.
func inOneLine(errs []error, over error) error {
	var late []string
	rest := slices.DeleteFunc(errs, func(err error) bool {
		if err == nil || over == nil || !errors.Is(err, over) {
			return err == nil
		}
		late = append(late, strings.NewReplacer(": "+over.Error(), "", "\n", "; ").Replace(err.Error()))
		return true
	})
	if late != nil {
		rest = append(rest, fmt.Errorf("%s: %w", strings.Join(late, "; "), over))
	}
	return errors.Join(rest...)
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
