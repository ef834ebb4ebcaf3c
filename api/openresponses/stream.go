package openresponses

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runview"
)

// streamEvent is an event of a response's stream, of any type.
type streamEvent struct {
	Type            string          `json:"type"`
	SequenceNumber  int64           `json:"sequence_number"`
	Response        *resource       `json:"response,omitzero"`
	ItemID          string          `json:"item_id,omitzero"`
	OutputIndex     *int64          `json:"output_index,omitzero"`
	ContentIndex    *int64          `json:"content_index,omitzero"`
	SummaryIndex    *int64          `json:"summary_index,omitzero"`
	Item            *transform.Item `json:"item,omitzero"`
	Part            any             `json:"part,omitzero"`
	Delta           *string         `json:"delta,omitzero"`
	Text            *string         `json:"text,omitzero"`
	Refusal         *string         `json:"refusal,omitzero"`
	Name            string          `json:"name,omitzero"`
	Arguments       *string         `json:"arguments,omitzero"`
	Logprobs        *[]string       `json:"logprobs,omitzero"`
	Error           any             `json:"error,omitzero"`
	Annotation      events.JSON     `json:"annotation,omitzero"`
	AnnotationIndex *int64          `json:"annotation_index,omitzero"`
	StreamID        events.JSON     `json:"stream_id,omitzero"`
}

// streamPart is a part of a message or of a reasoning in a stream.
type streamPart struct {
	Type        string      `json:"type"`
	Text        string      `json:"text"`
	Annotations events.JSON `json:"annotations,omitzero"`
	Logprobs    *[]string   `json:"logprobs,omitzero"`
}

// sink takes the events of a response.
type sink struct {
	send  func(streamEvent) error
	flush func() error // sends what send was given; nil: send does
}

// emitter makes the events of a response from the frames of its run. What it makes depends on the
// execution and its chunks alone, and not on when they are read: a step's chunks come first, and its
// parts show what is left when it has ended.
type emitter struct {
	ctx        context.Context
	client     *client.Client
	sink       sink
	leg        leg
	showServer bool
	callers    map[string]bool // the tools of the caller

	next   int64 // sequence number
	output int64 // index of the next item
	number numbering
	open   *openItem
	err    error

	past map[string]bool // steps of earlier legs
	view *runview.View
	step string // whose chunks are read

	// What was sent of the step.
	before numbering       // as it was before the step
	calls  map[string]bool // calls of the caller
	others int             // items of the provider's own kind
	held   bool            // the rest comes from its parts
	unsent []events.JSON   // parts that were not streamed
}

// Ways to show the attempts of a model that is asked again in the middle of a step.
const (
	wholeAttempts = true  // each is an item of its own
	onlyNews      = false // what an earlier attempt has shown is not shown again
)

