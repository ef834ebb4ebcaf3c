package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// maxRuns is how often a listener is run for one event before it is given up.
const maxRuns = 5

// Listen runs the listeners of the application until ctx ends, and then returns the cause of
// that. Processes that call it share the work. An event whose process dies is delivered to
// another one after 30 seconds. Listeners of ThreadDestroyed see the states that end from their
// first registration on, also those that end while no process listens; the others see what
// happens after the first Listen.
//
// The error is an *events.Error if the server refuses the consumer of a listener.
func (a *App) Listen(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var listening sync.WaitGroup
	for _, l := range a.opts.Listeners {
		listening.Go(func() { cancel(a.listen(ctx, l)) })
	}
	<-ctx.Done()
	listening.Wait()
	return context.Cause(ctx)
}

// eventType returns the event of the log behind an event.
func eventType(e Event) events.Type {
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
	filter := client.Filter{Types: []string{string(eventType(l.Event))}, New: l.Event != ThreadDestroyed}
	return a.opts.Client.Consume(ctx, "listener-"+hex.EncodeToString(sum[:16]), filter, func(ctx context.Context, e client.Event) error {
		h := Happening{Event: l.Event, Key: e.ID + "/" + l.Name}
		switch d := e.Data.(type) {
		case events.LifecycleDestroyed:
			if !slices.Contains(d.Listeners, a.opts.inLog(l.Name)) {
				return nil
			}
			return a.destroyed(ctx, l, e.ThreadID, d)
		case events.SessionStarted:
			h.SessionID = d.ID
		case events.SessionCompleted:
			h.SessionID, h.Outcome, h.ErrorText = d.ID, d.Outcome, d.ErrorText
		}
		_, err := a.run(ctx, l, h, e.ThreadID, 0)
		return err
	})
}

// destroyed runs a listener at the end of a life, unless it has done its work, and releases the
// life. An error means that it is to be done again.
func (a *App) destroyed(ctx context.Context, l Listener, thread string, d events.LifecycleDestroyed) error {
	name := a.opts.inLog(l.Name)
	v, err := client.Read[events.StateValues](ctx, a.opts.Client, events.GetState{ThreadID: thread, Life: d.Life})
	switch {
	case is(err, events.NotFound): // it is cleared
		return nil
	case err != nil:
		return err
	case !slices.Contains(v.Listeners, name): // it is released
		return nil
	}
	h := Happening{Event: l.Event, Key: thread + "/" + strconv.FormatInt(d.Life, 10) + "/" + name, Reason: d.Reason}
	failed, err := a.run(ctx, l, h, thread, d.Life)
	if err != nil {
		return err
	}
	release := events.ReleaseState{Life: d.Life, Listener: name}
	if failed != nil {
		release.ErrorText = clip(failed.Error(), maxRecord)
	}
	_, err = client.Send(ctx, a.opts.Client, thread, release)
	if is(err, events.NotFound) { // the thread was deleted
		return nil
	}
	return err
}

// run runs a listener until it succeeds, and returns its last error when it has failed too
// often. err is the cause of ctx's end: the listener is to be run again.
func (a *App) run(ctx context.Context, l Listener, h Happening, thread string, life int64) (failed, err error) {
	policy := retry.Policy{First: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: true}
	for attempts := policy.Start(); ; {
		failed = a.runOnce(ctx, l, h, thread, life)
		switch {
		case ctx.Err() != nil && failed != nil:
			return nil, context.Cause(ctx)
		case failed == nil:
			return nil, nil
		}
		a.opts.Logger.ErrorContext(ctx, "a listener failed", "listener", l.Name, "event", string(h.Event), "threadId", thread, "key", h.Key, "error", failed)
		if attempts.Failures() == maxRuns-1 {
			return failed, nil
		}
		if err := attempts.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// runOnce runs a listener with a context like that of a request, whose state ends with it.
func (a *App) runOnce(ctx context.Context, l Listener, h Happening, thread string, life int64) error {
	s := newScope(a, thread, "")
	s.session.Thread.life, s.session.Thread.began = life, time.Time{} // it is no session
	h.Thread = s.session.Thread
	defer func() {
		s.session.Thread.end()
		s.session.State.end()
		s.request.end()
	}()
	s.app.tasks.begin()
	defer s.app.tasks.end()
	return protect(s.with(ctx), func(ctx context.Context) error {
		if err := l.Run(ctx, h); err != nil {
			return err
		}
		return h.Thread.Save(ctx)
	})
}
