package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// subscribeStops subscribes to the stops of runs, in any process.
func (w *Worker) subscribeStops() (stop func(), err error) {
	subject := w.log.Config().Names.Timeline("*", "*", events.RunStoppedType)
	sub, err := w.log.Conn().Subscribe(subject, func(m *nats.Msg) {
		e, err := events.DecodeEvent(m.Data)
		if err != nil {
			return // the log has it, and the run's next commit finds it
		}
		if d, ok := e.Data.(events.RunStopped); ok {
			w.handleStop(runRef{e.Tenant, e.ThreadID, e.Subject}, e.Version, d)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to the stops of runs: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // closing the connection ends it too
}

// stop is a stop of a run, with the version of the thread that records it.
type stop struct {
	version int64
	events.RunStopped
}

// maxStops bounds the stops that are kept for runs without a turn here. A dropped stop is noticed
// at the run's next commit.
const maxStops = 1024

// handleStop ends the work of a cancelled run. A run that must only stop after its current
// operation notices that at its next commit. A run that this worker has just claimed may not be
// watched yet: its stop is kept until it is.
func (w *Worker) handleStop(run runRef, version int64, d events.RunStopped) {
	w.mu.Lock()
	t := w.turns[run]
	if t == nil && (d.Abort || d.Now) {
		if len(w.stops) >= maxStops {
			clear(w.stops)
		}
		w.stops[run] = stop{version, d}
	}
	w.mu.Unlock()
	if t != nil {
		t.stop(d)
	}
}

// stop cancels a turn if the stop aborts its run. It interrupts the reactor's call if the run must
// stop now. Otherwise the turn ends by itself.
func (t *turn) stop(d events.RunStopped) {
	t.live.noteStop(d)
	switch {
	case d.Abort:
		t.abort(errAborted)
	case d.Now:
		t.interrupt()
	}
}

// stillHolds reports whether a turn still has its run. One that lost it, because the process
// was suspended for too long, ends: its writes would be refused.
func (w *Worker) stillHolds(ctx context.Context, t *turn) bool {
	w.mu.Lock()
	watched, token := w.turns[t.ref()] == t, t.token
	w.mu.Unlock()
	if !watched { // the turn has not begun, or is about to end
		return true
	}
	var now int64
	if err := w.commands.Look(ctx, t.job.Tenant, t.job.Thread, func(s *thread.State) {
		if r, ok := s.Run(t.job.Execution); ok {
			now = r.Token
		}
	}); err != nil || now == token {
		return true
	}
	t.abort(&thread.LostRunError{ExecutionID: t.job.Execution, Token: token, Now: now})
	return false
}

// watch notifies a turn when its run is cancelled.
func (w *Worker) watch(t *turn) (done func()) {
	ref := t.ref()
	w.mu.Lock()
	w.turns[ref] = t
	t.token = t.run.Token
	before, told := w.stops[ref]
	delete(w.stops, ref)
	w.mu.Unlock()
	if told && before.version > t.since {
		t.stop(before.RunStopped)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.turns[ref] == t {
			delete(w.turns, ref)
		}
	}
}

// ref names the turn's run.
func (t *turn) ref() runRef { return runRef{t.job.Tenant, t.job.Thread, t.job.Execution} }

// interrupt ends the call of a reactor. It does not end calls of tools, which may be half done.
func (t *turn) interrupt() {
	t.asking.Lock()
	defer t.asking.Unlock()
	if t.cut != nil {
		t.cut()
	}
}

// cuttable returns a context for the call of a reactor, which interrupt ends; call done
// when the call is over.
func (t *turn) cuttable() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	t.asking.Lock()
	defer t.asking.Unlock()
	t.cut = func() { cancel(errInterrupted) }
	if t.stopsNow() {
		t.cut()
	}
	return ctx, func() {
		t.asking.Lock()
		defer t.asking.Unlock()
		t.cut = nil
		cancel(nil)
	}
}

// errInterrupted is the cause when a reactor's call ends because its run must stop now.
var errInterrupted = errors.New("interrupted")

// stopsNow reports whether the run must stop without waiting.
func (t *turn) stopsNow() bool {
	t.live.mu.Lock()
	defer t.live.mu.Unlock()
	return t.live.now
}
