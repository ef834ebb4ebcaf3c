package runstream

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// A run of a thread that is busy waits in the thread's queue, and has no execution yet. So that its id
// finds it there, the id ends with that of the thread.
const (
	RandomDigits = 22  // of the number of such a run: 88 bits
	threadMark   = "c" // precedes the thread
)

// NumberIn returns the number of a run of a thread, from a random one.
func NumberIn(thread, number string) string {
	u, err := uuid.Parse(strings.TrimPrefix(thread, "T-"))
	if err != nil || !strings.HasPrefix(thread, "T-") {
		return number
	}
	return number[len(number)-RandomDigits:] + threadMark + hex.EncodeToString(u[:])
}

// ThreadIn returns the thread that an id names, which ends with the number of a run; "" if it names
// none.
func ThreadIn(id string) string {
	_, number, _ := strings.Cut(id, "_")
	if len(number) != RandomDigits+len(threadMark)+32 || !strings.HasPrefix(number[RandomDigits:], threadMark) {
		return ""
	}
	u, err := uuid.Parse(number[RandomDigits+len(threadMark):])
	if err != nil {
		return ""
	}
	return "T-" + u.String()
}

// BegunBy returns the id of the thread that a run with a number has begun, if it is one of ours.
func BegunBy(number string) string {
	u, err := uuid.Parse(number)
	if err != nil || len(number) != 32 {
		return ""
	}
	return "T-" + u.String()
}

// Find returns the execution with an id, also if it waits in a queue, from the thread that the id names,
// or the one that its run has begun. Only if it is in neither, all threads in use are searched for it: what
// that costs grows with their number. The error is a not_found if nobody knows where it is.
func Find(ctx context.Context, c *client.Client, id string) (*events.Execution, error) {
	_, number, _ := strings.Cut(id, "_")
	if thread := ThreadIn(id); thread != "" {
		return FindIn(ctx, c, id, thread)
	}
	if thread := BegunBy(number); thread != "" {
		if x, err := FindIn(ctx, c, id, thread); !events.IsNotFound(err) {
			return x, err
		}
	}
	x, err := client.Read(ctx, c, events.GetExecution{ExecutionID: events.ExecutionPrefix + number})
	if events.HasCode(err, events.InvalidRequest) { // it may be in a cold thread, of too many to search
		return nil, events.Missing("run", id)
	}
	return x, err
}

// FindIn returns the execution with an id of a thread, also if it waits in its queue and the id tells so.
func FindIn(ctx context.Context, c *client.Client, id, thread string) (*events.Execution, error) {
	_, number, _ := strings.Cut(id, "_")
	x, err := client.Read(ctx, c, events.GetExecution{ThreadID: thread, ExecutionID: events.ExecutionPrefix + number})
	if events.IsNotFound(err) && ThreadIn(id) == thread {
		return Queued(ctx, c, id)
	}
	return x, err
}

// Queued returns the execution that a run in a queue will have, or has by now. The error is a not_found
// if it waits in none.
func Queued(ctx context.Context, c *client.Client, id string) (*events.Execution, error) {
	_, number, _ := strings.Cut(id, "_")
	x := &events.Execution{ID: events.ExecutionPrefix + number, ThreadID: ThreadIn(id)}
	if x.ThreadID == "" {
		return nil, events.Missing("run", id)
	}
	list, err := c.ListQueue(ctx, events.ListQueue{ThreadID: x.ThreadID})
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list.Queued, func(q events.Queued) bool { return q.ExecutionID == x.ID })
	if at < 0 { // it may have begun between the two queries
		return client.Read(ctx, c.WithMinSeq(list.Seq), events.GetExecution{ThreadID: x.ThreadID, ExecutionID: x.ID})
	}
	return x, readQueued(ctx, c, x, false)
}

// Withdrawn returns the execution that a run would have had which was removed from its queue before it
// began: it has failed, since it was stopped. The error is a not_found if there was none.
func Withdrawn(ctx context.Context, c *client.Client, id string) (*events.Execution, error) {
	_, number, _ := strings.Cut(id, "_")
	x := &events.Execution{ID: events.ExecutionPrefix + number, ThreadID: ThreadIn(id)}
	if x.ThreadID == "" {
		return nil, events.Missing("run", id)
	}
	return x, readQueued(ctx, c, x, true)
}

// readQueued completes the execution of a run that was put in a queue, from the events of its thread,
// also with its removal from there. The error is a not_found if they do not have it.
func readQueued(ctx context.Context, c *client.Client, x *events.Execution, removal bool) error {
	q := events.ListEvents{ThreadID: x.ThreadID, FromVersion: new(int64(1)), Types: []string{string(events.QueuePushedType)}}
	if removal {
		q.Types = append(q.Types, string(events.QueueRemovedType))
	}
	for *q.FromVersion > 0 {
		page, err := client.Read(ctx, c, q)
		if err != nil {
			return err
		}
		for _, raw := range page.Events {
			e, err := events.DecodeEvent(raw)
			if err != nil {
				return err
			}
			switch d := e.Data.(type) {
			case events.QueuePushed:
				if d.ExecutionID != x.ID {
					continue
				}
				x.AgentID, x.Settings, x.ReactionItemID, x.CreatedAt = d.AgentID, d.Settings, d.ReactionItemID, e.Time.String()
				if !removal {
					return nil
				}
			case events.QueueRemoved:
				if d.ExecutionID == x.ID {
					x.Status, x.Stopped, x.Finished, x.UpdatedAt = events.ExecutionFailed, true, true, e.Time.String()
					return nil
				}
			}
		}
		q.FromVersion = &page.NextVersion
	}
	return events.Missing("run", x.ID)
}

// IsQueued reports whether an execution is one that [Queued] returned of a run that has not begun.
func IsQueued(x *events.Execution) bool { return x.Status == "" }

// Unqueue removes a run from its queue. It reports whether it was there: it may have begun.
func Unqueue(ctx context.Context, c *client.Client, x *events.Execution) (bool, error) {
	list, err := c.ListQueue(ctx, events.ListQueue{ThreadID: x.ThreadID})
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(list.Queued, func(q events.Queued) bool { return q.ExecutionID == x.ID })
	if at < 0 {
		return false, nil
	}
	_, err = c.Send(ctx, x.ThreadID, events.RemoveQueued{QueuedID: list.Queued[at].ID})
	if events.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
