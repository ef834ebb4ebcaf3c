package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/internal/retry"
)

// maxRuns is how often a listener is run for one event before it gives up.
const maxRuns = 5

// Listen runs the listeners of the application until ctx or the application ends, and then returns
// the cause of that. Processes that call it share the work: each listener runs for one event at a
// time, in the order of the log. If a process is killed, its event is delivered to another process
// after 30 seconds. Listeners of ThreadDestroyed see the states that end from their first
// registration on, also those that end while no process listens; the others see what happens after
// the first Listen.
//
// The error is an *events.Error if the server refuses the consumer of a listener.
func (a *App) Listen(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.base, func() { cancel(context.Cause(a.base)) })()
	var listening sync.WaitGroup
	for _, l := range a.opts.Listeners {
		listening.Go(func() { cancel(a.listen(ctx, l)) })
	}
	<-ctx.Done()
	listening.Wait()
	return context.Cause(ctx)
}

// typeInLog returns the event of the log behind an event.
func typeInLog(e EventType) events.Type {
	switch e {
	case ThreadDestroyed:
		return events.LifecycleDestroyedType
	case SessionStarted:
		return events.SessionStartedType
	case SessionCompleted:
		return events.SessionCompletedType
	}
	return events.ThreadCreatedType
}

// listen runs one listener. The name of its consumer is derived from the listener's, and so is
// the same in every process.
func (a *App) listen(ctx context.Context, l Listener) error {
	sum := sha256.Sum256([]byte(a.opts.inLog(l.Name)))
	filter := client.Filter{Types: []string{string(typeInLog(l.Event))}, New: l.Event != ThreadDestroyed}
	return a.opts.Client.Consume(ctx, "listener-"+hex.EncodeToString(sum[:16]), filter, func(ctx context.Context, e client.Event) error {
		err := a.deliver(ctx, l, e)
		if err != nil && ctx.Err() == nil {
			a.opts.Logger.ErrorContext(ctx, "an event is not done with, and will be delivered to its listener again", "listener", l.Name, "threadId", e.ThreadID, "error", err)
		}
		return err
	})
}

// deliver runs a listener for an event of the log if the listener listens to it. An error means
// that the event must be delivered again.
func (a *App) deliver(ctx context.Context, l Listener, of client.Event) error {
	e := Event{Type: l.Event, Key: of.ID + "/" + l.Name}
	switch d := of.Data.(type) {
	case events.LifecycleDestroyed:
		if !slices.Contains(d.Listeners, a.opts.inLog(l.Name)) {
			return nil
		}
		return a.destroyed(ctx, l, of.ThreadID, d)
	case events.SessionStarted:
		e.SessionID = d.ID
	case events.SessionCompleted:
		e.SessionID, e.Outcome, e.ErrorText = d.ID, d.Outcome, d.ErrorText
	}
	_, err := a.run(ctx, l, e, of.ThreadID, 0)
	return err
}

// destroyed runs a listener at the end of a life, unless it has already run, and releases the
// life. An error means that the event must be delivered again.
func (a *App) destroyed(ctx context.Context, l Listener, thread string, d events.LifecycleDestroyed) error {
	name := a.opts.inLog(l.Name)
	v, err := client.Read(ctx, a.opts.Client, events.GetState{ThreadID: thread, Life: d.Life})
	switch {
	case events.IsNotFound(err): // the life was cleared
		return nil
	case err != nil:
		return err
	case !slices.Contains(v.Listeners, name): // the listener has released it
		return nil
	}
	e := Event{Type: l.Event, Key: thread + "/" + strconv.FormatInt(d.Life, 10) + "/" + name, Reason: d.Reason}
	failed, err := a.run(ctx, l, e, thread, d.Life)
	if err != nil {
		return err
	}
	release := events.ReleaseState{Life: d.Life, Listener: name}
	if failed != nil {
		release.ErrorText = excerpt.Head(failed.Error(), maxRecord)
	}
	_, err = a.opts.Client.Send(ctx, thread, release)
	if events.IsNotFound(err) { // the thread was deleted
		return nil
	}
	return err
}

// run runs a listener until it succeeds. failed is its last error if it has failed maxRuns times.
// err is the cause of ctx's end; then the listener must be run again.
func (a *App) run(ctx context.Context, l Listener, e Event, thread string, life int64) (failed, err error) {
	policy := retry.Policy{First: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: true}
	for attempts := policy.Start(); ; {
		failed = a.runOnce(ctx, l, e, thread, life)
		switch {
		case errors.Is(failed, errShutdown):
			return nil, failed
		case ctx.Err() != nil && failed != nil:
			return nil, context.Cause(ctx)
		case failed == nil:
			return nil, nil
		}
		a.opts.Logger.ErrorContext(ctx, "a listener failed", "listener", l.Name, "event", string(e.Type), "threadId", thread, "key", e.Key, "error", failed)
		if attempts.Failures() == maxRuns-1 {
			return failed, nil
		}
		if err := attempts.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// runOnce runs a listener once, with a context like that of a request, and waits for its
// background work. The writes of a failed run are dropped. The error is errShutdown if the
// application has been shut down, and the listener did not run.
func (a *App) runOnce(ctx context.Context, l Listener, e Event, thread string, life int64) error {
	if !a.tasks.beginRequest() {
		return errShutdown
	}
	s := newScope(a, thread, "")
	s.session.Thread.life, s.session.Thread.began = life, time.Time{} // a listener's run is no session
	e.Thread = s.session.Thread
	limited, cancel := context.WithTimeoutCause(ctx, l.timeout(), &timeoutError{l.timeout()})
	defer cancel()
	err := protect(s.with(limited), func(ctx context.Context) error {
		if err := l.Run(ctx, e); err != nil {
			return err
		}
		return e.Thread.Save(ctx)
	})
	if err != nil {
		e.Thread.drop()
		if limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", context.Cause(limited), err)
		}
	}
	close(s.answered)
	s.release(ctx)
	<-s.closed
	return err
}
