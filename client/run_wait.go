package client

import (
	"context"
	"reflect"
	"slices"

	"github.com/skein-threads/skein/events"
)

// Waiting is what a run waits for.
type Waiting struct {
	Queued bool // its message is in the agent's queue
	Ahead  int  // if Queued: how many runs come before it, including the active one

	Workers   []events.WaitFor           // reactors and tools that no process serves now
	Approvals []events.ApprovalRequested // calls that wait for a person
	Parked    bool                       // it has no worker until what it waits for has come
}

// WaitRun blocks until an execution has ended, and returns it. The execution may have
// ended before the call, and its message may still be in the agent's queue if the query
// names the thread. After an events.ReactThread, pass the reply's ThreadID, the ExecutionID of its
// result, and its Seq as MinSeq. It retries while the server is unavailable or its read
// models are behind, until ctx ends. The error is ctx's or the query's: also a not_found if
// the message is removed from the queue.
func (c *Client) WaitRun(ctx context.Context, q events.GetExecution) (*events.Execution, error) {
	return c.WatchRun(ctx, q, func(Waiting) {})
}

// WatchRun is WaitRun, and calls tell with what the run waits for: when the run is
// found, and after each change. The zero Waiting means that it waits for nothing. Calls
// of tell do not overlap.
func (c *Client) WatchRun(ctx context.Context, q events.GetExecution, tell func(Waiting)) (*events.Execution, error) {
	return (&runWatch{client: c, query: q, tell: tell}).watch(ctx)
}

// WatchExecution is WatchRun of an execution that was read, from there on.
func (c *Client) WatchExecution(ctx context.Context, x *events.Execution, tell func(Waiting)) (*events.Execution, error) {
	w := &runWatch{client: c, query: events.GetExecution{ThreadID: x.ThreadID, ExecutionID: x.ID}, tell: tell}
	if x.Seq > 0 {
		w.read = x
	}
	return w.watch(ctx)
}

func (w *runWatch) watch(ctx context.Context) (*events.Execution, error) {
	for attempts := requests().Start(); ; {
		x, err := w.wait(ctx)
		if err == nil || !events.HasCode(err, events.Unavailable, events.ProjectionBehind) || !events.AsError(err).Retry() || w.client.nc.IsClosed() || attempts.Wait(ctx) != nil {
			return x, err
		}
	}
}

// runWatch waits for one execution.
type runWatch struct {
	client *Client
	query  events.GetExecution
	read   *events.Execution // nil: it is yet to be read
	tell   func(Waiting)
	told   Waiting
	spoke  bool
}

// runNews are the events that show the progress of a run.
func runNews() []string {
	var names []string
	for _, t := range []events.Type{
		events.ThreadFinishedType, events.ExecutionCreatedType, events.LifecycleDeletedType,
		events.RunAwaitedType, events.RunClaimedType, events.RunParkedType,
		events.ApprovalRequestedType, events.ApprovalGrantedType, events.ApprovalDeniedType, events.ApprovalResolvedType,
		events.QueuePushedType, events.QueueDrainedType, events.QueueRemovedType, events.QueueMovedType,
	} {
		names = append(names, string(t))
	}
	return names
}

func (w *runWatch) wait(ctx context.Context) (*events.Execution, error) {
	x, queue, err := w.lookUp(ctx)
	if err != nil || x != nil && x.Finished {
		return x, err
	}
	o := SubscribeOptions{Types: runNews()}
	if x != nil {
		o.Thread, o.From = x.ThreadID, Seq(x.Seq+1)
		w.changeWaiting(func(now *Waiting) {
			now.Workers, now.Approvals, now.Parked = x.WaitingFor, approvalsOf(x), len(x.Waiting) > 0
		})
	} else {
		o.Thread, o.From = queue.ThreadID, Seq(queue.Seq+1)
	}
	timeline, err := w.client.Timeline(ctx, o)
	if err != nil {
		return nil, err
	}
	defer timeline.Close()
	for {
		e, err := timeline.Next(ctx)
		if err != nil {
			return nil, err
		}
		over, err := w.handleEvent(ctx, o.Thread, &e)
		if err != nil {
			return nil, err
		}
		if !over {
			continue
		}
		return Read(ctx, w.client, events.GetExecution{ThreadID: o.Thread, ExecutionID: w.query.ExecutionID, Fresh: events.Fresh{MinSeq: &e.Seq}})
	}
}

// approvalsOf returns the approvals that an execution waits for.
func approvalsOf(x *events.Execution) []events.ApprovalRequested {
	var list []events.ApprovalRequested
	for _, a := range x.WaitingApprovals() {
		list = append(list, a.Request())
	}
	return list
}

