package acp

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/form"
	"github.com/skein-threads/skein/runview"
)

// errAsksText ends the stream of a run whose questions the next prompt answers.
var errAsksText = errors.New("the next prompt is the answer")

// asks are the approvals and questions of a run that is shown.
type asks struct {
	t *turn

	mu        sync.Mutex // guards what follows
	ctx       context.Context
	leave     context.CancelCauseFunc // ends the stream
	execution string
	later     []runview.Asked               // of the history, which may have been answered
	open      map[string]context.CancelFunc // that the client is asked, by call
	texts     int                           // that the next prompt answers
	waits     bool                          // the run waits for people only, as far as its events are known
	sent      map[string]bool               // answers whose events are still to come, by call
	answered  bool                          // an answer came, and the run has not waited again since
	work      sync.WaitGroup
}

// start begins with the questions of a run.
func (a *asks) start(ctx context.Context, leave context.CancelCauseFunc, execution string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ctx, a.leave, a.execution = ctx, leave, execution
	a.later, a.open, a.texts, a.waits = nil, map[string]context.CancelFunc{}, 0, false
	a.sent, a.answered = map[string]bool{}, false
}

// stop withdraws what the client is asked.
func (a *asks) stop() {
	a.withdraw()
	a.work.Wait()
}

func (a *asks) withdraw() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cancel := range a.open {
		cancel()
	}
	clear(a.open)
	a.later = nil
}

// note withdraws a question that an event answers, and reports whether it grants a call.
func (a *asks) note(e *events.Event) (call string, granted bool) {
	d, answers := events.AnswerIn(e)
	_, parked := e.Data.(events.RunParked)
	if !answers && !parked {
		return "", false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered = answers; parked {
		return "", false
	}
	call = d.CallID
	delete(a.sent, call)
	if cancel := a.open[call]; cancel != nil {
		cancel()
		delete(a.open, call)
	}
	a.later = slices.DeleteFunc(a.later, func(one runview.Asked) bool { return one.ID == call })
	return call, d.Grant
}

// onlyTexts reports whether a run waits only for answers that the next prompt has.
func (a *asks) onlyTexts(waits bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits = waits
	return a.over()
}

// over reports whether only the next prompt can make the run go on.
func (a *asks) over() bool {
	return a.waits && !a.answered && len(a.sent) == 0 && a.texts > 0 && len(a.open) == 0
}

// add asks the client, when the history of the run is known.
func (a *asks) add(list []runview.Asked, live bool) error {
	if a.t.isHalted() {
		return nil
	}
	a.mu.Lock()
	a.later = append(a.later, list...)
	if !live {
		a.mu.Unlock()
		return nil
	}
	list, a.later = a.later, nil
	var forms []func()
	var plain, approvals []runview.Asked
	for _, one := range list {
		if a.open[one.ID] != nil {
			continue
		}
		asked, fits := form.Of(one.Request.Question, one.Request.Answer)
		question := one.Request.Reason == events.ApprovalQuestion
		if question && !(fits && a.t.s.hasForms()) {
			plain = append(plain, one)
			continue
		}
		if !question {
			approvals = append(approvals, one)
		}
		ctx, cancel := context.WithCancel(a.ctx)
		a.open[one.ID] = cancel
		forms = append(forms, func() {
			defer cancel()
			a.settle(one, a.ask(ctx, one, asked, question))
		})
	}
	a.mu.Unlock()
	for _, one := range plain {
		if err := a.asText(one); err != nil {
			return err
		}
	}
	for _, one := range approvals { // before the answer
		if err := a.t.update(update{Kind: toolUpdate, ToolCallID: one.ID, Status: pending}); err != nil {
			return err
		}
	}
	for _, do := range forms {
		a.work.Go(do)
	}
	return nil
}

// asText asks a question as a text, which the next prompt answers.
func (a *asks) asText(one runview.Asked) error {
	a.mu.Lock()
	a.texts++
	first := a.texts == 1
	execution := a.execution
	a.mu.Unlock()
	a.t.of.mu.Lock()
	a.t.of.questions = append(a.t.of.questions, question{execution: execution, asked: one.Request})
	a.t.of.mu.Unlock()
	if !first { // it is asked when the first was answered
		return nil
	}
	return a.t.update(say(agentChunk, "", one.Request.Question))
}

// settle notes that the client has answered, and ends the stream where only texts are left.
func (a *asks) settle(one runview.Asked, err error) {
	if err != nil {
		a.leave(err)
		return
	}
	a.mu.Lock()
	if a.open[one.ID] != nil {
		delete(a.open, one.ID)
	}
	over := a.over()
	a.mu.Unlock()
	if over {
		a.leave(errAsksText)
	}
}

// hasForms reports whether the client's user can fill in forms.
func (s *Server) hasForms() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client.Elicitation != nil && s.client.Elicitation.Form != nil
}

