package openresponses

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// The types of tools, and of a tool_choice that is an object.
const (
	functionTool = "function"
	allowedTools = "allowed_tools"
)

// mostTools is how many tools a request may have, or a tool_choice allow.
const mostTools = 128

// toolChoice is a tool_choice that is an object.
type toolChoice struct {
	Type  string       `json:"type"`
	Name  string       `json:"name"`
	Mode  string       `json:"mode"`
	Tools []toolChoice `json:"tools"`
}

// named is a function that a request demands or allows, with where it names it.
type named struct{ name, path string }

// modes returns what a tool_choice says without naming a tool.
func modes() []string { return []string{"auto", "none", "required"} }

// chosen returns the functions that the tool_choice of a request names. It refuses a choice that
// the protocol does not have.
func (d *createRequest) chosen() ([]named, error) {
	switch jsontext.Value(d.ToolChoice).Kind() {
	case 0:
		return nil, nil
	case '"':
		if slices.Contains(modes(), textOf(d.ToolChoice)) {
			return nil, nil
		}
	case '{':
		var choice toolChoice
		if err := misfit("/tool_choice", json.Unmarshal(d.ToolChoice, &choice, jsontext.AllowDuplicateNames(true))); err != nil {
			return nil, err
		}
		if choice.Type == allowedTools {
			return choice.allowed()
		}
		one, err := choice.function("/tool_choice")
		return []named{one}, err
	}
	return nil, events.Invalid("/tool_choice", "a tool_choice is auto, none, required, or an object")
}

// allowed returns the functions that a choice among several names.
func (c *toolChoice) allowed() ([]named, error) {
	switch {
	case c.Mode != "" && !slices.Contains(modes(), c.Mode):
		return nil, events.Invalid("/tool_choice/mode", "the mode of allowed tools is auto, none or required, and not %q", clipped(c.Mode))
	case len(c.Tools) == 0 || len(c.Tools) > mostTools:
		return nil, events.Invalid("/tool_choice/tools", "a tool_choice allows 1 to %d tools; it has %d", mostTools, len(c.Tools))
	}
	var list []named
	for i := range c.Tools {
		one, err := c.Tools[i].function("/tool_choice/tools/" + strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// function returns the function that a choice at a path names.
func (c *toolChoice) function(path string) (named, error) {
	switch {
	case c.Type != functionTool:
		return named{}, events.Invalid(path+"/type", "a tool_choice of type %s has no effect here; it names a function", quoted(c.Type))
	case c.Name == "":
		return named{}, events.Invalid(path+"/name", "a tool_choice of type function has the name of a tool")
	}
	return named{c.Name, path + "/name"}, nil
}

// checkNames refuses a function that has the name of a tool of the agent, and functions for an
// agent whose runs have none: the run would fail. What an MCP server's tools are called is known
// only when they are listed, as the run does; a reactor of one's own may do as it likes.
func (d *createRequest) checkNames(ctx context.Context, c *edge.Caller) error {
	if len(d.Tools) == 0 {
		return nil
	}
	a, _, err := agentOf(ctx, c, d.Model)
	switch {
	case err != nil || a == nil || a.Reactor != "":
		return err
	case a.SideA != nil:
		return events.Invalid("/tools", "agent %s is of the type dual_ai, whose runs have no tools of a caller; leave them out", quoted(d.Model))
	}
	for i, t := range d.Tools {
		taken, err := a.runs(ctx, c, t.Name)
		if err != nil {
			return err
		}
		if taken {
			return events.Invalid("/tools/"+strconv.Itoa(i)+"/name", "%s is a tool of agent %s, which Skein runs; rename the function, or leave it out", quoted(t.Name), quoted(d.Model))
		}
	}
	return nil
}

// agent is the definition of an agent.
type agent struct{ events.AgentDefinition }

// agentOf returns the agent that a request means by a name, nil if that is a model. found is
// false if it is a reactor without a definition.
func agentOf(ctx context.Context, c *edge.Caller, name string) (a *agent, found bool, err error) {
	d, err := defined(ctx, c, name)
	if events.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	made, err := events.DecodeDefinition(d.Kind, d.Definition)
	if one, is := made.(events.AgentDefinition); is && err == nil {
		a = &agent{one}
	}
	return a, true, err
}

// runs reports whether a tool of the agent has a name. A whole MCP server's own name is none.
func (a *agent) runs(ctx context.Context, c *edge.Caller, name string) (bool, error) {
	if name == events.SkillTool && len(a.Skills) > 0 {
		return true, nil
	}
	if !slices.Contains(a.Tools, name) {
		return false, nil
	}
	d, err := c.Client.Definition(ctx, events.ToolKind, name)
	if events.IsNotFound(err) {
		return false, nil // the run says so
	}
	if err != nil {
		return false, err
	}
	made, err := events.DecodeDefinition(d.Kind, d.Definition)
	tool, _ := made.(events.ToolDefinition)
	return tool.Server == nil || !tool.Server.Whole(), err
}

// checkChoice refuses a tool_choice that names a function which neither the request nor the agent
// has. What a reactor of one's own offers, and the tools of skills, are not known here.
func (d *createRequest) checkChoice(ctx context.Context, c *edge.Caller) error {
	list, err := d.chosen()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(n named) bool {
		return slices.ContainsFunc(d.Tools, func(t toolParam) bool { return t.Name == n.name })
	})
	if len(list) == 0 {
		return nil
	}
	offered, known, err := offeredBy(ctx, c, d.Model)
	if err != nil || !known {
		return err
	}
	for _, n := range list {
		if !slices.ContainsFunc(offered, func(tool string) bool { return n.name == tool || strings.HasPrefix(n.name, tool+"__") }) {
			return events.Invalid(n.path, "there is no tool %s in this request; name one of its tools, or of the agent's", quoted(n.name))
		}
	}
	return nil
}

// offeredBy returns the tools of an agent or a model by name, of an MCP server what the names of
// its tools begin with. known reports whether there are no others.
func offeredBy(ctx context.Context, c *edge.Caller, name string) (tools []string, known bool, err error) {
	a, found, err := agentOf(ctx, c, name)
	if err != nil || a == nil {
		return nil, found, err
	}
	return a.Tools, a.Reactor == "" && a.SideA == nil && len(a.Skills) == 0, nil
}
