package thread

import (
	"cmp"
	"slices"

	"github.com/skein-threads/skein/events"
)

// Known is what a decision is told of the tenant's definitions, which are not
// part of the thread: what Needs asks for.
type Known struct {
	Policy events.Policy                      // of the agent that works; empty: it says none
	Types  map[string]func(events.JSON) error // what holds a content to a type of contexts, by name; nil: there is no such type
	// Fits holds an answer to the JSON Schema of its question; nil: nobody can.
	Fits func(schema, answer events.JSON) error
}

// Need is what a decision must know of the tenant's definitions.
type Need struct {
	Agent string   // whose policy counts; empty: nobody's
	Types []string // of contexts
	Asked []Asked  // agents that are to answer
}

// Asked is an agent that a part of a command asks to answer.
type Asked struct {
	Name string
	Part int
}

// Needs returns what the command must know for it to be decided on the draft.
func (d *Draft) Needs(c *Command) Need {
	var need Need
	s := d.layer
	own := s.AgentID() // or assigned by the parts before
	for i, p := range c.Parts {
		switch d := p.Data.(type) {
		case events.AssignAgent:
			own = d.AgentID
		case events.ReactThread:
			if name := cmp.Or(d.AgentID, own); name != "" { // else the decision says that it needs one
				need.Asked = append(need.Asked, Asked{name, i})
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

// working returns the agent that works in the thread, or is in charge of it.
func (s *State) working() string {
	if x, _ := s.execution(s.head.Active); x.Run != nil && x.Run.Agent != "" {
		return x.Run.Agent
	}
	return s.Agent
}
