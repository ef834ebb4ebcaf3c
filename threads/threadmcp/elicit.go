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
// its question waiting; what was answered before is not answered again. What is read of the run
// afterwards shows the answers.
func (s *Server) answer(ctx context.Context, r *run, responses mcp.InputResponseMap) error {
	now, err := s.c.UpToDate(ctx) // the call was learned from an event, perhaps before the document shows it
	if err != nil {
		return err
	}
	x, err := client.Read(ctx, now, events.GetExecution{ThreadID: r.Thread, ExecutionID: r.Execution})
	if err != nil {
		return err
	}
	waits := waitingIn(x)
	var commands []events.SubCommand
	for _, call := range slices.Sorted(maps.Keys(responses)) {
		if !slices.ContainsFunc(waits, func(a events.ApprovalRequested) bool { return a.CallID == call }) {
			continue
		}
		said, ok := responses[call].(*mcp.ElicitResult)
		if !ok {
			return events.Invalid("/inputResponses", "the answer to %.80q is not one of a form", call)
		}
		d := events.ResolveApproval{CallID: call}
		switch said.Action {
		case "accept":
			raw, err := form.Answer(said.Content)
			if err != nil {
				return events.Invalid("/inputResponses", "%w", err)
			}
			d.Result = raw
		case "decline":
			d.Deny, d.Reason = true, "the user declined to answer"
		case "cancel":
			continue
		default:
			return events.Invalid("/inputResponses", "the action of the answer to %.80q is %.40q; it is accept, decline or cancel", call, said.Action)
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
	reply, err := s.c.Commit(ctx, x.ThreadID, commands, s.once()...)
	if err == nil {
		r.Seq = reply.Seq
	}
	return err
}
