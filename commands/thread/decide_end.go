package thread

import (
	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// closeStep ends the open step and decides how the run continues.
func (m *decider) closeStep(execution string, after After) error {
	x, _ := m.state.execution(execution)
	if after.StopBy != "" && !x.Run.Stop {
		m.emit(events.RunStoppedType, execution, execution, events.RunStopped{By: after.StopBy, Reason: "stopped by side " + string(after.StopBy)})
		x, _ = m.state.execution(execution)
	}
	if x.Run.Stop {
		return m.finishStopped(execution)
	}
	tools := false
	for _, q := range m.state.Queue {
		tools = tools || q.joins()
	}
	if x.Run.Once && x.Steps == 1 {
		after.Continue = x.Run.Steered > 0 // no step has read the steering message yet
	}
	goes := (after.Continue || x.Run.Steered > x.Run.From || tools) && x.Run.Handoff == nil
	if goes && after.Limit != "" {
		return m.finish(events.SetExecutionStatus{ExecutionID: execution, To: events.ExecutionFailed, ErrorText: after.Limit})
	}
	if err := m.endStep(execution, events.StepCompleted, goes, ""); err != nil {
		return err
	}
	if goes {
		return m.beginStep(execution, after.Side)
	}
	return m.finish(events.SetExecutionStatus{ExecutionID: execution, To: events.ExecutionCompleted})
}

// endStep ends the open step, if there is one, with the results of its calls.
func (m *decider) endStep(execution string, to events.StepStatus, goes bool, text string) error {
	x, _ := m.state.execution(execution)
	if x.Run == nil || x.Run.Step == "" {
		return nil
	}
	if err := m.endOpenCalls(execution); err != nil {
		return err
	}
	d := events.SetStepStatus{StepID: x.Run.Step, ExecutionID: execution, To: to, ContinueLoop: &goes, ErrorText: text}
	if len(x.Run.Calls) > 0 {
		type call struct {
			CallID string `json:"callId"`
			Name   string `json:"name"`
			Key    string `json:"key"` // of the part with its arguments and its result
		}
		var asked, ended []call
		for _, c := range x.Run.Calls {
			one := call{c.ID, c.Name, events.PartKey(x.Run.Step, c.Idx)}
			asked = append(asked, one)
			if c.Is == callDone {
				ended = append(ended, one)
			}
		}
		var err error
		if d.ToolCalls, err = json.Marshal(asked); err != nil {
			return events.Invalid("", "%w", err)
		}
		if ended != nil {
			if d.ToolExecutionResults, err = json.Marshal(ended); err != nil {
				return events.Invalid("", "%w", err)
			}
		}
	}
	return m.setStepStatus(d)
}

// endOpenCalls marks the calls of the open step that have no result as ended. When a run continues
// with another step, all calls have results.
func (m *decider) endOpenCalls(execution string) error {
	x, _ := m.state.execution(execution)
	var results []CallResult
	for _, c := range x.Run.Calls {
		if c.Is == callDone {
			continue
		}
		reason := events.CallUnmade
		switch c.Is {
		case callWaits:
			reason = events.CallUnanswered
		case callThread, callEnded:
			reason = events.CallUnfinished
		}
		part := c.Part
		if part == nil { // snapshots of older versions have no parts
			part = []byte(`{"type":` + string(events.Quote(ToolPart+c.Name)) + `,"toolCallId":` + string(events.Quote(c.ID)) + `}`)
		}
		results = append(results, CallResult{CallID: c.ID, Part: events.FailedCall(part, reason), Output: events.Quote(reason), IsError: true})
	}
	return m.putResults(execution, results)
}

// finishStopped ends a run that was asked to stop.
func (m *decider) finishStopped(execution string) error {
	x, _ := m.state.execution(execution)
	if x.Run.Abort || x.Run.Handoff != nil { // an incomplete summary is not used
		return m.finish(events.SetExecutionStatus{ExecutionID: execution, To: events.ExecutionFailed, ErrorText: Aborted})
	}
	if err := m.endStep(execution, events.StepCompleted, false, ""); err != nil {
		return err
	}
	return m.finish(events.SetExecutionStatus{ExecutionID: execution, To: events.ExecutionCompleted})
}

// Aborted is the error text of a run that was cancelled.
const Aborted = "aborted"

// finish ends an execution: its item, the execution, the thread and the context, in this order.
// Then it starts the next entry of the queue.
func (m *decider) finish(end events.SetExecutionStatus) error {
	execution, to, text := end.ExecutionID, end.To, end.ErrorText
	if to == events.ExecutionFailed {
		if err := m.endStep(execution, events.StepFailed, false, text); err != nil {
			return err
		}
		note, err := json.Marshal(struct {
			Type string `json:"type"`
			Text string `json:"errorText"`
		}{"error", text}, json.Deterministic(true))
		if err != nil {
			return events.Invalid("/errorText", "%w", err)
		}
		if err := m.addToReaction(execution, []events.JSON{note}); err != nil {
			return err
		}
	} else if err := m.addToReaction(execution, nil); err != nil {
		return err
	}
	x, _ := m.state.execution(execution)
	answers := x.Run.Handoff == nil
	if to == events.ExecutionCompleted && !x.Run.Once && answers {
		m.titleThread()
	}
	if answers {
		if err := m.completeItem(execution); err != nil {
			return err
		}
	}
	if err := m.setExecutionStatus(end); err != nil {
		return err
	}
	if err := m.finishThread(events.FinishThread{ExecutionID: execution, Reason: x.Run.Reason}); err != nil {
		return err
	}
	if c, _ := m.state.context(x.Context); c.Status == events.ContextStreaming {
		if err := m.moveContext(x.Context, events.ContextOpen, execution); err != nil {
			return err
		}
	}
	if m.state.Status == events.ThreadStreaming {
		end := events.ThreadOpen
		if to == events.ExecutionFailed && !x.Run.Abort && answers {
			end = events.ThreadFailed
		}
		if err := m.moveThread(end, ""); err != nil {
			return err
		}
	}
	if err := m.next(); err != nil {
		return err
	}
	if to == events.ExecutionCompleted && answers {
		return m.submitDraft(x.Run.Agent)
	}
	return nil
}