// lookUp returns the execution, or else the queue with its message.
func (w *runWatch) lookUp(ctx context.Context) (*events.Execution, *events.QueueList, error) {
	if x := w.read; x != nil {
		w.read = nil // what is tried again reads it again
		return x, nil, nil
	}
	x, err := Read(ctx, w.client, w.query)
	if w.query.ThreadID == "" || w.query.At != nil || !events.IsNotFound(err) {
		return x, nil, err
	}
	queue, listErr := w.client.ListQueue(ctx, events.ListQueue{ThreadID: w.query.ThreadID})
	if listErr != nil {
		return nil, nil, listErr
	}
	if w.queued(queue) {
		return nil, queue, nil
	}
	again := w.query // it may have begun between the two queries
	again.MinSeq, again.MinVersion = &queue.Seq, nil
	x, err = Read(ctx, w.client, again)
	return x, nil, err
}

// queued reports whether the execution's message is in the queue, and tells how many
// are before it.
func (w *runWatch) queued(list *events.QueueList) bool {
	at := slices.IndexFunc(list.Queued, func(q events.Queued) bool { return q.ExecutionID == w.query.ExecutionID })
	if at < 0 {
		return false
	}
	ahead := at
	for _, q := range list.Queued[at+1:] {
		if q.ExecutionID == "" { // a call of a tool, which precedes messages
			ahead++
		}
	}
	if list.Active != "" {
		ahead++
	}
	w.tellIfChanged(Waiting{Queued: true, Ahead: ahead})
	return true
}

// tellIfChanged calls tell if what the run waits for has changed.
func (w *runWatch) tellIfChanged(now Waiting) {
	if !w.spoke || !reflect.DeepEqual(now, w.told) {
		w.told, w.spoke = now, true
		w.tell(now)
	}
}

// changeWaiting applies a change to what the run waits for, and tells it.
func (w *runWatch) changeWaiting(how func(*Waiting)) {
	now := Waiting{Workers: slices.Clone(w.told.Workers), Approvals: slices.Clone(w.told.Approvals), Parked: w.told.Parked}
	if how(&now); len(now.Workers) == 0 {
		now.Workers = nil
	}
	if len(now.Approvals) == 0 {
		now.Approvals = nil
	}
	w.tellIfChanged(now)
}

// noteAnswered notes that a call no longer waits for a person.
func (w *runWatch) noteAnswered(call string) {
	w.changeWaiting(func(now *Waiting) {
		now.Approvals = slices.DeleteFunc(now.Approvals, func(a events.ApprovalRequested) bool { return a.CallID == call })
	})
}

// handleEvent handles an event of the thread, and reports whether the execution is over.
func (w *runWatch) handleEvent(ctx context.Context, thread string, e *Event) (over bool, err error) {
	switch d := e.Data.(type) {
	case events.ThreadFinished:
		return d.ExecutionID == w.query.ExecutionID, nil
	case events.LifecycleDeleted: // the query reports that it is deleted
		return true, nil
	case events.ExecutionCreated:
		if d.ID == w.query.ExecutionID {
			w.tellIfChanged(Waiting{})
		}
	case events.RunAwaited:
		if e.Subject == w.query.ExecutionID {
			w.changeWaiting(func(now *Waiting) { now.Workers = d.For })
		}
	case events.RunClaimed:
		if e.Subject == w.query.ExecutionID {
			w.changeWaiting(func(now *Waiting) { now.Workers, now.Parked = nil, false })
		}
	case events.RunParked:
		if e.Subject == w.query.ExecutionID {
			w.changeWaiting(func(now *Waiting) { now.Parked = true })
		}
	case events.ApprovalRequested:
		if e.Correlation == w.query.ExecutionID {
			w.changeWaiting(func(now *Waiting) { now.Approvals = append(now.Approvals, d) })
		}
	case events.ApprovalGranted:
		w.noteAnswered(d.CallID)
	case events.ApprovalResolved:
		w.noteAnswered(d.CallID)
	case events.ApprovalDenied:
		w.noteAnswered(d.CallID)
	case events.QueueRemoved:
		if d.ExecutionID == w.query.ExecutionID {
			return false, events.Errorf(events.NotFound, "execution %s will not start: its message was removed from the queue", d.ExecutionID)
		}
		return false, w.refreshQueue(ctx, thread)
	case events.QueuePushed, events.QueueDrained, events.QueueMoved:
		return false, w.refreshQueue(ctx, thread)
	}
	return false, nil
}

// refreshQueue looks up how many are before the message now, if it is still queued.
func (w *runWatch) refreshQueue(ctx context.Context, thread string) error {
	if !w.told.Queued {
		return nil
	}
	list, err := w.client.ListQueue(ctx, events.ListQueue{ThreadID: thread})
	if err == nil {
		w.queued(list)
	}
	return err
}
