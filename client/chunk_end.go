package client

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// A run has an end for its readers also where its worker died before the last
// chunk, or the chunks have expired: that of its execution.
const (
	askEvery = 15 * time.Second // how often the execution is asked for, in case that its end was missed
	endGrace = time.Second      // how long the last chunk may come after the execution's end
)

// answer is what is known of the executions.
type answer struct {
	execution *events.Execution // nil: none runs
	err       error
}

// ask asks for the execution, or for the one that runs if none is known. The
// answer comes when it comes: chunks do not wait for it.
func (r *chunkReader) ask(ctx context.Context) {
	if r.asking {
		r.askAgain = true
		return
	}
	r.asking, r.askAgain = true, false
	execution := r.execution
	go func() {
		x, err := r.client.execution(ctx, r.thread, execution)
		r.answers <- answer{x, err} // there is room: one is asked for at a time
	}()
}

// execution gives a thread's execution as the log has it now: the one of that
// id, or the last that runs, if any does.
func (c *Client) execution(ctx context.Context, thread, id string) (*events.Execution, error) {
	now, err := c.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	if id != "" {
		return now.GetExecution(ctx, events.GetExecution{ThreadID: thread, ExecutionID: id})
	}
	list, err := now.ListExecutions(ctx, events.ListExecutions{ThreadID: thread, Status: events.Executing})
	if err != nil || len(list.Executions) == 0 {
		return nil, err
	}
	return &list.Executions[len(list.Executions)-1], nil
}

// answered takes an answer. A service that does not answer is asked again later.
func (r *chunkReader) answered(ctx context.Context, a answer) error {
	r.asking = false
	if r.askAgain {
		r.ask(ctx)
	}
	switch x := a.execution; {
	case a.err != nil:
		if e := events.AsError(a.err); !e.Code.Retry() {
			return e
		}
	case x == nil:
	case r.execution == "":
		return r.found(ctx, x.ID)
	case x.ID == r.execution && x.Status != events.Executing:
		r.ended(events.FinishOf(x.Status, x.ErrorText))
		if at, err := events.ParseTime(x.UpdatedAt); err == nil && !r.given && time.Since(at.Go()) > 5*endGrace {
			return r.end(ctx) // its chunks have expired, or there never were any
		}
	}
	return nil
}

// found takes an execution as the one to read.
func (r *chunkReader) found(ctx context.Context, execution string) error {
	r.execution = execution
	return r.renew(ctx)
}

// ended notes the execution's end. The chunk that tells of it comes soon, or the
// end is taken from here.
func (r *chunkReader) ended(how events.Finish) {
	if r.over == nil {
		r.over, r.grace = &how, time.After(endGrace)
	}
}

// end ends a run whose last chunk did not come.
func (r *chunkReader) end(ctx context.Context) error {
	if err := r.fill(ctx, 0); err != nil {
		return err
	}
	data, err := json.Marshal(r.over, json.Deterministic(true))
	if err != nil {
		return err
	}
	r.yield(Chunk{
		ChunkEmitted: events.ChunkEmitted{
			ExecutionID: r.execution, Index: r.next, Attempt: max(r.attempt, 1), Type: events.ChunkFinish, Data: data,
		},
		Time: time.Now().UTC(), Derived: true,
	}, nil)
	return errRead
}
