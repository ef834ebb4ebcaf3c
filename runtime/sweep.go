package runtime

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/query"
)

// RunLease is the lease under which one process sweeps.
const RunLease = "runs"

// SweepEvery is the usual interval of sweeps.
const SweepEvery = 5 * time.Second

// Busy returns threads that are streaming, from a read model.
type Busy func(ctx context.Context) iter.Seq2[ThreadRef, error]

// ThreadRef names a thread of a tenant.
type ThreadRef struct{ Tenant, Thread string }

// Sweep runs immediately and then at intervals until ctx ends. It queues executions that have no
// queue message, and resumes calls that missed the end of their run. It cancels runs that work for
// a call that no longer waits for them. Only one process may run it at a time.
func (w *Worker) Sweep(ctx context.Context, busy Busy, every time.Duration) error {
	suspects := map[runRef]int64{} // executions that had no message, with their last claims
	for {
		found := map[runRef]int64{}
		for ref, err := range busy(ctx) {
			if err != nil {
				w.logger.Warn().Err(err).Msg("cannot list the busy threads")
				break
			}
			if err := w.sweep(ctx, ref, suspects, found); err != nil && ctx.Err() == nil {
				w.logger.Warn().Err(err).Str("tenant", ref.Tenant).Str("thread", ref.Thread).Msg("cannot sweep a busy thread")
			}
		}
		suspects = found
		retry.Sleep(ctx, every)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// Unfinished reports whether any thread has a run that a worker executes or should execute. Runs
// that wait for a person, a later time or another process do not count.
func (w *Worker) Unfinished(ctx context.Context, busy Busy) (is bool, err error) {
	for ref, err := range busy(ctx) {
		if err == nil {
			err = w.commands.Look(ctx, ref.Tenant, ref.Thread, func(s *thread.State) {
				run, active := s.Run(s.Active())
				is = active && !run.Parked
			})
		}
		if err != nil || is {
			return is, err
		}
	}
	return false, nil
}

// sweep checks the run of one thread. A run is queued only if it had no message twice,
// with no claim in between: its message may be on its way.
func (w *Worker) sweep(ctx context.Context, ref ThreadRef, suspects, found map[runRef]int64) error {
	var run thread.Run
	active := false
	if err := w.commands.Look(ctx, ref.Tenant, ref.Thread, func(s *thread.State) {
		run, active = s.Run(s.Active())
	}); err != nil || !active {
		return err
	}
	if cancelled, err := w.sweepOrphan(ctx, ref, run); err != nil || cancelled {
		return err
	}
	if run.Parked {
		for _, c := range run.Calls {
			if c.Apart {
				if err := w.sweepCall(ctx, ref, run, c); err != nil {
					return err
				}
			}
		}
		return nil
	}
	there, err := queues.RunsOf(w.log).Has(ctx, ref.Tenant, ref.Thread, run.ExecutionID, run.Wanted)
	if err != nil || there {
		return err
	}
	key := runRef{ref.Tenant, ref.Thread, run.ExecutionID}
	if before, seen := suspects[key]; !seen || before != run.Token {
		found[key] = run.Token
		return nil
	}
	w.logger.Warn().Str("tenant", ref.Tenant).Str("execution", run.ExecutionID).Msg("a run had no message in the queue; it is queued again")
	return queues.RunsOf(w.log).Put(ref.Tenant, ref.Thread, run.Wanted, run.ExecutionID, run.Agent)
}

// sweepCall resumes a call whose run has ended.
func (w *Worker) sweepCall(ctx context.Context, ref ThreadRef, run thread.Run, c thread.Call) error {
	is, err := w.lookChild(ctx, childOf(ref.Tenant, ref.Thread, run.ExecutionID, c.CallID, run.Begun))
	if err != nil || is == childRuns {
		return err
	}
	return w.resumeCall(ctx, ref.Tenant, ref.Thread, run.ExecutionID, c.CallID, nil)
}

// agent returns an agent with its defaults, also together with an *AbsentServersError.
func (w *Worker) agent(ctx context.Context, tenant, name string) (*Agent, error) {
	a, err := w.agents.Agent(ctx, tenant, name)
	if absent := (*AbsentServersError)(nil); err != nil && !errors.As(err, &absent) {
		return nil, err
	}
	return a.withDefaults(), err
}

func (w *Worker) newID() string { return uuid.Must(uuid.NewV7()).String() }

// Defaults: how long a run keeps its place while no process serves its reactor or its tools,
// and the interval at which runs without a place are checked.
const (
	ParkAfter = 3 * time.Second
	WakeEvery = time.Second
)

// Served reports whether a process serves a worker now. The tenant is empty unless the worker is
// an MCP server, since each tenant has its own servers.
type Served func(ctx context.Context, tenant string, worker events.WaitFor) (bool, error)

// Wake resumes parked runs until ctx ends: when a process serves their reactor or tool again, and
// when their time to wait is over. In each round it checks each reactor and tool once, no matter
// how many runs wait for it. Only one process may call it at a time.
func (w *Worker) Wake(ctx context.Context, parked func(context.Context) ([]query.ParkedRun, error), served Served, every time.Duration) {
	for ; ctx.Err() == nil; retry.Sleep(ctx, every) {
		list, err := parked(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.logger.Warn().Err(err).Msg("cannot list the runs that wait for a worker")
			}
			continue
		}
		type checked struct {
			tenant string
			events.WaitFor
		}
		there := map[checked]bool{}
		for _, run := range list {
			goes := run.Until != 0 && !time.Now().Before(run.Until.Go())
			for _, worker := range run.Workers {
				one := checked{WaitFor: worker}
				if worker.IsServer() {
					one.tenant = run.Tenant
				}
				is, known := there[one]
				if !known {
					if is, err = served(ctx, one.tenant, worker); err != nil && ctx.Err() == nil {
						w.logger.Warn().Err(err).Str("kind", string(worker.Kind)).Str("name", clip(worker.Name)).Msg("cannot check whether a process serves a reactor or a tool")
					}
					there[one] = is
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

// wakeRun resumes a run. It does nothing if the run no longer waits.
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
