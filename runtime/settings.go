package runtime

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// applySettings adds the settings of the run to a reactor's input. The error says which setting
// the agent does not accept.
func (t reactorCall) applySettings(side *Side, in *StepInput) error {
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
	in.Metadata = s.Metadata
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

// withSettings returns a model with the settings and the limits of the run.
func (t reactorCall) withSettings(m Model) (_ Model, err error) {
	if s := t.run.Settings; s != nil {
		if s.Temperature != nil {
			m.Temperature = s.Temperature
		}
		if m.Params, err = mergeParams(m.Params, s.Params, t.run.Iteration); err != nil {
			return m, err
		}
	}
	if left := t.outputLeft(); left > 0 && (m.MaxOutputTokens == 0 || left < m.MaxOutputTokens) {
		m.MaxOutputTokens = left
	}
	return m, nil
}

// mergeParams returns a model's params with those of a run, which replace them.
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
	if raw, ok := own["tool_choice"]; ok && iteration > 0 {
		later, err := laterChoice(raw)
		if err != nil {
			return nil, events.Invalid("/settings/params", "the tool_choice of the run: %w", err)
		}
		if own["tool_choice"] = later; later == nil {
			delete(own, "tool_choice")
		}
	}
	maps.Copy(merged, own)
	return json.Marshal(merged, json.Deterministic(true))
}

// outputCap returns how many tokens all steps of the run may write together; 0: no limit.
func (t reactorCall) outputCap() int64 {
	most := t.talk.MaxTokens
	if s := t.run.Settings; s != nil && s.MaxOutputTokens > 0 && (most == 0 || s.MaxOutputTokens < most) {
		most = s.MaxOutputTokens
	}
	return most
}

// callerTool reports whether the caller of the run executes the calls of a tool.
func (t reactorCall) callerTool(name string) bool {
	s := t.run.Settings
	return s != nil && slices.ContainsFunc(s.Tools, func(tool events.CallerTool) bool { return tool.Name == name })
}

// leaveToCaller marks the parts of calls that the caller of the run executes, and reports
// whether there is one.
func (t reactorCall) leaveToCaller(parts []part) (bool, error) {
	found := false
	for i, p := range parts {
		name, of := strings.CutPrefix(p.kind, events.ToolPart)
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
func (t reactorCall) callerCalls() bool {
	return t.talk.CallerCalls(t.run.ItemID)
}

// toolChoice is the tool_choice of a run's params, as Open Responses defines it: a mode, a
// function, or functions that are allowed.
type toolChoice struct {
	Type  string     `json:"type"`
	Mode  string     `json:"mode,omitzero"`
	Tools []choiceOf `json:"tools,omitzero"`
}

// choiceOf is a function that a tool_choice allows.
type choiceOf struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// The words of a tool_choice.
const (
	choiceNone   = `none`
	choiceAuto   = `auto`
	allowedTools = `allowed_tools`
)

// readChoice decodes a tool_choice. A mode becomes a choice without a type. Any other value is
// ignored here, and left to the reactor.
func readChoice(raw events.JSON) (c toolChoice) {
	switch jsontext.Value(raw).Kind() {
	case '"':
		_ = json.Unmarshal(raw, &c.Mode)
	case '{':
		if json.Unmarshal(raw, &c, jsontext.AllowDuplicateNames(true)) != nil {
			return toolChoice{}
		}
	}
	return c
}

// permits reports whether the model may call a tool.
func (c *toolChoice) permits(tool string) bool {
	switch {
	case c.Mode == choiceNone:
		return false
	case c.Type != allowedTools:
		return true
	}
	return slices.ContainsFunc(c.Tools, func(f choiceOf) bool { return f.Name == tool })
}

// laterChoice returns the tool_choice for the steps after the first, nil if none is left. A demand
// for a call applies to the first step only, or no run would end. What a choice allows and forbids
// applies to all steps.
func laterChoice(raw events.JSON) (events.JSON, error) {
	c := readChoice(raw)
	switch {
	case c.Mode == choiceNone || c.Type == "" && c.Mode == choiceAuto:
		return raw, nil
	case c.Type != allowedTools:
		return nil, nil
	}
	c.Mode = choiceAuto
	return json.Marshal(c, json.Deterministic(true))
}

// permitted reports whether the run's tool_choice permits a call of the open step.
func (t stepCalls) permitted(tool string) bool {
	if t.run.Settings == nil || t.run.Settings.Params == nil || t.run.Asks == "" {
		return true
	}
	var params struct {
		Choice events.JSON `json:"tool_choice"`
	}
	if json.Unmarshal(t.run.Settings.Params, &params) != nil {
		return true // such params were never passed to a reactor
	}
	c := readChoice(params.Choice)
	return c.permits(tool)
}
