package thread

import (
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
)

// evolveRun applies the events of runs, and updates the current run for other events.
func evolveRun(s *State, e *events.Event) {
	switch d := e.Data.(type) {
	case events.QueuePushed, events.QueueRemoved, events.QueueEdited, events.QueueMoved, events.QueueDrained:
		s.evolveQueue(e)
	case events.RunRequested, events.RunClaimed, events.RunAwaited, events.RunParked, events.RunSuspended, events.RunResumed,
		events.RunStopped, events.RunLimited, events.RunTurned:
		s.evolveControl(e)
	case events.ApprovalRequested, events.ApprovalGranted, events.ApprovalResolved, events.ApprovalDenied:
		s.evolveApproval(e)
		s.foldAnswer(e)
	case events.StepCreated, events.StepStatusChanged, events.PartCreated, events.PartUpdated, events.ItemCreated, events.MessageEdited:
		s.evolveStep(e)
	case events.AgentAssigned:
		s.Agent = d.AgentID
		s.run(s.head.Active, func(r *runState) {
			r.Agent = d.AgentID
			if r.Asks != "" && !r.Reacted { // once the reactor has answered, the calls stay with the agent that made them
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
	case events.ExecutionStatusChanged:
		s.endRun(e, d)
	}
}

// evolveControl applies the events that begin, park, stop and resume a run.
func (s *State) evolveControl(e *events.Event) {
	switch d := e.Data.(type) {
	case events.RunRequested:
		s.requestRun(e, d)
	case events.RunClaimed:
		s.run(e.Subject, func(r *runState) {
			r.Token, r.Worker, r.Parked, r.Free, r.Missing = d.Token, d.Worker, false, false, nil
		})
	case events.RunAwaited:
		s.awaitRun(e, d)
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
	}
}

// requestRun applies run.requested, which starts a run or resumes a parked one.
func (s *State) requestRun(e *events.Event, d events.RunRequested) {
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
}

// awaitRun records which workers a run waits for, and since when.
func (s *State) awaitRun(e *events.Event, d events.RunAwaited) {
	s.run(e.Subject, func(r *runState) {
		before := *r
		if r.Missing = d.For; r.UnavailableSince == 0 && r.missingReactor() {
			r.UnavailableSince = e.Time
		}
		if r.ServerMissingSince == 0 && r.missingServer() {
			r.ServerMissingSince = e.Time
		}
		for i := range r.Calls {
			switch c := &r.Calls[i]; {
			case !r.missingTool(c.ID) && before.missingTool(c.ID):
				c.UnavailableSince = 0
			case r.missingTool(c.ID) && c.UnavailableSince == 0:
				c.UnavailableSince = e.Time
			}
		}
	})
}

// endRun ends the current run: only the last one can be retried.
func (s *State) endRun(e *events.Event, d events.ExecutionStatusChanged) {
	if e.Subject != s.head.Active || d.To == events.Executing {
		return
	}
	s.head.Active = ""
	s.run(e.Subject, func(r *runState) { r.Room, r.From, r.Said, r.Steers = 0, 0, 0, "" })
	if x, _ := s.execution(e.Subject); x.Run != nil && x.Run.Handoff != nil { // a handoff's run answered no message, so the run that can be retried stays the same
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

// run changes the run of an execution that Skein runs.
func (s *State) run(id string, change func(*runState)) {
	if x, _ := s.execution(id); x.Run != nil {
		s.setExecution(id, x.with(change))
	}
}
