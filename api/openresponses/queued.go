package openresponses

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// A response of a conversation that is busy waits in the queue of its thread, and has no
// execution yet. So that its id finds it there, the id ends with that of the thread.
const (
	randomDigits = 22  // of the number of such a response: 88 bits
	threadMark   = "c" // precedes the thread
)

// numberIn returns the number of a response of a conversation, from a random one.
func numberIn(thread, number string) string {
	u, err := uuid.Parse(strings.TrimPrefix(thread, "T-"))
	if err != nil || !strings.HasPrefix(thread, "T-") {
		return number
	}
	return number[len(number)-randomDigits:] + threadMark + hex.EncodeToString(u[:])
}

// threadIn returns the thread that the id of a response names; "" if it names none.
func threadIn(id string) string {
	number := strings.TrimPrefix(id, "resp_")
	if len(number) != randomDigits+len(threadMark)+32 || !strings.HasPrefix(number[randomDigits:], threadMark) {
		return ""
	}
	u, err := uuid.Parse(number[randomDigits+len(threadMark):])
	if err != nil {
		return ""
	}
	return "T-" + u.String()
}

// queuedIn returns the execution that a response in a queue will have. The error is a
// not_found if it waits in none.
func queuedIn(ctx context.Context, c *client.Client, id string) (*events.Execution, error) {
	thread := threadIn(id)
	if thread == "" {
		return nil, noResponse(id)
	}
	x := &events.Execution{ID: events.ExecutionPrefix + strings.TrimPrefix(id, "resp_"), ThreadID: thread}
	list, err := c.ListQueue(ctx, events.ListQueue{ThreadID: thread})
	if events.IsNotFound(err) {
		return nil, noResponse(id)
	}
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list.Queued, func(q events.Queued) bool { return q.ExecutionID == x.ID })
	if at < 0 { // it may have begun between the two queries
		return execution(ctx, c.WithMinSeq(list.Seq), id)
	}
	from := int64(1)
	for q := (events.ListEvents{ThreadID: thread, FromVersion: &from, Types: []string{string(events.QueuePushedType)}}); ; {
		page, err := client.Read(ctx, c, q)
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Events {
			e, err := events.DecodeEvent(raw)
			if err != nil {
				return nil, err
			}
			if d, ok := e.Data.(events.QueuePushed); ok && d.ExecutionID == x.ID {
				x.AgentID, x.Settings, x.ReactionItemID, x.CreatedAt = d.AgentID, d.Settings, d.ReactionItemID, e.Time.String()
				return x, nil
			}
		}
		if from = page.NextVersion; from == 0 {
			return nil, noResponse(id)
		}
	}
}

// isQueued reports whether an execution is one that [queuedIn] returned.
func isQueued(x *events.Execution) bool { return x.Status == "" }

// unqueue removes a response from its queue. It reports whether it was there: it may have begun.
func unqueue(ctx context.Context, c *client.Client, x *events.Execution) (bool, error) {
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

// begins waits until an execution that is queued has begun, and returns it. If the run before it
// comes to wait for people, it returns where that waits instead.
func begins(ctx context.Context, c *client.Client, q events.GetExecution) (x *events.Execution, blocked *leg, err error) {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	ahead, watched := make(chan *leg, 1), ""
	x, err = c.WatchRun(waiting, q, func(w client.Waiting) {
		if !w.Queued {
			stop()
			return
		}
		list, err := c.ListQueue(waiting, events.ListQueue{ThreadID: q.ThreadID})
		if err != nil || list.Active == "" || list.Active == watched {
			return
		}
		watched = list.Active
		go func() {
			if l := awaitPeople(waiting, c, events.GetExecution{ThreadID: q.ThreadID, ExecutionID: list.Active}); l != nil {
				select {
				case ahead <- l:
					stop()
				default: // another run is ahead
				}
			}
		}()
	})
	if err == nil || waiting.Err() == nil || ctx.Err() != nil {
		return x, nil, err
	}
	select {
	case blocked = <-ahead:
		return nil, blocked, nil
	default:
	}
	x, err = client.Read(ctx, c, q)
	return x, nil, err
}

// awaitPeople returns where a run waits for people, once it does; nil if it ends before.
func awaitPeople(ctx context.Context, c *client.Client, q events.GetExecution) *leg {
	for n := 0; ; n++ {
		l, err := awaitLeg(ctx, c, q, n)
		if err != nil || l.x.Finished {
			return nil
		}
		if !l.pause().Answered() {
			return &l
		}
	}
}

// blockedBy returns where the run before one that is queued waits for people, nil if it does not.
func blockedBy(ctx context.Context, c *client.Client, x *events.Execution) (*leg, error) {
	list, err := c.ListQueue(ctx, events.ListQueue{ThreadID: x.ThreadID})
	if err != nil || list.Active == "" {
		return nil, err
	}
	active, err := client.Read(ctx, c.WithMinSeq(list.Seq), events.GetExecution{ThreadID: x.ThreadID, ExecutionID: list.Active})
	if err != nil || !runview.AwaitsPeople(active) {
		return nil, err
	}
	if l := (leg{active, len(runview.Pauses(active)) - 1}); l.pause() != nil {
		return &l, nil
	}
	return nil, nil
}
