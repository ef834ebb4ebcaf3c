package threads

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// Change is a value of a thread, and the patches that lead to it from the value before.
type Change struct {
	Thread  *Thread
	Patches []Patch // empty with the first value
}

// ObserveRaw yields a thread as it is now, and then after each change that it sees. A thread
// that does not exist yet is yielded when it is created. It ends when the thread is deleted,
// when ctx ends, and with an error.
func (s *Service) ObserveRaw(ctx context.Context, id string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		t, err := s.c.Timeline(ctx, client.SubscribeOptions{Thread: id, From: client.Now()})
		if err != nil {
			yield(Change{}, err)
			return
		}
		defer t.Close()
		seen, err := s.c.HistoryEnd(ctx) // last includes the commits up to this sequence, which the timeline may never deliver
		if err != nil {
			if ctx.Err() == nil {
				yield(Change{}, err)
			}
			return
		}
		var last *Thread
		for q := (events.GetThreadDocument{ThreadID: id, Fresh: events.Fresh{MinSeq: &seen}}); ; {
			now, err := s.read(ctx, q)
			unknown := (*NotFoundError)(nil)
			switch {
			case errors.As(err, &unknown):
				if last != nil {
					return
				}
			case err != nil:
				if ctx.Err() == nil {
					yield(Change{}, err)
				}
				return
			case last == nil:
				if !yield(Change{Thread: now, Patches: []Patch{}}, nil) {
					return
				}
				last = now
			default:
				if patches := Diff(last, now); len(patches) > 0 {
					if !yield(Change{Thread: now, Patches: patches}, nil) {
						return
					}
					last = now
				}
			}
			e, err := next(ctx, t, seen)
			if err != nil {
				if ctx.Err() == nil && !errors.Is(err, client.ErrClosed) {
					yield(Change{}, err)
				}
				return
			}
			if e.Type == events.LifecycleDeletedType {
				return
			}
			seen = e.Seq
		}
	}
}

// next returns the first event of a commit after a sequence, or the end of the thread.
func next(ctx context.Context, t *client.Timeline, seen int64) (client.Event, error) {
	for {
		e, err := t.Next(ctx)
		var broken *events.BrokenError
		if errors.As(err, &broken) {
			continue
		}
		if err != nil || e.Seq > seen || e.Type == events.LifecycleDeletedType {
			return e, err
		}
	}
}

// Observe is ObserveRaw without patches, at most once in 100 ms: the first value comes at once,
// and the last one always.
func (s *Service) Observe(ctx context.Context, id string) iter.Seq2[*Thread, error] {
	return func(yield func(*Thread, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		type value struct {
			thread *Thread
			err    error
		}
		in := make(chan value)
		go func() {
			defer close(in)
			for c, err := range s.ObserveRaw(ctx, id) {
				select {
				case in <- value{c.Thread, err}:
				case <-ctx.Done():
					return
				}
			}
		}()
		throttle(in, time.After, func(v value) bool { return yield(v.thread, v.err) })
		cancel()
		for range in { // drain the rest
		}
	}
}

// FlushVersionTimeout is how long FlushVersion waits if the caller names no time.
const FlushVersionTimeout = 5 * time.Second

// FlushVersion waits until reads show a thread at a version, by watching it. After the timeout
// it returns a *TimeoutError.
func (s *Service) FlushVersion(ctx context.Context, id string, version int64, timeout time.Duration) error {
	if timeout == 0 {
		timeout = FlushVersionTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, &TimeoutError{ID: id, Version: version})
	defer cancel()
	// A service whose caller has no time left refuses the read, perhaps before ctx ends here.
	err := retry.Do(ctx, retry.Policy{First: 10 * time.Millisecond, Max: time.Second}, func() error {
		return s.reach(ctx, id, version)
	}, func(err error) bool {
		var refused *events.Error
		return errors.As(err, &refused) && refused.Retry()
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// reach watches a thread until it has reached a version.
func (s *Service) reach(ctx context.Context, id string, version int64) error {
	for c, err := range s.ObserveRaw(ctx, id) {
		if err != nil {
			return err
		}
		if c.Thread.V >= version {
			return nil
		}
	}
	<-ctx.Done() // a thread that was deleted does not come back
	return context.Cause(ctx)
}
