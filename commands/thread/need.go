package thread

import (
	"cmp"
	"slices"

	"github.com/skein-threads/skein/events"
)

// Known is what a decision needs to know of the tenant's definitions, which are not part of
// the thread: the answer to Needs.
type Known struct {
	Policy events.Policy                      // of the agent that works; empty: it has none
	Modes  map[string]string                  // the agent of each mode; nil: the tenant has no policy of modes
	Types  map[string]func(events.JSON) error // check a content against a type of contexts, by name; nil: there is no such type
	// Fits checks an answer against the JSON Schema of its question; nil: the process cannot.
	Fits func(schema, answer events.JSON) error
}

// Need is what a decision must know of the tenant's definitions.
type Need struct {
	Agent string   // whose policy applies; empty: none
	Modes bool     // the agents of modes
	Types []string // of contexts
	Asked []Asked  // agents that are asked to answer
}

// Asked is an agent that a part of a command asks to answer.
type Asked struct {
	Name string // if the mode picks none
	Mode string // of the thread; empty: the name stands
	Part int
}

// Needs returns what the draft must know in order to decide the command.
func (d *Draft) Needs(c *Command) Need {
	var need Need
	s := d.layer
	own, mode := s.AgentID(), s.Profile.Mode // or set by earlier parts
	need.Modes = mode != "" && s.Profile.submits()
	for i, p := range c.Parts {
		switch d := p.Data.(type) {
		case events.AssignAgent:
			own = d.AgentID
		case events.UpdateThread:
			if d.AgentMode != nil {
				mode = *d.AgentMode
			}
		case ReactFor:
			need.Modes = need.Modes || d.AgentID == "" && mode != ""
		case events.ReactThread:
			asked := Asked{Name: cmp.Or(d.AgentID, own), Part: i}
			if d.AgentID == "" && mode != "" {
				asked.Mode, need.Modes = mode, true
			}
			if asked.Name != "" || asked.Mode != "" { // else deciding returns an error that asks for one
				need.Asked = append(need.Asked, asked)
			}
			if d.Policy == "" && s.Policy == "" && s.Status == events.ThreadStreaming {
				need.Agent = s.working()
			}
		case events.CreateThread:
			need.of(d.ContextType)
		case events.ResolveThread:
			need.of(d.ContextType)
		case events.CreateContext:
			need.of(d.Type)
		case events.SetContext:
			id := d.ContextID
			if id == "" {
				id = s.Default
			}
			if context, ok := s.context(id); ok {
				need.of(context.Type)
			}
		}
	}
	return need
}

func (n *Need) of(name string) {
	if name != "" && !slices.Contains(n.Types, name) {
		n.Types = append(n.Types, name)
	}
}

// working returns the agent of the current run, or else the one in charge of the thread.
func (s *State) working() string {
	if x, _ := s.execution(s.head.Active); x.Run != nil && x.Run.Agent != "" {
		return x.Run.Agent
	}
	return s.Agent
}
