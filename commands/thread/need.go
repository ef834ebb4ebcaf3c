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
	Types  map[string]func(events.JSON) error // check a content against a type of contexts, by name; nil: there is no such type
	// Fits checks an answer against the JSON Schema of its question; nil: the process cannot.
	Fits func(schema, answer events.JSON) error
}

// Need is what a decision must know of the tenant's definitions.
type Need struct {
	Agent string   // whose policy applies; empty: none
	Types []string // of contexts
	Asked []Asked  // agents that are asked to answer
}

// Asked is an agent that a part of a command asks to answer.
type Asked struct {
	Name string
	Part int
}

// Needs returns what the draft must know in order to decide the command.
func (d *Draft) Needs(c *Command) Need {
	var need Need
	s := d.layer
	own := s.AgentID() // or assigned by earlier parts
	for i, p := range c.Parts {
		switch d := p.Data.(type) {
		case events.AssignAgent:
			own = d.AgentID
		case events.ReactThread:
			if name := cmp.Or(d.AgentID, own); name != "" { // else deciding returns an error that asks for one
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

// working returns the agent of the current run, or else the one in charge of the thread.
func (s *State) working() string {
	if x, _ := s.execution(s.head.Active); x.Run != nil && x.Run.Agent != "" {
		return x.Run.Agent
	}
	return s.Agent
}