func newEmitter(ctx context.Context, c *client.Client, l leg, whole bool, to sink) (*emitter, error) {
	e := &emitter{
		ctx: ctx, client: c, sink: to, leg: l, showServer: showsServer(l.x), callers: map[string]bool{}, number: numberingOf(l.x.ReactionItemID), past: map[string]bool{},
		view: runview.New(l.x.ID),
	}
	e.view.AppendOnly()
	if whole {
		e.view.WholeAttempts()
	}
	if l.x.Settings != nil {
		for _, t := range l.x.Settings.Tools {
			e.callers[t.Name] = true
		}
	}
	before := l.before()
	if before == nil {
		return e, nil
	}
	spans, err := l.spans(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, step := range slices.Concat(spans[:l.n]...) {
		e.past[step] = true
	}
	if _, e.number, err = l.output(ctx, c, e.showServer); err != nil {
		return nil, err
	}
	e.beginStep(before.StepID) // what has come of its calls comes first
	return e, nil
}

func (e *emitter) emit(v streamEvent) {
	if e.err != nil {
		return
	}
	v.SequenceNumber = e.next
	e.next++
	e.err = e.sink.send(v)
}

// flush sends what was emitted, before something is waited for.
func (e *emitter) flush() {
	if e.err == nil && e.sink.flush != nil {
		e.err = e.sink.flush()
	}
}

// follow sends the events of a response from the first to the last. Those of one that waits in a
// queue begin at once, go on when it has begun, and end if it is cancelled before. It returns the leg
// as it has ended; its execution is nil if there will be none.
func follow(ctx context.Context, c *client.Client, l leg, whole bool, to sink) (end leg, err error) {
	e, err := newEmitter(ctx, c, l, whole, to)
	if err != nil {
		return end, err
	}
	first := resourceAt(l)
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
	if l.withdrawn {
		first.Status, first.IncompleteDetails = cancelledStatus, &incomplete{cancelledReason}
		e.finish(first)
		return end, e.err
	}
	if runstream.IsQueued(l.x) {
		e.flush()
		begun, blocked, err := begins(ctx, c, events.GetExecution{ThreadID: l.x.ThreadID, ExecutionID: l.x.ID})
		if blocked != nil {
			begun := *first
			e.emit(streamEvent{Type: "response.in_progress", Response: &begun})
			if err := first.blocked(ctx, c, blocked); err != nil {
				return end, err
			}
			e.items(first.Output)
			e.finish(first)
			return end, e.err
		}
		if events.IsNotFound(err) {
			first.Status, first.IncompleteDetails = cancelledStatus, &incomplete{cancelledReason}
			e.finish(first)
			return end, e.err
		}
		if err != nil {
			return end, err
		}
		e.leg.x = begun
	}
	e.emit(streamEvent{Type: "response.in_progress", Response: first})
	e.flush()
	end, gone, err := e.chunks()
	if err != nil {
		return end, err
	}
	last, err := resourceOf(ctx, c, end, false)
	if err != nil {
		return end, err
	}
	if gone {
		e.items(last.Output)
	}
	if last.Status == completedStatus || end.waits() {
		e.close(completedStatus)
	} else {
		e.close(incompleteStatus)
	}
	if end.waits() && !gone {
		asked, err := end.requests(ctx, c)
		if err != nil {
			return end, err
		}
		e.items(asked)
	}
	e.finish(last)
	return end, e.err
}

// finish sends the last events.
func (e *emitter) finish(r *resource) {
	switch r.Status {
	case failedStatus:
		e.emit(streamEvent{Type: "error", Error: struct {
			Type    string `json:"type"`
			Code    string `json:"code"`
			Message string `json:"message"`
			Param   string `json:"param"`
		}{r.Error.Type, r.Error.Code, r.Error.Message, ""}})
		e.emit(streamEvent{Type: "response.failed", Response: r})
	case incompleteStatus, cancelledStatus:
		r.Status = incompleteStatus
		e.emit(streamEvent{Type: "response.incomplete", Response: r})
	default:
		e.emit(streamEvent{Type: "response.completed", Response: r})
	}
}

// pauseGrace is how long a chunk may be missing that was written before the run came to wait.
const pauseGrace = 5 * time.Second

// legRead is a leg that has ended, or why that is not known.
type legRead struct {
	leg leg
	err error
}

// chunks sends the events of a leg's chunks until it has ended, and returns it then. It reports whether
// there are no chunks any more, and nothing was sent.
func (e *emitter) chunks() (end leg, gone bool, err error) {
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	chunks, ended := make(chan chunkRead), make(chan legRead, 1)
	begun := e.leg
	go begun.readChunks(ctx, e.client, chunks)
	go func() {
		at, err := begun.ended(ctx, e.client)
		ended <- legRead{at, err}
	}()
	gone, err = e.sendChunks(ctx, chunks, ended)
	if err != nil {
		return end, false, err
	}
	last := <-ended
	if last.err == nil && !gone {
		last.err = e.endStep(last.leg, e.client.WithMinSeq(last.leg.x.Seq))
	}
	return last.leg, gone, last.err
}

// sendChunks sends the events of chunks until a leg has ended, but for what the last step did not
// stream. The value of ended stays there.
func (e *emitter) sendChunks(ctx context.Context, chunks <-chan chunkRead, ended chan legRead) (gone bool, err error) {
	var grace <-chan time.Time
	paused := ended              // nil: it was looked at
	sent, marked := false, false // marked: the leg ends with the last chunk, if the run waits
	asked := map[string]bool{}   // calls that a chunk has announced
	for {
		select {
		case at := <-paused:
			paused = nil
			ended <- at
			if at.err != nil || !at.leg.waits() {
				continue
			}
			if e.leg = at.leg; marked {
				return false, nil
			}
			grace = time.After(pauseGrace)
		case <-grace:
			return !sent, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case read, more := <-chunks:
			var gap *client.ChunkGapError
			switch chunk := &read.chunk; {
			case !more:
				return false, nil
			case errors.As(read.err, &gap) && !sent:
				return true, nil
			case errors.As(read.err, &gap): // the parts have the rest
				continue
			case read.err != nil:
				return false, read.err
			case chunk.Type == events.ChunkFinish && chunk.Derived && !sent:
				return true, nil
			case e.skips(chunk):
				continue
			default:
				if marked = e.marks(chunk, asked); marked && grace != nil {
					return false, nil
				}
				if grace != nil {
					grace = time.After(pauseGrace)
				}
				sent = true
				err := e.chunk(chunk)
				if e.flush(); err != nil || e.err != nil {
					return false, errors.Join(err, e.err)
				}
			}
		}
	}
}

// chunkRead is a chunk of a run, or why there is none.
type chunkRead struct {
	chunk client.Chunk
	err   error
}

// readChunks passes on the chunks of a run, and closes the channel after the last.
func (l leg) readChunks(ctx context.Context, c *client.Client, to chan<- chunkRead) {
	defer close(to)
	var options []client.ChunkOption
	switch {
	case l.live != nil:
		options = append(options, l.live.Chunks())
	case !l.x.Finished:
		options = append(options, client.OfRunning())
	}
	for chunk, err := range c.Chunks(ctx, l.x.ThreadID, l.x.ID, options...) {
		select {
		case to <- chunkRead{chunk, err}:
		case <-ctx.Done():
			return
		}
	}
}

// skips reports whether a chunk belongs to an earlier leg.
func (e *emitter) skips(c *client.Chunk) bool {
	return e.leg.before() != nil && (c.StepID == "" || e.past[c.StepID]) && c.Type != events.ChunkFinish
}

// marks reports whether a chunk is written only after the run has come to wait for people, if it
// has: the leg ends before it.
func (e *emitter) marks(c *client.Chunk, asked map[string]bool) bool {
	var d struct {
		ToolCallID string `json:"toolCallId"`
		Substate   string `json:"substate"`
	}
	_ = json.Unmarshal(c.Data, &d) // it has none of the fields then
	p := e.leg.pause()
	switch {
	case c.Type == events.ChunkToolInput:
		asked[d.ToolCallID] = true
	case c.Type == events.ChunkContextSubstate && d.Substate == "waiting":
		return p == nil || !slices.ContainsFunc(p.Calls, func(a events.CallApproval) bool { return !asked[a.CallID] })
	case p == nil || c.StepID == "":
	case c.Type == events.ChunkToolOutput || c.Type == events.ChunkToolError:
		return p.Asks(d.ToolCallID)
	}
	return p != nil && c.StepID != "" && c.StepID != p.StepID && asked[p.Calls[0].CallID]
}

// chunk sends the events of a chunk.
func (e *emitter) chunk(c *client.Chunk) error {
	switch {
	case c.StepID == "":
		return nil
	case c.StepID != e.step:
		if err := e.endEarlierStep(); err != nil {
			return err
		}
		e.beginStep(c.StepID)
	}
	if !e.held {
		e.frames(e.view.Chunk(&c.ChunkEmitted))
	}
	return nil
}

// beginStep ends what is open of the step before, and begins another one.
func (e *emitter) beginStep(id string) {
	e.frames(e.view.Event(&events.Event{Data: events.StepCreated{ID: id, ExecutionID: e.leg.x.ID}}))
	e.close(completedStatus)
	e.step = id
	e.forget()
	e.before = e.number
}

// forget forgets what was sent of a step.
func (e *emitter) forget() { e.calls, e.others, e.held, e.unsent = map[string]bool{}, 0, false, nil }

// endEarlierStep ends a step after which another one has begun.
func (e *emitter) endEarlierStep() error {
	if e.step == "" {
		return nil
	}
	upToDate, err := e.client.UpToDate(e.ctx) // the read model of parts may be behind the chunks
	if err != nil {
		return err
	}
	return e.endStep(e.leg, upToDate)
}

// endStep sends what a step's reactor recorded and did not stream. The leg's record, or the client's
// queries, show the end of the step.
func (e *emitter) endStep(at leg, upToDate *client.Client) error {
	if e.step == "" {
		return nil
	}
	parts, err := at.parts(e.ctx, upToDate, e.step)
	if events.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for n, raw := range parts {
		if e.past[e.step] && !e.leg.before().Asks(callOfPart(raw)) { // its calls alone go on in this leg
			continue
		}
		e.frames(e.view.Event(&events.Event{Data: events.PartCreated{StepID: e.step, Key: events.PartKey(e.step, int64(n)), Part: raw}}))
	}
	list := e.number.pieces(e.leg.x, e.unsent, e.leg.shows(e.showServer))
	e.unsent = nil
	for i := range list {
		e.leg.link(&list[i])
	}
	e.items(list)
	return nil
}

// items sends items that are complete.
func (e *emitter) items(list []transform.Item) {
	for _, o := range list {
		e.complete(o)
	}
}
