package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// A run in a thread of its own works for a call of another run, its parent. It becomes an orphan
// when that call no longer waits for it: the parent was cancelled, has failed, was deleted with
// its thread, or is an orphan itself. An orphan is cancelled in three ways:
//
//   - workers that hear that a run was cancelled cancel those that it waits for (followStops);
//     a message that is lost has no effect;
//   - a worker checks before each call of the reactor, and before the calls of a step, whether
//     its run is an orphan (endOrphan): it begins nothing more, whatever messages are lost, and
//     a family does not grow faster than it is cancelled;
//   - the sweeper cancels orphans that are in the middle of a step, or wait (sweepOrphan).

// orphanReason is the reason with which an orphan is cancelled.
const orphanReason = "the run that asked for it has ended, or waits for it no more"

// orphaned reports whether the call that a run works for no longer waits for it, or the parent is
// an orphan. A call that is not recorded as waiting yet still counts: it has not been made, and
// its run has not ended.
func (w *Worker) orphaned(ctx context.Context, tenant string, parent *events.Parent) (is bool, err error) {
	for parent != nil && !is {
		at := *parent
		if err := w.commands.Look(ctx, tenant, at.ThreadID, func(s *thread.State) {
			r, ok := s.Run(at.ExecutionID)
			parent, is = r.Parent, !ok || r.Status != events.Executing || r.Abort ||
				!slices.ContainsFunc(r.Calls, func(c thread.Call) bool { return c.CallID == at.CallID && !c.Done })
		}); err != nil {
			return false, err
		}
	}
	return is, nil
}

// cancelPart returns the command that cancels an orphan.
func cancelPart(execution string) thread.Part {
	return thread.Part{Name: "run.cancel", Data: events.CancelRun{ExecutionID: execution, Reason: orphanReason}}
}

// cancelOrphan cancels an orphan. It does nothing if the run has ended. If several processes
// cancel a run, it is cancelled once.
func (w *Worker) cancelOrphan(ctx context.Context, tenant, id, execution string) error {
	_, err := w.commands.Run(ctx, &thread.Command{
		ID: execution + ":orphan", Tenant: tenant, ThreadID: id, Actor: "skein:" + w.name, Parts: []thread.Part{cancelPart(execution)},
	}, nil)
	switch events.AsError(err).Code {
	case events.NotFound, events.IllegalTransition:
		return nil
	}
	return err
}

// endOrphan ends the run in one commit if it is an orphan. The sweeper ends orphans that wait.
func (t *turn) endOrphan(ctx context.Context) error {
	if t.run.Status != events.Executing || t.run.Parked {
		return nil
	}
	is, err := t.w.orphaned(ctx, t.job.Tenant, t.run.Parent)
	if err != nil || !is {
		return err
	}
	t.failure = thread.Aborted
	c := t.command(t.job.Execution+":orphan:"+t.w.newID(), "fail", thread.FailRun{
		ExecutionID: t.job.Execution, Token: t.run.Token, ErrorText: thread.Aborted, Records: t.live.takeSpans(),
	})
	c.Parts = append([]thread.Part{cancelPart(t.job.Execution)}, c.Parts...)
	commit, err := t.w.commands.Run(ctx, c, t.noteRun)
	if err != nil || commit == nil {
		return err
	}
	t.logger.Info().Str("thread", t.job.Thread).Msg("a run was cancelled: the run that asked for it has ended")
	return t.readUntil(ctx, commit)
}

// sweepOrphan cancels a run if it is an orphan, and reports whether it was.
func (w *Worker) sweepOrphan(ctx context.Context, ref ThreadRef, run thread.Run) (cancelled bool, err error) {
	if run.Abort {
		return false, nil
	}
	if is, err := w.orphaned(ctx, ref.Tenant, run.Parent); err != nil || !is {
		return false, err
	}
	return true, w.cancelOrphan(ctx, ref.Tenant, ref.Thread, run.ExecutionID)
}

// followStops cancels, until ctx ends, the runs that cancelled runs wait for. Each stop is
// delivered to one of all processes.
func (w *Worker) followStops(ctx context.Context) (stop func(), err error) {
	sub, err := w.log.Conn().QueueSubscribeSync(w.log.Config().Names.Timeline("*", "*", events.RunStoppedType), "runs")
	if err != nil {
		return nil, fmt.Errorf("subscribe to the stops of runs: %w", err)
	}
	for range stopFollowers {
		w.running.Go(func() { w.followEach(ctx, sub) })
	}
	return func() { _ = sub.Unsubscribe() }, nil // closing the connection ends it too
}

// stopFollowers is how many stops a process follows at a time.
const stopFollowers = 16

// followEach follows the stops of a subscription until it or ctx ends.
func (w *Worker) followEach(ctx context.Context, sub *nats.Subscription) {
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrSlowConsumer): // the sweeper finds the orphans of lost messages
			continue
		case err != nil:
			return
		}
		e, err := events.DecodeEvent(m.Data)
		if err != nil {
			continue
		}
		if d, ok := e.Data.(events.RunStopped); ok && d.Abort {
			if err := w.cancelChildren(ctx, e.Tenant, e.ThreadID, e.Subject); err != nil && ctx.Err() == nil {
				w.logger.Warn().Err(err).Str("tenant", e.Tenant).Str("execution", e.Subject).Msg("cannot cancel the runs that a cancelled one waits for; the sweeper will")
			}
		}
	}
}

// cancelChildren cancels the runs that the calls of a cancelled run wait for, or waited for when
// it ended. Worker threads of a deleted thread are deleted with it.
func (w *Worker) cancelChildren(ctx context.Context, tenant, id, execution string) error {
	var run thread.Run
	if err := w.commands.Look(ctx, tenant, id, func(s *thread.State) { run, _ = s.Run(execution) }); err != nil {
		return err
	}
	calls := run.Left
	for _, c := range run.Calls {
		if c.Apart {
			calls = append(calls[:len(calls):len(calls)], c.CallID)
		}
	}
	for _, call := range calls {
		child := childOf(tenant, id, execution, call, run.Begun)
		if err := w.cancelOrphan(ctx, tenant, child.thread, child.execution); err != nil {
			return err
		}
	}
	return nil
}
