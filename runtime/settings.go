package runtime

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// applySettings adds the settings of the run to a reactor's input. The error says what the
// agent does not accept.
func (t *turn) applySettings(side *Side, in *StepInput) error {
	s := t.run.Settings
	if s == nil {
		return nil
	}
	if s.Instructions != "" {
		if in.Instructions != "" {
			in.Instructions += "\n\n"
		}
		in.Instructions += s.Instructions
	}
	if s.Temperature != nil {
		in.Model.Temperature = s.Temperature
	}
	in.Metadata = s.Metadata
	var err error
	if in.Model.Params, err = mergeParams(in.Model.Params, s.Params, t.run.Iteration); err != nil {
		return err
	}
	for _, tool := range s.Tools {
		if t.agent.Type == DualAgent {
			return events.Invalid("/settings/tools", "agent %s is of the type dual_ai, whose runs have no tools of a caller", t.agent.Name)
		}
		if side.tool(tool.Name) != nil {
			return events.Invalid("/settings/tools", "the tool %s of the caller has the name of a tool of agent %s; rename it", tool.Name, t.agent.Name)
		}
		in.Tools = append(in.Tools, ToolSpec{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters, Strict: tool.Strict, Caller: true})
	}
	return nil
}

// mergeParams returns a model's params with those of a run, which replace them. A tool_choice
// that makes the model call a tool is for the first step only: else no run would end.
func mergeParams(model, run events.JSON, iteration int64) (events.JSON, error) {
	if run == nil {
		return model, nil
	}
	merged := map[string]events.JSON{}
	if model != nil {
		if err := json.Unmarshal(model, &merged); err != nil {
			return nil, events.Invalid("/settings/params", "the params of the model are not a JSON object")
		}
	}
	var own map[string]events.JSON
	if err := json.Unmarshal(run, &own); err != nil {
		return nil, events.Invalid("/settings/params", "the params of the run are not a JSON object")
	}
	if choice := string(own["tool_choice"]); iteration > 0 && choice != `"auto"` && choice != `"none"` {
		delete(own, "tool_choice")
	}
	maps.Copy(merged, own)
	return json.Marshal(merged, json.Deterministic(true))
}

// outputCap returns how many tokens the run may write, all of its steps together; 0: no limit.
func (t *turn) outputCap() int64 {
	most := t.talk.tokens
	if s := t.run.Settings; s != nil && s.MaxOutputTokens > 0 && (most == 0 || s.MaxOutputTokens < most) {
		most = s.MaxOutputTokens
	}
	return most
}

// callerTool reports whether the caller of the run executes the calls of a tool.
func (t *turn) callerTool(name string) bool {
	s := t.run.Settings
	return s != nil && slices.ContainsFunc(s.Tools, func(tool events.CallerTool) bool { return tool.Name == name })
}

// leaveToCaller marks the parts of calls that the caller of the run executes, and reports
// whether there is one.
func (t *turn) leaveToCaller(parts []part) (bool, error) {
	found := false
	for i, p := range parts {
		name, of := strings.CutPrefix(p.kind, toolPart)
		if !of || !t.callerTool(name) {
			continue
		}
		var fields map[string]events.JSON
		if err := json.Unmarshal(p.raw, &fields); err != nil {
			return false, err
		}
		if fields["state"] != nil { // its provider made it
			continue
		}
		found = true
		fields["state"] = text(events.CallerState)
		raw, err := json.Marshal(fields, json.Deterministic(true))
		if err != nil {
			return false, err
		}
		parts[i].raw = raw
	}
	return found, nil
}

// callerCalls reports whether the run has made a call that its caller executes.
func (t *turn) callerCalls() bool {
	s := t.talk.byID[t.run.ReactionItemID]
	return s != nil && len(s.open) > 0
}
