package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// A reactor or a tool that no process serves is asked for again every so often,
// which costs the server one message that nobody takes.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 2 * time.Second
)

// lack is what no process serves, and how it is waited for.
type lack struct {
	events.WaitFor
	most  time.Duration // how long it is waited for; negative: not at all
	since time.Time     // zero: it was not met yet
	met   time.Time     // by this claim; zero: it was not
	looks int           // how often it was looked for
}

// look waits until it is time to ask again. It returns false when there is no more
// time.
func (l *lack) look(ctx context.Context) bool {
	if l.since.IsZero() {
		l.since = time.Now()
	}
	left := l.most - time.Since(l.since)
	if left <= 0 || ctx.Err() != nil {
		return false
	}
	l.looks++
	return retry.Sleep(ctx, min(retry.Policy{First: firstLook, Max: lastLook}.Delay(l.looks), left))
}

// gaveUp says how long it was waited for.
func (l *lack) gaveUp(err error) error {
	if l.most <= 0 {
		return err
	}
	return fmt.Errorf("no process served the %s %s for %s: %w", l.Kind, clip(l.Name), time.Since(l.since).Round(time.Second), err)
}

// awaitReactor waits before a reactor that nobody serves is asked again, and says so
// on the thread. It returns false when the run is to wait no longer: its time is
// over, or it was told to stop.
func (t *turn) awaitReactor(ctx context.Context, l *lack) (again bool, err error) {
	if l.met.IsZero() {
		l.met = time.Now()
		left := l.most
		if !l.since.IsZero() {
			left -= time.Since(l.since)
		}
		if left > 0 {
			if err := t.awaitWorkers(ctx, []events.WaitFor{l.WaitFor}, left); err != nil {
				return false, err
			}
		}
	}
	again = l.look(t.ctx)
	if t.taking != nil && t.taking.Err() != nil { // another worker waits on
		return false, errStopping
	}
	return again && !t.stopping(), nil
}

// parks reports whether the run is to give up its place while it waits for its
// reactor, as it has waited with it for long enough.
func (t *turn) parks(l *lack) bool {
	return t.w.cfg.ParkAfter > 0 && !l.met.IsZero() && time.Since(l.met) >= t.w.cfg.ParkAfter
}

// awaitWorkers records all that the run waits for.
func (t *turn) awaitWorkers(ctx context.Context, lacks []events.WaitFor, most time.Duration) error {
	t.substate("waiting")
	_, err := t.commit(ctx, "wait", thread.AwaitWorkers{
		ExecutionID: t.job.Execution, Token: t.run.Token, For: slices.Clone(lacks), Until: events.TimeOf(time.Now().Add(most)).String(),
	})
	return err
}

// lackOf begins with a tool of which it is not known yet whether anybody serves it.
func (t *turn) lackOf(c thread.Call, spec ToolSpec) lack {
	most := spec.WorkerWait
	if most == 0 {
		most = t.agent.Limits.WorkerWait
	}
	return lack{WaitFor: events.WaitFor{Kind: events.ToolWorker, Name: c.Name, CallID: c.CallID}, most: most}
}

// awaitTool waits before a tool that nobody serves is called again. It returns false
// when the call is to wait no longer. It runs in the goroutine of the call.
func (t *turn) awaitTool(l *lack) (again bool) {
	if l.since.IsZero() && l.most > 0 && t.lacking != nil {
		t.lacking <- *l // there is room for one of each call
	}
	return l.look(t.ctx) && !t.stopping()
}

// stopping reports whether the run was told to stop.
func (t *turn) stopping() bool {
	t.live.mu.Lock()
	defer t.live.mu.Unlock()
	return t.live.run.Stop
}
