package chat

import (
	"context"
	"slices"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// answer sends the answers in a message of the assistant to the calls that wait for them:
// approvals, and answers to questions. Outputs of other calls are those that the thread has.
func (h *chat) answer(ctx context.Context, m *Message) (*follow, error) {
	if h.thread == nil {
		return nil, h.missing()
	}
	x, err := h.execution(ctx, func(x *events.Execution) bool { return slices.Contains(x.Items(), m.ID) })
	switch {
	case err != nil:
		return nil, err
	case x == nil:
		return nil, events.Missing("message", m.ID)
	}
	var answers, settled []events.ResolveApproval
	var calls, waiting []string
	for i := range m.Parts {
		d, err := answerOf(&m.Parts[i], x.Approvals)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		calls = append(calls, d.CallID)
		if a := runview.ApprovalOf(x.Approvals, d.CallID); a.Status == events.ApprovalWaiting {
			answers, waiting = append(answers, *d), append(waiting, d.CallID)
		} else {
			settled = append(settled, *d)
		}
	}
	if len(calls) == 0 {
		return nil, events.Errorf(events.InvalidRequest, "the last message answers no call that waits; send the user's message as the last one")
	}
	from, err := h.beginning(ctx, x)
	if err != nil {
		return nil, err
	}
	if err := h.checkSettled(ctx, settled, from); err != nil {
		return nil, err
	}
	for _, d := range answers {
		_, err := h.now.Send(ctx, h.thread.ID, d)
		if events.HasCode(err, events.NotFound, events.IllegalTransition) { // another tab was faster
			err = h.checkSettled(ctx, []events.ResolveApproval{d}, from)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(waiting) > 0 {
		calls = waiting // the client has seen what followed the other answers
	}
	return &follow{Run: h.runOf(x, m.ID), from: from, after: calls}, nil
}

// checkSettled refuses answers that differ from those which calls were given before, in the events from a
// version on. A call that was withdrawn has none.
func (h *chat) checkSettled(ctx context.Context, answers []events.ResolveApproval, from int64) error {
	if len(answers) == 0 {
		return nil
	}
	now, err := h.caller.Client.UpToDate(ctx)
	if err != nil {
		return err
	}
	given, err := client.AnswersTo(ctx, now, h.thread.ID, from)
	if err != nil {
		return err
	}
	for _, d := range answers {
		earlier, ok := given[d.CallID]
		if !ok {
			continue
		}
		if what := d.Differs(earlier.ResolveApproval); what != "" {
			return events.Errorf(events.AlreadyExists, "call %.128q was answered otherwise, and this is %s; load the chat again to see it", d.CallID, what)
		}
	}
	return nil
}

// runOf returns an execution as a run, for the message that begins with an item.
func (h *chat) runOf(x *events.Execution, item string) Run {
	return Run{ThreadID: x.ThreadID, Key: h.key(), AgentID: x.AgentID, ExecutionID: x.ID, MessageID: item, Later: item != x.ReactionItemID}
}

// lastMessage returns the items of the last message that an execution writes: those since a message
// of the user has steered it, or all.
func lastMessage(x *events.Execution) []string {
	ids := []string{x.ReactionItemID}
	for _, i := range x.LaterItems {
		if i.SteeredBy != "" {
			ids = nil
		}
		ids = append(ids, i.ItemID)
	}
	return ids
}

// execution returns the chat's last execution that matches, nil if there is none.
func (h *chat) execution(ctx context.Context, matches func(*events.Execution) bool) (*events.Execution, error) {
	q := events.ListExecutions{ThreadID: h.thread.ID, Order: "desc", Limit: new(int64(pageOfRuns))}
	for {
		list, err := client.Read(ctx, h.now, q)
		if err != nil {
			return nil, err
		}
		for i := range list.Executions {
			if matches(&list.Executions[i]) {
				return &list.Executions[i], nil
			}
		}
		if q.Cursor = list.NextCursor; q.Cursor == "" {
			return nil, nil
		}
	}
}

// pageOfRuns is how many executions of a chat are held at a time.
const pageOfRuns = 200

// answerOf returns the answer that a part has to a call, nil if it has none. The error is an
// invalid_request for an answer to a call that nobody was asked about.
func answerOf(p *Part, asked []events.CallApproval) (*events.ResolveApproval, error) {
	if p.tool() == "" || p.Preliminary {
		return nil, nil
	}
	a := runview.ApprovalOf(asked, p.ToolCallID)
	question := a != nil && a.Reason == events.ApprovalQuestion
	d := &events.ResolveApproval{CallID: p.ToolCallID}
	switch {
	case p.State == stateResponded && p.Approval != nil && p.Approval.Approved != nil:
		if a == nil || question || p.Approval.ID != a.CallID {
			return nil, events.Errorf(events.InvalidRequest, "nobody was asked to approve call %.128q", p.ToolCallID)
		}
		d.Grant, d.Deny, d.Reason = *p.Approval.Approved, !*p.Approval.Approved, p.Approval.Reason
		return d, nil
	case p.State == stateOutput && question:
		d.Result = output(p.Output)
		return d, nil
	case p.State == stateError && question:
		d.Deny, d.Reason = true, p.ErrorText
		return d, nil
	case (p.State == stateOutput || p.State == stateError) && a != nil && a.Status == events.ApprovalWaiting:
		return nil, events.Errorf(events.InvalidRequest, "call %.128q waits for an approval, and its output is not the client's to give", p.ToolCallID)
	}
	return nil, nil
}

// active returns the execution that runs, nil if none does.
func (h *chat) active(ctx context.Context) (*events.Execution, error) {
	if h.thread == nil {
		return nil, nil
	}
	list, err := client.Read(ctx, h.now, events.ListExecutions{ThreadID: h.thread.ID, Status: events.Executing})
	if err != nil || len(list.Executions) == 0 {
		return nil, err
	}
	return &list.Executions[len(list.Executions)-1], nil
}

// resume returns the message that is being written, nil if there is none.
func (h *chat) resume(ctx context.Context) (*follow, error) {
	x, err := h.active(ctx)
	if err != nil || x == nil || runview.AwaitsPeople(x) {
		return nil, err
	}
	from, err := h.beginning(ctx, x)
	return &follow{Run: h.runOf(x, lastMessage(x)[0]), from: from}, err
}

// beginning returns the version of the thread with which an execution began.
func (h *chat) beginning(ctx context.Context, x *events.Execution) (int64, error) {
	return runstream.Beginning(ctx, h.now, x, h.thread.Version)
}

// stop cancels the run that is active, and keeps what it has written. message, if it is not
// empty, is the message that the client sees being written: another one is not stopped.
func (h *chat) stop(ctx context.Context, message string) (stopped bool, err error) {
	x, err := h.active(ctx)
	if err != nil || x == nil || message != "" && !slices.Contains(x.Items(), message) {
		return false, err
	}
	_, err = h.now.Send(ctx, h.thread.ID, events.CancelRun{ExecutionID: x.ID, Reason: "stopped in the chat"})
	if events.HasCode(err, events.NotFound, events.IllegalTransition) {
		return false, nil
	}
	return err == nil, err
}
