package acp

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/internal/form"
	"github.com/skein-threads/skein/runview"
)

// turn shows runs to the client: those that its prompt begins or resumes, or one that was left active.
type turn struct {
	s      *Server
	of     *session
	ctx    context.Context
	cancel context.CancelCauseFunc
	left   *events.Execution // the run that was active when the session was opened
	done   chan struct{}     // closed when the turn is over, and its prompt was answered

	mu        sync.Mutex // guards what follows
	halted    bool       // the client has cancelled it
	execution string     // that is shown

	asks asks
}

// newTurn returns a turn, which lasts until the client goes.
func (s *Server) newTurn(of *session) *turn {
	t := &turn{s: s, of: of, done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.asks.t = t
	return t
}

// begin begins the turn of a prompt.
func (s *Server) begin(id string) (*turn, error) {
	of := s.session(id)
	if of == nil {
		return nil, events.Errorf(events.NotFound, "no session %.80q is open; open it with session/load or session/resume", id)
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	switch {
	case of.closed:
		return nil, events.Errorf(events.NotFound, "the session %.80q was closed", id)
	case of.turn != nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the session answers a prompt; wait for its end, or cancel it with session/cancel"}
	}
	of.turn = s.newTurn(of)
	of.last = of.turn
	return of.turn, nil
}

// end ends the turn, so that another one can begin.
func (t *turn) end() {
	t.cancel(context.Canceled)
	t.of.mu.Lock()
	if t.of.turn == t {
		t.of.turn = nil
	}
	if t.of.left == t {
		t.of.left = nil
	}
	t.of.mu.Unlock()
}

// stopped is the answer to a prompt.
type stopped struct {
	Reason string `json:"stopReason"`
}

// answer answers a prompt.
func (t *turn) answer(blocks []block) (any, error) {
	defer t.end()
	reason, err := t.run(blocks)
	switch {
	case context.Cause(t.ctx) != nil && errors.Is(context.Cause(t.ctx), errHungUp):
		return nil, errHungUp
	case t.isHalted() && (err == nil || errors.Is(err, context.Canceled)):
		return &stopped{cancelled}, nil
	case err != nil:
		return nil, err
	}
	return &stopped{reason}, nil
}

func (t *turn) run(blocks []block) (string, error) {
	item, err := itemOf(blocks)
	if err != nil {
		return "", err
	}
	t.of.mu.Lock()
	left := t.of.left
	t.of.mu.Unlock()
	if left != nil {
		select {
		case <-left.done:
		case <-t.ctx.Done():
			return "", context.Cause(t.ctx)
		}
	}
	if t.isHalted() {
		return cancelled, nil
	}
	if reason, answered, err := t.answerQuestion(blocks); answered || err != nil {
		return reason, err
	}
	if err := attachment.Store(t.ctx, t.s.c.Files(t.of.id), attachment.Held{JSON: &item.Content}); err != nil {
		return "", err
	}
	id := events.ExecutionPrefix + uuid.Must(uuid.NewV7()).String()
	live := runstream.Ahead(t.ctx, t.s.c, t.of.id)
	reply, err := t.s.c.Send(t.ctx, t.of.id, events.ReactThread{Item: item, AgentID: t.s.o.Agent, Policy: events.Enqueue, ExecutionID: id})
	live = live.Begun(reply)
	if err != nil {
		return "", err
	}
	return t.show(runstream.Options{Execution: id, From: runstream.From(reply), Live: live}, nil)
}

// answerQuestion answers the first question that was asked as a text, and reports whether the prompt was
// the answer.
func (t *turn) answerQuestion(blocks []block) (reason string, answered bool, _ error) {
	t.of.mu.Lock()
	waiting := t.of.questions
	t.of.mu.Unlock()
	if len(waiting) == 0 {
		return "", false, nil
	}
	q := waiting[0]
	now, err := t.s.c.UpToDate(t.ctx)
	if err != nil {
		return "", false, err
	}
	x, err := client.Read(t.ctx, now, events.GetExecution{ThreadID: t.of.id, ExecutionID: q.execution})
	if err != nil {
		return "", false, err
	}
	calls := append(slices.Clone(q.answered), q.asked.CallID)
	if a := runview.ApprovalOf(x.Approvals, q.asked.CallID); a == nil || a.Status != events.ApprovalWaiting { // elsewhere
		t.of.setQuestions(nil)
		_, err := t.resume(x, calls)
		return "", false, err
	}
	d := events.ResolveApproval{CallID: q.asked.CallID, Result: form.Typed(textOf(blocks), q.asked.Answer)}
	if _, err := t.s.c.Send(t.ctx, t.of.id, d); err != nil {
		return "", false, err
	}
	t.of.setQuestions(waiting[1:])
	if len(waiting) > 1 {
		waiting[1].answered = calls
		return endTurn, true, t.update(say(agentChunk, "", waiting[1].asked.Question))
	}
	reason, err = t.resume(x, calls)
	return reason, true, err
}

func (of *session) setQuestions(list []question) {
	of.mu.Lock()
	of.questions = list
	of.mu.Unlock()
}

// resume shows the rest of a run that has waited for these calls.
func (t *turn) resume(x *events.Execution, calls []string) (string, error) {
	now, err := t.s.c.UpToDate(t.ctx)
	if err != nil {
		return "", err
	}
	thread, err := client.Read(t.ctx, now, events.GetThread{ThreadID: x.ThreadID})
	if err != nil {
		return "", err
	}
	from, err := runstream.Beginning(t.ctx, now, x, thread.Version)
	if err != nil {
		return "", err
	}
	return t.show(runstream.Options{Execution: x.ID, From: from}, calls)
}

// showLeft shows a run that was active when the session was opened.
func (t *turn) showLeft() {
	defer close(t.done)
	defer t.end()
	_, err := t.resume(t.left, nil)
	if err != nil && context.Cause(t.ctx) == nil {
		t.s.o.Warn("the run " + t.left.ID + ": " + err.Error())
	}
}

// show shows a run, and returns why it stopped. If a person has answered calls, only what follows is
// shown.
func (t *turn) show(o runstream.Options, answered []string) (string, error) {
	execution := o.Execution
	t.mu.Lock()
	t.execution = execution
	halted := t.halted
	t.mu.Unlock()
	if halted {
		go t.stop(execution)
	}
	encode := t.encoder(execution)
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	t.asks.start(ctx, cancel, execution)
	defer t.asks.stop()
	o.Thread, o.Before = t.of.id, func(_ context.Context, e *events.Event) error {
		if call, granted := t.asks.note(e); granted && encode.knows(call) {
			return t.update(update{Kind: toolUpdate, ToolCallID: call, Status: inProgress})
		}
		return nil
	}
	source, err := runstream.Subscribe(ctx, t.s.c, o)
	if err != nil {
		return "", err
	}
	defer source.Close()
	view := &view{View: runview.New(execution), asks: &t.asks}
	view.AppendOnly()
	if len(answered) > 0 {
		view.ResumeAfter(answered)
	}
	send := func(frames []runview.Frame) error {
		for _, u := range encode.encode(frames) {
			if err := t.update(u); err != nil {
				return err
			}
		}
		return t.asks.add(encode.asked(), view.live)
	}
	err = runstream.Play(ctx, source, view, send)
	if ctx.Err() != nil {
		if err = context.Cause(ctx); errors.Is(err, errAsksText) { // a form was put away
			err = send(view.Pause())
		}
	}
	if err != nil {
		return "", err
	}
	return encode.reason()
}

// view is a view of a run that goes on while the client is asked.
type view struct {
	*runview.View
	asks *asks
	live bool // the history was read
}

func (v *view) Live() []runview.Frame {
	v.live = true
	return v.View.Live()
}

// Waiting reports whether the run waits only for answers that the next prompt has.
func (v *view) Waiting() bool { return v.asks.onlyTexts(v.View.Waiting()) }

// encoder returns the encoder of a run, which knows what the client knows of it.
func (t *turn) encoder(execution string) *encoder {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.of.shown == nil || t.of.shown.execution != execution {
		t.of.shown = newEncoder(execution)
	}
	return t.of.shown
}

func (t *turn) update(u update) error {
	return t.s.notify("session/update", notification{t.of.id, u})
}

func (t *turn) isHalted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.halted
}

// halt cancels the run that the turn shows, or will show.
func (t *turn) halt() {
	t.mu.Lock()
	again, execution := t.halted, t.execution
	t.halted = true
	t.mu.Unlock()
	if !again && execution != "" {
		go t.stop(execution)
	}
}

// stop cancels a run, also one that waits for its turn. What is left of it is shown.
func (t *turn) stop(execution string) {
	t.asks.withdraw()
	for range 3 { // it may begin meanwhile
		_, err := t.s.c.Send(t.ctx, t.of.id, events.CancelRun{ExecutionID: execution, Reason: "cancelled by its client"})
		if err == nil || events.HasCode(err, events.IllegalTransition) {
			return
		}
		if !events.IsNotFound(err) {
			t.cancel(err)
			return
		}
		queue, err := t.s.c.ListQueue(t.ctx, events.ListQueue{ThreadID: t.of.id})
		if err != nil {
			t.cancel(err)
			return
		}
		for _, q := range queue.Queued {
			if q.ExecutionID == execution {
				if _, err := t.s.c.Send(t.ctx, t.of.id, events.RemoveQueued{QueuedID: q.ID}); err == nil {
					return
				}
			}
		}
	}
}
