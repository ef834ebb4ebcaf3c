package runtime

import (
	"context"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections"
)

// By custom, for how long a run keeps its place whose reactor nobody serves, and how
// often those without a place are looked at.
const (
	ParkAfter = 3 * time.Second
	WakeEvery = time.Second
)

// Wake lets runs go on that were parked because no process served their reactor, when
// one does, or when their time is over, until ctx ends. It asks for each reactor once
// a round, however many runs wait for it. It is for one process at a time.
func (w *Worker) Wake(ctx context.Context, parked func(context.Context) ([]projections.ParkedRun, error), served func(ctx context.Context, reactor string) (bool, error), every time.Duration) {
	for ; ctx.Err() == nil; retry.Sleep(ctx, every) {
		list, err := parked(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.logger.Warn().Err(err).Msg("the runs that wait for a worker could not be listed")
			}
			continue
		}
		there := map[string]bool{}
		for _, run := range list {
			goes := run.Until != 0 && !time.Now().Before(run.Until.Go())
			for _, name := range run.Reactors {
				is, known := there[name]
				if !known {
					if is, err = served(ctx, name); err != nil && ctx.Err() == nil {
						w.logger.Warn().Err(err).Str("reactor", clip(name)).Msg("whether a process serves a reactor could not be asked")
					}
					there[name] = is
				}
				goes = goes || is
			}
			if !goes {
				continue
			}
			if err := w.wake(ctx, run); err != nil && ctx.Err() == nil {
				w.logger.Warn().Err(err).Str("tenant", run.Tenant).Str("execution", run.Execution).Msg("a run that waited could not be woken; it is tried again")
			}
		}
	}
}

// wake lets one run go on. One that waits no more is left alone.
func (w *Worker) wake(ctx context.Context, run projections.ParkedRun) error {
	_, err := w.commands.Run(ctx, &thread.Command{
		ID: run.Execution + ":wake:" + w.newID(), Tenant: run.Tenant, ThreadID: run.Thread, Actor: "skein:" + w.name,
		Parts: []thread.Part{{Name: "run.wake", Data: thread.WakeRun{ExecutionID: run.Execution}}},
	}, nil)
	switch events.AsError(err).Code {
	case events.NotFound, events.IllegalTransition:
		return nil
	}
	return err
}
