package client

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/skein-threads/skein/events"
)

// Waiting says what a run waits for.
type Waiting struct {
	Queued bool // its message waits for the agent
	Ahead  int  // then: how many runs come before it, with the one under way

	Workers   []events.WaitFor           // reactors and tools that no process serves now
	Approvals []events.ApprovalRequested // calls that wait for a person
}

// WaitRun waits until an execution has ended, and returns it: also one that has
// ended long ago, and one whose message still waits for the agent, if the query
// names the thread. After React, ask with the reply's ThreadID, the ExecutionID of
// its result and its Seq as MinSeq. It goes on over a server that is away for a
// while, until ctx ends. The error is ctx's, or that of the query: a not_found also
// if the message is taken out of the queue.
func (c *Client) WaitRun(ctx context.Context, q events.GetExecution) (*events.Execution, error) {
	return c.WatchRun(ctx, q, func(Waiting) {})
}

// WatchRun waits as WaitRun does, and tells what the run waits for meanwhile: when it
// is found, and whenever that changes. The zero Waiting says that it waits for
// nothing. It tells one thing at a time.
func (c *Client) WatchRun(ctx context.Context, q events.GetExecution, tell func(Waiting)) (*events.Execution, error) {
	w := &runWatch{client: c, query: q, tell: tell}
	for attempt := 0; ; attempt++ {
		x, err := w.wait(ctx)
		if err == nil || !errors.Is(err, &events.Error{Code: events.Unavailable}) || c.nc.IsClosed() || !pause(ctx, attempt) {
			return x, err
		}
	}
}

// runWatch waits for one execution.
type runWatch struct {
	client *Client
	query  events.GetExecution
	tell   func(Waiting)
	told   Waiting
	spoke  bool
}

// runNews are the events that say how a run goes on.
func runNews() []string {
	var names []string
	for _, t := range []events.Type{
		events.ThreadFinishedType, events.ExecutionCreatedType, events.LifecycleDeletedType,
		events.RunAwaitedType, events.RunClaimedType,
		events.ApprovalRequestedType, events.ApprovalGrantedType, events.ApprovalDeniedType, events.ApprovalResolvedType,
		events.QueuePushedType, events.QueueDrainedType, events.QueueRemovedType, events.QueueMovedType,
	} {
		names = append(names, string(t))
	}
	return names
}

func (w *runWatch) wait(ctx context.Context) (*events.Execution, error) {
	x, queue, err := w.look(ctx)
	if err != nil || x != nil && x.Finished {
		return x, err
	}
	o := SubscribeOptions{Types: runNews()}
	if x != nil {
		o.Thread, o.From = x.ThreadID, Seq(x.Seq+1)
		w.change(func(now *Waiting) { now.Workers, now.Approvals = x.WaitingFor, asked(x) })
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
		over, err := w.news(ctx, o.Thread, &e)
		if err != nil {
			return nil, err
		}
		if !over {
			continue
		}
		return w.client.GetExecution(ctx, events.GetExecution{ThreadID: o.Thread, ExecutionID: w.query.ExecutionID, Fresh: events.Fresh{MinSeq: &e.Seq}})
	}
}

// asked returns the approvals that an execution waits for.
func asked(x *events.Execution) []events.ApprovalRequested {
	var list []events.ApprovalRequested
	for _, a := range x.Approvals {
		if a.Status == events.ApprovalWaiting {
			list = append(list, events.ApprovalRequested{
				CallID: a.CallID, StepID: a.StepID, Name: a.Name, Arguments: a.Arguments, Reason: a.Reason, Question: a.Question, Answer: a.Answer,
			})
		}
	}
	return list
}

