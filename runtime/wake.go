package runtime

import (
	"context"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/query"
)

// Defaults: how long a run keeps its place while no process serves its reactor or its tools,
// and the interval at which runs without a place are checked.
const (
	ParkAfter = 3 * time.Second
	WakeEvery = time.Second
)

// Wake continues parked runs until ctx ends: those whose reactor or tool a process serves again,
// and those whose time is over. It checks each reactor and tool once a round, however many runs
// wait for it. Only one process may call it at a time.
func (w *Worker) Wake(ctx context.Context, parked func(context.Context) ([]query.ParkedRun, error), served func(context.Context, events.WaitFor) (bool, error), every time.Duration) {
	for ; ctx.Err() == nil; retry.Sleep(ctx, every) {
		list, err := parked(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.logger.Warn().Err(err).Msg("cannot list the runs that wait for a worker")
			}
			continue
		}
		there := map[events.WaitFor]bool{}
		for _, run := range list {
			goes := run.Until != 0 && !time.Now().Before(run.Until.Go())
			for _, worker := range run.Workers {
				is, known := there[worker]
				if !known {
					if is, err = served(ctx, worker); err != nil && ctx.Err() == nil {
						w.logger.Warn().Err(err).Str("kind", string(worker.Kind)).Str("name", clip(worker.Name)).Msg("cannot check whether a process serves a reactor or a tool")
					}
					there[worker] = is
				}
				goes = goes || is
			}
			if !goes {
				continue
			}
			if err := w.wakeRun(ctx, run); err != nil && ctx.Err() == nil {
				w.logger.Warn().Err(err).Str("tenant", run.Tenant).Str("execution", run.Execution).Msg("cannot wake a waiting run; it is retried")
			}
		}
	}
}

// wakeRun continues one run. It skips one that no longer waits.
func (w *Worker) wakeRun(ctx context.Context, run query.ParkedRun) error {
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
