package thread

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// evolveStep applies the events of steps, their parts, and the items that they write.
func (s *State) evolveStep(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ItemCreated:
		s.numbered(d)
		if d.Type == events.Message && d.Role == events.User {
			s.run(e.Correlation, func(r *runState) { r.Steered, r.Steers = d.Index+1, d.ID })
		}
		s.said(d)
		s.grow(e.Correlation, d.ID, d.Content, nil)
	case events.MessageEdited:
		s.grow(e.Correlation, e.Subject, d.Content, d.Parts)
	case events.StepCreated:
		s.beginStep(d)
	case events.PartCreated:
		s.addPart(e, d)
	case events.StepStatusChanged:
		s.endStep(e, d)
	case events.PartUpdated:
		s.endCall(e, d)
	}
}

// beginStep begins a step of a run.
func (s *State) beginStep(d events.StepCreated) {
	x, _ := s.execution(d.ExecutionID)
	s.run(d.ExecutionID, func(r *runState) {
		if d.EventID != x.writes() {
			r.Item, r.Place = d.EventID, 0
		}
		if r.Room, r.From = 0, s.NextItem; d.Place != nil {
			r.Room, r.From = *d.Place+1, *d.Place
		}
		if r.Asks = ""; len(r.First) == 0 && !r.Drained { // otherwise the step consists of queued calls, and the reactor is not called
			r.Asks = r.Agent
			r.asked(d.Side)
		}
		r.UnavailableSince, r.ServerMissingSince = 0, 0
		r.Step, r.Side, r.Turn, r.Base, r.Reacted, r.Calls, r.First, r.Drained, r.Left = d.ID, d.Side, "", r.Place, false, nil, nil, false, nil
	})
	if d.Place != nil {
		s.NextItem = max(s.NextItem, *d.Place+1)
	}
}

// asked counts a step in which the reactor is called. Without sides, steps count as side a's.
func (r *runState) asked(side events.Side) {
	r.Asked++
	if side == events.SideB {
		r.SideB++
	} else {
		r.SideA++
	}
}

// addPart adds a part to the open step: its reactor has answered.
func (s *State) addPart(e *events.Event, d events.PartCreated) {
	s.run(e.Correlation, func(r *runState) {
		if r.Step != d.StepID {
			return
		}
		r.Reacted, r.UnavailableSince, r.ServerMissingSince = true, 0, 0
		if name, ok := strings.CutPrefix(d.Type, ToolPart); ok {
			if id := openCall(d.Part); id != "" {
				r.Calls = append(r.Calls, callState{ID: id, Name: name, Idx: d.Idx, Part: content(d.Part)})
			}
		}
	})
}

// endCall notes that the result of a call was merged into its part.
func (s *State) endCall(e *events.Event, d events.PartUpdated) {
	s.run(e.Correlation, func(r *runState) {
		r.ServerMissingSince = 0
		for i := range r.Calls {
			if c := &r.Calls[i]; r.Step == d.StepID && c.Idx == d.Idx {
				if c.Is == callThread { // the step ends, and the run on the other thread has not
					r.Left = append(slices.Clip(r.Left), c.ID)
				}
				c.Is, c.Part = callDone, nil
			}
		}
	})
}

// endStep ends the open step.
func (s *State) endStep(e *events.Event, d events.StepStatusChanged) {
	s.run(d.ExecutionID, func(r *runState) {
		if r.Step == e.Subject {
			for _, c := range r.Calls { // events of older versions
				if c.Is == callThread {
					r.Left = append(r.Left, c.ID)
				}
			}
			r.Step, r.Calls, r.Reacted = "", nil, false
		}
	})
}

// said updates the current run for a new item. The run's own item now has its place. A message
// that others add to the context makes the next step write a new item after it.
func (s *State) said(d events.ItemCreated) {
	x, _ := s.execution(s.head.Active)
	switch {
	case x.Run == nil || d.Type != events.Message || d.ContextID != x.Context:
	case d.ID == x.writes():
		s.run(s.head.Active, func(r *runState) { r.Room = 0 })
	default:
		s.run(s.head.Active, func(r *runState) { r.Said = max(r.Said, d.Index+1) })
	}
}

// grow records the number of parts of the item that a run writes.
func (s *State) grow(execution, item string, whole events.JSON, parts []events.PlacedPart) {
	x, _ := s.execution(execution)
	if x.Run == nil || x.writes() != item {
		return
	}
	s.setExecution(execution, x.with(func(r *runState) {
		var list []events.JSON
		if json.Unmarshal(whole, &list) == nil { // an edit of single parts has no complete content
			r.Place = int64(len(list))
		}
		for _, p := range parts {
			r.Place = max(r.Place, p.Place+1)
		}
	}))
}

// ToolPart is the prefix of the type of a part that is a call of a tool.
const ToolPart = events.ToolPart

// openCall returns the id of the call in a part, "" if the call has a result.
func openCall(part events.JSON) string {
	var p struct {
		ID    string `json:"toolCallId"`
		State string `json:"state"`
	}
	if json.Unmarshal(part, &p) != nil || p.State != "" { // a part with a state has a result, or its provider makes the call
		return ""
	}
	return p.ID
}

// evolveApproval applies the events of calls that wait for a person.
func (s *State) evolveApproval(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ApprovalRequested:
		s.run(e.Correlation, func(r *runState) {
			if c := r.call(d.CallID); c != nil {
				c.Is, c.Asks, c.Fits = callWaits, d.Reason == events.ApprovalQuestion, string(d.Answer)
			}
		})
	case events.ApprovalGranted:
		s.run(e.Correlation, func(r *runState) {
			if c := r.call(d.CallID); c != nil {
				c.Is, c.For = callGranted, r.Token
				if r.Free {
					c.For++
				}
			}
		})
	case events.ApprovalResolved:
		s.phase(e.Correlation, d.CallID, callSolved)
	case events.ApprovalDenied:
		s.phase(e.Correlation, d.CallID, callDenied)
	}
}

// phase changes the phase of a call.
func (s *State) phase(execution, call string, to callPhase) {
	s.run(execution, func(r *runState) {
		if c := r.call(call); c != nil {
			c.Is = to
		}
	})
}