// look returns the execution, or else the queue in which its message waits.
func (w *runWatch) look(ctx context.Context) (*events.Execution, *events.QueueList, error) {
	x, err := w.client.GetExecution(ctx, w.query)
	if w.query.ThreadID == "" || w.query.At != nil || !errors.Is(err, &events.Error{Code: events.NotFound}) {
		return x, nil, err
	}
	queue, listErr := w.client.ListQueue(ctx, events.ListQueue{ThreadID: w.query.ThreadID})
	if listErr != nil {
		return nil, nil, listErr
	}
	if w.queued(queue) {
		return nil, queue, nil
	}
	again := w.query // it may have begun meanwhile
	again.MinSeq, again.MinVersion = &queue.Seq, nil
	x, err = w.client.GetExecution(ctx, again)
	return x, nil, err
}

// queued reports whether the execution's message waits, and tells how many are
// before it.
func (w *runWatch) queued(list *events.QueueList) bool {
	at := slices.IndexFunc(list.Queued, func(q events.Queued) bool { return q.ExecutionID == w.query.ExecutionID })
	if at < 0 {
		return false
	}
	ahead := at
	for _, q := range list.Queued[at+1:] {
		if q.ExecutionID == "" { // a call of a tool: it goes before messages
			ahead++
		}
	}
	if list.Active != "" {
		ahead++
	}
	w.say(Waiting{Queued: true, Ahead: ahead})
	return true
}

// say tells what the run waits for, if that is something else than before.
func (w *runWatch) say(now Waiting) {
	if !w.spoke || !reflect.DeepEqual(now, w.told) {
		w.told, w.spoke = now, true
		w.tell(now)
	}
}

// change tells of a change of what the run waits for.
func (w *runWatch) change(how func(*Waiting)) {
	now := Waiting{Workers: slices.Clone(w.told.Workers), Approvals: slices.Clone(w.told.Approvals)}
	if how(&now); len(now.Workers) == 0 {
		now.Workers = nil
	}
	if len(now.Approvals) == 0 {
		now.Approvals = nil
	}
	w.say(now)
}

// answered notes that a call waits for a person no more.
func (w *runWatch) answered(call string) {
	w.change(func(now *Waiting) {
		now.Approvals = slices.DeleteFunc(now.Approvals, func(a events.ApprovalRequested) bool { return a.CallID == call })
	})
}

// news takes an event of the thread, and reports whether the execution is over.
func (w *runWatch) news(ctx context.Context, thread string, e *Event) (over bool, err error) {
	switch d := e.Data.(type) {
	case events.ThreadFinished:
		return d.ExecutionID == w.query.ExecutionID, nil
	case events.LifecycleDeleted: // the query says that it is gone
		return true, nil
	case events.ExecutionCreated:
		if d.ID == w.query.ExecutionID {
			w.say(Waiting{})
		}
	case events.RunAwaited:
		if e.Subject == w.query.ExecutionID {
			w.change(func(now *Waiting) { now.Workers = d.For })
		}
	case events.RunClaimed:
		if e.Subject == w.query.ExecutionID {
			w.change(func(now *Waiting) { now.Workers = nil })
		}
	case events.ApprovalRequested:
		if e.Correlation == w.query.ExecutionID {
			w.change(func(now *Waiting) { now.Approvals = append(now.Approvals, d) })
		}
	case events.ApprovalGranted:
		w.answered(d.CallID)
	case events.ApprovalResolved:
		w.answered(d.CallID)
	case events.ApprovalDenied:
		w.answered(d.CallID)
	case events.QueueRemoved:
		if d.ExecutionID == w.query.ExecutionID {
			return false, events.Errorf(events.NotFound, "execution %s will not be: its message was taken out of the queue", d.ExecutionID)
		}
		return false, w.askQueue(ctx, thread)
	case events.QueuePushed, events.QueueDrained, events.QueueMoved:
		return false, w.askQueue(ctx, thread)
	}
	return false, nil
}

// askQueue looks how many are before the message now, if it waits.
func (w *runWatch) askQueue(ctx context.Context, thread string) error {
	if !w.told.Queued {
		return nil
	}
	list, err := w.client.ListQueue(ctx, events.ListQueue{ThreadID: thread})
	if err == nil {
		w.queued(list)
	}
	return err
}
