package threadmcp

import (
	"context"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/form"
)

// multiRound is the first version of the protocol in which a result may ask for input.
const multiRound = "2026-07-28"

// elicitation returns the questions among calls that wait as input that the client asks its user for;
// nil if it cannot, if the user has put them away, or if another call waits with them, on which an
// approval decides.
func elicitation(req *mcp.CallToolRequest, calls []events.ApprovalRequested) mcp.InputRequestMap {
	can := req.ClientCapabilities()
	again := len(req.Params.InputResponses) > 0 // earlier versions are asked within the call, once
	if can == nil || can.Elicitation == nil || again && req.ProtocolVersion() < multiRound {
		return nil
	}
	asks := mcp.InputRequestMap{}
	for _, call := range calls {
		if said, ok := req.Params.InputResponses[call.CallID].(*mcp.ElicitResult); ok && said.Action == "cancel" {
			return nil
		}
		asked, ok := form.Of(call.Question, call.Answer)
		if !ok {
			return nil
		}
		asks[call.CallID] = &mcp.ElicitParams{Mode: "form", Message: call.Question, RequestedSchema: asked}
	}
	return asks
}

// answer tells a run what people have answered, all of it or nothing. A form that was put away leaves
// its question waiting. What was answered before is not answered again, and refused if it was answered
// otherwise. What is read of the run afterwards shows the answers.
func (c *Caller) answer(ctx context.Context, r *run, responses mcp.InputResponseMap) error {
	end, err := c.client.HistoryEnd(ctx) // the call was learned from an event, perhaps before the document shows it
	if err != nil {
		return err
	}
	if r.Seq < 0 || r.Seq > end {
		return notAState()
	}
	now := c.client.WithMinSeq(end)
	x, err := client.Read(ctx, now, events.GetExecution{ThreadID: r.Thread, ExecutionID: r.Execution})
	if err != nil {
		return err
	}
	var commands []events.SubCommand
	var given map[string]client.GivenAnswer // before
	for _, call := range slices.Sorted(maps.Keys(responses)) {
		var asked *events.CallApproval // the last time
		for i := range x.Approvals {
			if x.Approvals[i].CallID == call {
				asked = &x.Approvals[i]
			}
		}
		if asked == nil { // by another run, or by none
			continue
		}
		d, answered, err := answerOf(call, responses[call])
		switch {
		case err != nil:
			return err
		case !answered:
			continue
		case asked.Status != events.ApprovalWaiting:
			if given == nil {
				if given, err = client.AnswersTo(ctx, now, x.ThreadID, 1); err != nil {
					return err
				}
			}
			if earlier, ok := given[call]; ok {
				if what := d.Differs(earlier.ResolveApproval); what != "" {
					return events.Invalid("/inputResponses", "call %.80q was answered otherwise: it is %s, and this is %s", call, asked.Status, what)
				}
			}
			continue
		}
		one, err := client.Sub("approval.resolve", d)
		if err != nil {
			return err
		}
		commands = append(commands, one)
	}
	if len(commands) == 0 {
		return nil
	}
	reply, err := c.client.Commit(ctx, x.ThreadID, commands, c.once()...)
	if err == nil {
		r.Seq = reply.Seq
	}
	return err
}

// answerOf returns what a form says of a call, and reports whether it answers: not if it was put away.
func answerOf(call string, response mcp.InputResponse) (d events.ResolveApproval, answers bool, _ error) {
	said, ok := response.(*mcp.ElicitResult)
	if !ok {
		return d, false, events.Invalid("/inputResponses", "the answer to %.80q is not one of a form", call)
	}
	d.CallID = call
	switch said.Action {
	case "accept":
		raw, err := form.Answer(said.Content)
		if err != nil {
			return d, false, events.Invalid("/inputResponses", "%w", err)
		}
		d.Result = raw
	case "decline":
		d.Deny, d.Reason = true, "the user declined to answer"
	case "cancel":
		return d, false, nil
	default:
		return d, false, events.Invalid("/inputResponses", "the action of the answer to %.80q is %.40q; it is accept, decline or cancel", call, said.Action)
	}
	return d, true, nil
}
