package thread

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
)

// evolveRun applies the events of runs, and what other events mean for the current run.
func evolveRun(s *State, e *events.Event) {
	switch d := e.Data.(type) {
	case events.QueuePushed:
		q := queued{
			ID: d.ID, Item: content(d.Item), Context: d.ContextID, Agent: d.AgentID, Tool: isCall(d.Item), Once: d.Once,
			Execution: d.ExecutionID, Reaction: d.ReactionItemID, Message: d.MessageID, Session: d.SessionID, Settings: d.Settings, Rights: d.Rights,
		}
		if d.First {
			s.Queue = append([]queued{q}, s.Queue...)
		} else {
			s.Queue = append(slices.Clip(s.Queue), q)
		}
		if !q.Tool {
			s.Messages = max(s.Messages, d.MessageID+1)
		}
		s.bytes += q.size()
	case events.QueueRemoved:
		s.dequeue(d.ID)
	case events.QueueEdited:
		s.requeue(d.ID, d.Item, d.Rights)
	case events.QueueMoved:
		s.moveQueued(d.ID, d.Before)
	case events.QueueDrained:
		s.leave(d.IDs)
		s.run(e.Correlation, func(r *runState) { r.Drained = true })
	case events.AgentAssigned:
		s.Agent = d.AgentID
		s.run(s.head.Active, func(r *runState) {
			r.Agent = d.AgentID
			if r.Asks != "" && !r.Reacted { // else its calls stay those of the agent that made them
				r.Asks = d.AgentID
			}
		})
	case events.SkillActivated:
		s.Skills = append(slices.Clip(s.Skills), d.Name)
		s.bytes += compact.TextSize(d.Name) + 16
	case events.ProfileChanged:
		if d.Policy != nil {
			s.Policy = *d.Policy
		}
		if d.UserID != nil {
			s.User = *d.UserID
		}
		s.evolveProfile(d)
	case events.RunRequested:
		x, ok := s.execution(e.Subject)
		if !ok {
			return
		}
		if x.Run == nil {
			x.Run = &runState{Agent: d.AgentID, Begun: e.Time, Wanted: e.Version, First: d.Calls, Parent: d.Parent, Once: d.Once, Handoff: d.Handoff, Settings: d.Settings, Rights: d.Rights}
			s.head.Active = e.Subject
		} else {
			x = x.with(func(r *runState) { r.Wanted, r.Parked = e.Version, false })
		}
		s.setExecution(e.Subject, x)
	case events.RunClaimed:
		s.run(e.Subject, func(r *runState) { r.Token, r.Worker, r.Parked, r.Free, r.Lacks = d.Token, d.Worker, false, false, nil })
	case events.RunAwaited:
		s.run(e.Subject, func(r *runState) {
			before := *r
			if r.Lacks = d.For; r.Away == 0 && r.lacksReactor() {
				r.Away = e.Time
			}
			if r.Down == 0 && r.lacksServer() {
				r.Down = e.Time
			}
			for i := range r.Calls {
				switch c := &r.Calls[i]; {
				case !r.lacksTool(c.ID) && before.lacksTool(c.ID):
					c.Away = 0
				case r.lacksTool(c.ID) && c.Away == 0:
					c.Away = e.Time
				}
			}
		})
	case events.RunParked:
		s.run(e.Subject, func(r *runState) {
			r.Parked, r.Free = true, true
			for _, id := range d.Unmade {
				if c := r.call(id); c != nil {
					c.For = r.Token + 1
				}
			}
		})
	case events.RunSuspended:
		for _, id := range d.Calls {
			s.phase(e.Subject, id, callThread)
		}
	case events.RunResumed:
		for _, id := range d.Calls {
			s.phase(e.Subject, id, callEnded)
		}
	case events.RunStopped:
		s.run(e.Subject, func(r *runState) { r.Stop, r.Abort, r.Reason, r.By = true, r.Abort || d.Abort, d.Reason, d.By })
	case events.RunLimited:
		s.run(e.Subject, func(r *runState) { r.Rights = d.Rights })
	case events.RunTurned:
		s.run(e.Subject, func(r *runState) { r.Turn = d.Side })
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
		x, _ := s.execution(d.ExecutionID)
		s.run(d.ExecutionID, func(r *runState) {
			if d.EventID != x.writes() {
				r.Item, r.Place = d.EventID, 0
			}
			if r.Room, r.From = 0, s.NextItem; d.Place != nil {
				r.Room, r.From = *d.Place+1, *d.Place
			}
			if r.Asks = ""; len(r.First) == 0 && !r.Drained { // else queued calls are the step, and the reactor is not called
				r.Asks = r.Agent
				r.asked(d.Side)
			}
			r.Away, r.Down = 0, 0
			r.Step, r.Side, r.Turn, r.Base, r.Reacted, r.Calls, r.First, r.Drained, r.Left = d.ID, d.Side, "", r.Place, false, nil, nil, false, nil
		})
		if d.Place != nil {
			s.NextItem = max(s.NextItem, *d.Place+1)
		}
	case events.PartCreated:
		s.run(e.Correlation, func(r *runState) {
			if r.Step != d.StepID {
				return
			}
			r.Reacted, r.Away, r.Down = true, 0, 0
			if name, ok := strings.CutPrefix(d.Type, ToolPart); ok {
				if id := openCall(d.Part); id != "" {
					r.Calls = append(r.Calls, callState{ID: id, Name: name, Idx: d.Idx, Part: content(d.Part)})
				}
			}
		})
	case events.StepStatusChanged:
		s.run(d.ExecutionID, func(r *runState) {
			if r.Step == e.Subject {
				for _, c := range r.Calls { // in older logs
					if c.Is == callThread {
						r.Left = append(r.Left, c.ID)
					}
				}
				r.Step, r.Calls, r.Reacted = "", nil, false
			}
		})
	case events.PartUpdated: // a call's result is merged into its part
		s.run(e.Correlation, func(r *runState) {
			r.Down = 0
			for i := range r.Calls {
				if c := &r.Calls[i]; r.Step == d.StepID && c.Idx == d.Idx {
					if c.Is == callThread { // it ends with the step, and before that run
						r.Left = append(slices.Clip(r.Left), c.ID)
					}
					c.Is, c.Part = callDone, nil
				}
			}
		})
	case events.ExecutionStatusChanged:
		if e.Subject != s.head.Active || d.To == events.Executing {
			return
		}
		s.head.Active = ""
		s.run(e.Subject, func(r *runState) { r.Room, r.From, r.Said, r.Steers = 0, 0, 0, "" })
		if x, _ := s.execution(e.Subject); x.Run != nil && x.Run.Handoff != nil { // it answered no message: what can be retried stays
			s.run(e.Subject, func(r *runState) { r.Handoff, r.Rights = nil, nil })
			return
		}
		for _, over := range []string{s.head.Failed, e.Subject} { // only the last run can be retried
			if over != "" && (over != e.Subject || d.To != events.ExecutionFailed) {
				s.run(over, func(r *runState) { r.Settings, r.Rights = nil, nil })
			}
		}
		s.head.Failed = ""
		if d.To == events.ExecutionFailed {
			s.head.Failed = e.Subject
		}
	}
}

