package openresponses

import (
	"context"
	"errors"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// streamEvent is an event of a response's stream, of any type.
type streamEvent struct {
	Type           string          `json:"type"`
	SequenceNumber int64           `json:"sequence_number"`
	Response       *resource       `json:"response,omitzero"`
	ItemID         string          `json:"item_id,omitzero"`
	OutputIndex    *int64          `json:"output_index,omitzero"`
	ContentIndex   *int64          `json:"content_index,omitzero"`
	SummaryIndex   *int64          `json:"summary_index,omitzero"`
	Item           *transform.Item `json:"item,omitzero"`
	Part           any             `json:"part,omitzero"`
	Delta          *string         `json:"delta,omitzero"`
	Text           *string         `json:"text,omitzero"`
	Refusal        *string         `json:"refusal,omitzero"`
	Name           string          `json:"name,omitzero"`
	Arguments      *string         `json:"arguments,omitzero"`
	Logprobs       *[]string       `json:"logprobs,omitzero"`
	Error          any             `json:"error,omitzero"`
	StreamID       events.JSON     `json:"stream_id,omitzero"`
}

// streamPart is a part of a message or of a reasoning in a stream.
type streamPart struct {
	Type        string    `json:"type"`
	Text        string    `json:"text"`
	Annotations *[]string `json:"annotations,omitzero"`
	Logprobs    *[]string `json:"logprobs,omitzero"`
}

// emitter makes the events of a response. What it makes depends on the execution and its
// chunks alone: not on when they are read.
type emitter struct {
	ctx        context.Context
	client     *client.Client
	send       func(streamEvent) error
	showServer bool
	callers    map[string]bool // the tools of the caller

	next   int64 // sequence number
	output int64 // index of the next item
	number numbering
	open   *openItem
	calls  map[string]*serverCalled // that the server makes, by id
	err    error

	step    string // whose chunks are read
	attempt int64
	live    bool            // the step's reactor streams
	whole   bool            // it does not: its parts are shown when it has ended
	shown   map[string]bool // what of the step was streamed: kinds of items, and calls
	before  numbering       // as it was before the step
}

func newEmitter(ctx context.Context, c *client.Client, x *events.Execution, send func(streamEvent) error) *emitter {
	e := &emitter{ctx: ctx, client: c, send: send, showServer: showsServer(x), callers: map[string]bool{}, number: numberingOf(x.ReactionItemID),
		shown: map[string]bool{}, calls: map[string]*serverCalled{}}
	if x.Settings != nil {
		for _, t := range x.Settings.Tools {
			e.callers[t.Name] = true
		}
	}
	e.before = e.number
	return e
}

func (e *emitter) emit(v streamEvent) {
	if e.err != nil {
		return
	}
	v.SequenceNumber = e.next
	e.next++
	e.err = e.send(v)
}

// follow sends the events of a response from the first to the last. Those of one that waits in a
// queue begin at once, go on when it has begun, and end if it is cancelled before.
func follow(ctx context.Context, c *client.Client, x *events.Execution, send func(streamEvent) error) error {
	e := newEmitter(ctx, c, x, send)
	first := resourceAt(x)
	first.Status, first.CompletedAt, first.IncompleteDetails, first.Error, first.Usage = inProgressStatus, nil, nil, nil, nil
	if first.Background {
		first.Status = queuedStatus
	}
	created := *first
	e.emit(streamEvent{Type: "response.created", Response: &created})
	if first.Background {
		e.emit(streamEvent{Type: "response.queued", Response: &created})
		first.Status = inProgressStatus
	}
	query := events.GetExecution{ThreadID: x.ThreadID, ExecutionID: x.ID}
	if isQueued(x) {
		begun, err := begins(ctx, c, query)
		if isMissing(err) {
			first.Status, first.IncompleteDetails = cancelledStatus, &incomplete{cancelledReason}
			e.end(first)
			return e.err
		}
		if err != nil {
			return err
		}
		x = begun
	}
	e.emit(streamEvent{Type: "response.in_progress", Response: first})
	gone, err := e.chunks(x)
	if err != nil {
		return err
	}
	end, err := c.WaitRun(ctx, query)
	if err != nil {
		return err
	}
	last, err := resourceOf(ctx, c, end, false)
	if err != nil {
		return err
	}
	if gone {
		e.items(last.Output)
	}
	if last.Status == completedStatus {
		e.close(completedStatus)
	} else {
		e.close(incompleteStatus)
	}
	e.end(last)
	return e.err
}

// end sends the last events.
func (e *emitter) end(r *resource) {
	switch r.Status {
	case failedStatus:
		e.emit(streamEvent{Type: "error", Error: struct {
			Type    string `json:"type"`
			Code    string `json:"code"`
			Message string `json:"message"`
			Param   string `json:"param"`
		}{"server_error", r.Error.Code, r.Error.Message, ""}})
		e.emit(streamEvent{Type: "response.failed", Response: r})
	case incompleteStatus, cancelledStatus:
		r.Status = incompleteStatus
		e.emit(streamEvent{Type: "response.incomplete", Response: r})
	default:
		e.emit(streamEvent{Type: "response.completed", Response: r})
	}
}

// chunks sends the events of a run's chunks until it has ended. It reports whether there are
// no chunks any more, and nothing was sent.
func (e *emitter) chunks(x *events.Execution) (gone bool, err error) {
	sent := false
	for chunk, err := range e.client.Chunks(e.ctx, x.ThreadID, x.ID) {
		var gap *client.ChunkGapError
		switch {
		case errors.As(err, &gap) && !sent:
			return true, nil
		case errors.As(err, &gap): // the parts have the rest
			continue
		case err != nil:
			return false, err
		case chunk.Type == events.ChunkFinish && chunk.Derived && !sent:
			return true, nil
		}
		sent = true
		if err := e.chunk(x.ThreadID, &chunk); err != nil {
			return false, err
		}
		if e.err != nil {
			return false, e.err
		}
	}
	return false, e.endStep(x.ThreadID)
}

// endStep sends what a step's reactor recorded and did not stream.
func (e *emitter) endStep(thread string) error {
	step := e.step
	if step == "" || e.live && e.shown[messageItem] && e.shown[reasoningItem] {
		return nil
	}
	upToDate, err := e.client.UpToDate(e.ctx) // the read model of parts may be behind the chunks
	if err != nil {
		return err
	}
	parts, err := partsOf(e.ctx, upToDate, thread, step)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	list := piecesOf(&events.Item{ID: events.ItemPrefix + e.number.base, ThreadID: thread, Type: events.Message, Role: events.Assistant, Status: events.ItemCompleted, Content: marshal(parts)}, e.showServer)
	for _, o := range list {
		key := o.Type
		if o.Type == callItem {
			key = callItem + o.CallID
		}
		if o.Type == serverCallItem {
			key = o.ID
		}
		if e.shown[key] {
			continue
		}
		e.close(completedStatus)
		switch o.Type {
		case messageItem:
			o.ID = e.number.message()
		case reasoningItem:
			o.ID = e.number.reasoning()
		case callItem, serverCallItem:
		default:
			o.ID = e.number.other()
		}
		e.complete(o)
	}
	return nil
}

// items sends items that are complete.
func (e *emitter) items(list []transform.Item) {
	for _, o := range list {
		e.complete(o)
	}
}
