package client

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Readers see the end of a run even if its worker died before it wrote the last chunk,
// or the chunks have expired: the end is then taken from the execution.
const (
	askEvery = 15 * time.Second // how often the execution is queried, in case its end was missed
	endGrace = time.Second      // how long the last chunk may arrive after the execution's end
)

// answer is the answer to a query for the execution.
type answer struct {
	execution *events.Execution // nil: no run is active
	err       error
}

// queryExecution queries the execution, or the active one if none is known. It does not block:
// handleAnswer handles the answer, and chunks do not wait for it.
func (r *chunkReader) queryExecution(ctx context.Context) {
	if r.asking {
		r.askAgain = true
		return
	}
	r.asking, r.askAgain = true, false
	execution := r.execution
	go func() {
		x, err := r.client.execution(ctx, r.thread, execution)
		r.answers <- answer{x, err} // never blocks: one query is in flight at a time
	}()
}

// execution returns a thread's execution as of now: the one with that id or, if id is
// empty, the last active one; nil if none is active.
func (c *Client) execution(ctx context.Context, thread, id string) (*events.Execution, error) {
	now, err := c.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	if id != "" {
		return Read(ctx, now, events.GetExecution{ThreadID: thread, ExecutionID: id})
	}
	list, err := Read(ctx, now, events.ListExecutions{ThreadID: thread, Status: events.Executing})
	if err != nil || len(list.Executions) == 0 {
		return nil, err
	}
	return &list.Executions[len(list.Executions)-1], nil
}

// handleAnswer handles the answer to a query. A retryable error is ignored: the next tick
// queries again.
func (r *chunkReader) handleAnswer(ctx context.Context, a answer) error {
	r.asking = false
	if r.askAgain {
		r.queryExecution(ctx)
	}
	switch x := a.execution; {
	case a.err != nil:
		if e := events.AsError(a.err); !e.Retry() {
			return e
		}
	case x == nil:
	case r.execution == "":
		return r.setExecution(ctx, x.ID)
	case x.ID == r.execution && x.Status != events.Executing:
		r.noteEnd(events.FinishOf(x.Status, x.ErrorText))
		if at, err := events.ParseTime(x.UpdatedAt); err == nil && !r.seenAny && time.Since(at.Go()) > 5*endGrace {
			return r.deriveFinish(ctx) // its chunks have expired, or it had none
		}
	}
	return nil
}

// setExecution sets the execution to read.
func (r *chunkReader) setExecution(ctx context.Context, execution string) error {
	r.execution = execution
	return r.resync(ctx)
}

// noteEnd records the end of the execution. If the chunk that carries it does not arrive
// within endGrace, end derives it.
func (r *chunkReader) noteEnd(how events.Finish) {
	if r.over == nil {
		r.over, r.grace = &how, time.After(endGrace)
	}
}

// deriveFinish emits a derived finish for a run whose last chunk did not arrive.
func (r *chunkReader) deriveFinish(ctx context.Context) error {
	if err := r.fillFromStream(ctx, 0); err != nil {
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
