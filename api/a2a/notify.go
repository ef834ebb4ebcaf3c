package a2a

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// Notification is what a client is told of a task that it has asked to be told of.
type Notification struct {
	Type string // of the body
	Body []byte // nil: nothing
	Last bool   // the task has ended
}

// Notify returns what a client is told of an event of its task, as the task is now. The client c reads
// the tenant, at the event or later.
func Notify(ctx context.Context, c *client.Client, to *events.SetPush, e *events.Event) (*Notification, error) {
	n := &notice{version: v1, kind: mediaType, site: site(to.Base), now: c}
	if to.Form == events.PushA2A0 {
		n.version, n.kind = v0, "application/json"
	}
	switch d := e.Data.(type) {
	case events.LifecycleDeleted:
		return &Notification{Last: true}, nil
	case events.QueueRemoved:
		if d.ExecutionID != to.ExecutionID {
			return &Notification{}, nil
		}
		return n.removed(ctx, to.ExecutionID, e.ThreadID)
	default:
		if e.Correlation != to.ExecutionID {
			return &Notification{}, nil
		}
	}
	x, err := client.Read(ctx, c, events.GetExecution{ThreadID: e.ThreadID, ExecutionID: to.ExecutionID})
	if events.IsNotFound(err) { // it was deleted, and so is what there was to tell
		return &Notification{Last: true}, nil
	}
	if err != nil {
		return nil, err
	}
	return n.changed(ctx, x, e.Type)
}

// notice writes notifications in a version.
type notice struct {
	version version
	kind    string
	site    site
	now     *client.Client
}

// removed tells that a task was removed from its context's queue.
func (n *notice) removed(ctx context.Context, id, thread string) (*Notification, error) {
	context, err := n.contextOf(ctx, thread)
	if err != nil {
		return nil, err
	}
	return n.whole(task{ID: id, ContextID: context, Status: status{State: canceled}})
}

// changed tells of the state that an event has led to, unless that has passed.
func (n *notice) changed(ctx context.Context, x *events.Execution, of events.Type) (*Notification, error) {
	context, err := n.contextOf(ctx, x.ThreadID)
	if err != nil {
		return nil, err
	}
	var now status
	switch waits := !x.Finished && runview.AwaitsPeople(x); {
	case of == events.ExecutionStatusChangedType && x.Finished:
		t, err := n.site.taskOf(ctx, n.now, x, context, nil, true)
		if err != nil {
			return nil, err
		}
		return n.whole(t)
	case of == events.RunParkedType && waits:
		now = statusOf(x, context)
	case of == events.RunClaimedType, of == events.RunResumedType:
		now = status{State: working, Timestamp: changedAt(x)}
	default:
		return &Notification{}, nil
	}
	if n.version == v0 { // it is told whole tasks
		t, err := n.site.taskOf(ctx, n.now, x, context, nil, true)
		if err != nil {
			return nil, err
		}
		t.Status = now
		return n.written(t, false)
	}
	return n.written(task{ID: x.ID, ContextID: context, Status: now}, false)
}

// whole tells of a task that has ended.
func (n *notice) whole(t task) (*Notification, error) { return n.written(t, true) }

// written writes a notification: that of a task that has ended, and of every one of 0.3, is the task.
func (n *notice) written(t task, last bool) (*Notification, error) {
	u := update{Task: &t}
	if !last && n.version == v1 {
		u = update{Status: &statusUpdate{TaskID: t.ID, ContextID: t.ContextID, Status: t.Status}}
	}
	body, err := json.Marshal(n.version.update(u), json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return &Notification{Type: n.kind, Body: body, Last: last}, err
}

// contextOf returns the contextId of a thread, its id if it was deleted.
func (n *notice) contextOf(ctx context.Context, thread string) (string, error) {
	t, err := client.Read(ctx, n.now, events.GetThread{ThreadID: thread})
	if events.IsNotFound(err) {
		return thread, nil
	}
	if err != nil {
		return "", err
	}
	return contextOf(t), nil
}