// ask asks the client, and tells the run what it answers.
func (a *asks) ask(ctx context.Context, one runview.Asked, asked form.Form, question bool) error {
	var d *events.ResolveApproval
	var err error
	if question {
		d, err = a.askForm(ctx, one, asked)
	} else {
		d, err = a.askPermission(ctx, one)
	}
	switch {
	case ctx.Err() != nil: // answered elsewhere, or the client has gone
		return nil
	case err != nil && question: // the client cannot show this form
		return a.asText(one)
	case err != nil:
		return events.Errorf(events.Unavailable, "the client did not answer whether %s may be called: %w", one.Name, err)
	case d == nil:
		return nil
	}
	a.mu.Lock()
	a.sent[one.ID] = true
	a.mu.Unlock()
	_, err = a.t.s.c.Send(a.t.ctx, a.t.of.id, *d)
	if events.HasCode(err, events.NotFound, events.IllegalTransition) { // answered elsewhere meanwhile
		return nil
	}
	return err
}

// askPermission asks for an approval. nil: the turn is cancelled.
func (a *asks) askPermission(ctx context.Context, one runview.Asked) (*events.ResolveApproval, error) {
	var said permitted
	err := a.t.s.call(ctx, "session/request_permission", permission{
		SessionID: a.t.of.id,
		ToolCall:  update{ToolCallID: one.ID, Title: titleOf(one.Name), Status: pending, RawInput: one.Input, Content: texts(why(one.Request.Reason))},
		Options:   []option{{allowOnce, "Allow once", allowOnce}, {rejectOnce, "Reject", rejectOnce}},
	}, &said)
	d := &events.ResolveApproval{CallID: one.ID}
	switch {
	case err != nil:
		return nil, err
	case said.Outcome.Outcome == "cancelled":
		a.t.halt()
		return nil, nil
	case said.Outcome.OptionID == allowOnce:
		d.Grant = true
	case said.Outcome.OptionID == rejectOnce:
		d.Deny = true
	default:
		return nil, events.Errorf(events.InvalidRequest, "%.80q is not one of the options", said.Outcome.OptionID)
	}
	return d, nil
}

// why tells people what an approval is about, where they would not expect it.
func why(reason events.ApprovalReason) string {
	if reason == events.ApprovalMayHaveRun {
		return "A worker that was lost may have made this call. Make it again?"
	}
	return ""
}

// askForm asks a question. nil: it was put away, and the next prompt answers it.
func (a *asks) askForm(ctx context.Context, one runview.Asked, asked form.Form) (*events.ResolveApproval, error) {
	var said elicited
	err := a.t.s.call(ctx, "elicitation/create", elicitation{a.t.of.id, one.ID, "form", one.Request.Question, asked}, &said)
	d := &events.ResolveApproval{CallID: one.ID}
	switch {
	case err != nil:
		return nil, err
	case said.Action == "accept":
		d.Result, err = form.Answer(said.Content)
		return d, err
	case said.Action == "decline":
		d.Deny, d.Reason = true, "the user declined to answer"
		return d, nil
	}
	return nil, a.asText(one)
}
