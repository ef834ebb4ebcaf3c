package threadmcp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
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
		form, ok := formOf(call)
		if !ok {
			return nil
		}
		asks[call.CallID] = &mcp.ElicitParams{Mode: "form", Message: call.Question, RequestedSchema: form}
	}
	return asks
}

// field is the property of a form whose answer is no object.
const field = "answer"

// form is the schema of a form: an object of plain values.
type form struct {
	Type       string                     `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required,omitempty"`
}

// formOf returns the form that asks a question, and reports whether there is one: forms have plain
// values only.
func formOf(call events.ApprovalRequested) (form, bool) {
	if call.Question == "" {
		return form{}, false
	}
	if call.Answer == nil {
		return form{"object", map[string]json.RawMessage{field: json.RawMessage(`{"type":"string"}`)}, []string{field}}, true
	}
	if plain(json.RawMessage(call.Answer)) {
		return form{"object", map[string]json.RawMessage{field: json.RawMessage(call.Answer)}, []string{field}}, true
	}
	var f form
	if json.Unmarshal(call.Answer, &f) != nil || f.Type != "object" || len(f.Properties) == 0 {
		return form{}, false
	}
	return f, !slices.ContainsFunc(slices.Collect(maps.Values(f.Properties)), func(one json.RawMessage) bool { return !plain(one) })
}

// plain reports whether a schema is one of a text, a number or a truth value.
func plain(schema json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return false
	}
	name, _ := s.Type.(string)
	return slices.Contains([]string{"string", "number", "integer", "boolean"}, name)
}

// answer tells a run what people have answered, all of it or nothing. A form that was put away leaves
// its question waiting; what was answered before is not answered again.
func (s *Server) answer(ctx context.Context, r run, responses mcp.InputResponseMap) error {
	x, err := client.Read(ctx, s.c, events.GetExecution{ThreadID: r.Thread, ExecutionID: r.Execution})
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
			var value any = said.Content
			if one, alone := said.Content[field]; alone && len(said.Content) == 1 {
				value = one
			}
			raw, err := json.Marshal(value)
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
	_, err = s.c.Commit(ctx, x.ThreadID, commands, s.once()...)
	return err
}
