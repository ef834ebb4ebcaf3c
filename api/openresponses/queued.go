package openresponses

import (
	"context"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// queuedIn returns the execution that a response in a queue will have. The error is a
// not_found if it waits in none.
func queuedIn(ctx context.Context, c *client.Client, id string) (*events.Execution, error) {
	x, err := runstream.Queued(ctx, c, id)
	if events.IsNotFound(err) {
		return nil, noResponse(id)
	}
	return x, err
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
	if l := (leg{x: active, n: len(runview.Pauses(active)) - 1}); l.pause() != nil {
		return &l, nil
	}
	return nil, nil
}
