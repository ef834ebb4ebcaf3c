package audit

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// moveOf returns the change of state that an event records, nil if it is none.
func moveOf(e *events.Event) *TrailMove {
	switch d := e.Data.(type) {
	case events.ThreadStatusChanged:
		return &TrailMove{"thread", string(d.From), string(d.To), d.Reason}
	case events.ContextStatusChanged:
		return &TrailMove{"context", string(d.From), string(d.To), ""}
	case events.ItemStatusChanged:
		return &TrailMove{"item", string(d.From), string(d.To), ""}
	case events.ExecutionStatusChanged:
		return &TrailMove{"execution", string(d.From), string(d.To), d.ErrorText}
	case events.StepStatusChanged:
		return &TrailMove{"step", string(d.From), string(d.To), d.ErrorText}
	case events.AgentAssigned:
		return &TrailMove{"agent", d.From, d.AgentID, d.Reason}
	}
	return nil
}

// dataOf returns an event's own content as it is stored.
func dataOf(e *events.Event) events.JSON {
	var envelope struct {
		Data events.JSON `json:"data"`
	}
	if json.Unmarshal(e.Raw(), &envelope) != nil {
		return nil // it was decoded: cannot fail
	}
	return envelope.Data
}

// commandName returns the name of the command that made an event, if it can be told from the
// commit: of the commands that may make all of its events, the one that may make the fewest
// others, and among equals the one whose first event is the first of these, if there is one such.
func commandName(c *events.Commit, e *events.Event) string {
	var made []events.Type
	for i := range c.Events {
		if o := &c.Events[i]; o.CommandID == e.CommandID && o.CommandIndex == e.CommandIndex {
			made = append(made, o.Type)
		}
	}
	name, fewest, several := "", 0, false
	for _, command := range events.Commands() {
		if slices.ContainsFunc(made, func(t events.Type) bool { return !slices.Contains(command.Events, t) }) {
			continue
		}
		others := 2 * len(command.Events)
		if command.Events[0] != made[0] {
			others++
		}
		switch {
		case name == "" || others < fewest:
			name, fewest, several = command.Name, others, false
		case others == fewest:
			several = true
		}
	}
	if several {
		return ""
	}
	return name
}