// asked counts a step whose reactor is called. Without sides all steps are side a's.
func (r *runState) asked(side events.Side) {
	r.Asked++
	if side == events.SideB {
		r.SideB++
	} else {
		r.SideA++
	}
}

// run changes the run of an execution that Skein runs.
func (s *State) run(id string, change func(*runState)) {
	if x, _ := s.execution(id); x.Run != nil {
		s.setExecution(id, x.with(change))
	}
}

func (s *State) phase(execution, call string, to callPhase) {
	s.run(execution, func(r *runState) {
		if c := r.call(call); c != nil {
			c.Is = to
		}
	})
}

// said notes a new item: the message that the current run writes has its place, and one that others
// add to its context stands between what the run writes before it and after it.
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
		if json.Unmarshal(whole, &list) == nil { // an edit of parts has no complete content
			r.Place = int64(len(list))
		}
		for _, p := range parts {
			r.Place = max(r.Place, p.Place+1)
		}
	}))
}

// ToolPart is the prefix of the type of a part that is a call of a tool.
const ToolPart = events.ToolPart

// openCall returns the id of the call in a part, "" if it has a result.
func openCall(part events.JSON) string {
	var p struct {
		ID    string `json:"toolCallId"`
		State string `json:"state"`
	}
	if json.Unmarshal(part, &p) != nil || p.State != "" { // or its provider made it
		return ""
	}
	return p.ID
}

// isCall reports whether an item is a call of a tool.
func isCall(item []byte) bool { return events.QueuePushed{Item: item}.IsCall() }
