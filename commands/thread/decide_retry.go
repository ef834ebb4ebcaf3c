package thread

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// retryRun retries a failed run. A failed execution is final, so another one answers the same
// item: it sees all that the failed one recorded, and continues from there.
func (m *maker) retryRun(d events.RetryRun) error {
	id := d.ExecutionID
	if id == "" {
		if id = m.state.head.Failed; id == "" {
			return events.Errorf(events.NotFound, "retry: the thread's last run did not fail")
		}
	}
	x, ok := m.state.execution(id)
	switch {
	case !ok || x.Run == nil:
		return events.Missing("run of execution", id)
	case x.Status != events.ExecutionFailed:
		return events.Invalid("/executionId", "execution %s is %s; only a failed one is retried", id, x.Status)
	case m.state.head.Failed != id:
		return events.Invalid("/executionId", "execution %s is not the thread's last one; send another message instead", id)
	case x.Run.Parent != nil:
		return events.Invalid("/executionId", "execution %s works for a call on thread %s, which has been told that it failed; retry that one", id, x.Run.Parent.ThreadID)
	}
	if _, err := m.itemOf(x.Trigger); err != nil {
		return err
	}
	ctx, open := m.openContext(x.Context)
	if !open {
		return events.ContextMachine().Check(x.Context, events.ContextClosed, events.ContextStreaming)
	}
	return m.start(begin{
		item: events.NewItem{ID: x.Trigger}, context: ctx, agent: x.Run.Agent, calls: slices.Clone(x.Run.First), once: x.Run.Once, retryOf: id,
	})
}

// awaitWorkers records that a run waits for workers that no process serves.
func (m *maker) awaitWorkers(d AwaitWorkers) error {
	x, err := m.claimed(d.ExecutionID, d.Token)
	if err != nil {
		return err
	}
	if slices.Equal(x.Run.Lacks, d.For) {
		return nil
	}
	m.emit(events.RunAwaitedType, d.ExecutionID, d.ExecutionID, events.RunAwaited{For: d.For, Until: d.Until})
	return nil
}

// served records that a run no longer waits for the workers that which selects.
func (m *maker) served(execution string, which func(events.WaitFor) bool) {
	x, _ := m.state.execution(execution)
	left := slices.DeleteFunc(slices.Clone(x.Run.Lacks), which)
	if len(left) == len(x.Run.Lacks) {
		return
	}
	m.emit(events.RunAwaitedType, execution, execution, events.RunAwaited{For: left})
}
