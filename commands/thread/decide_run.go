package thread

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// claimed returns the execution if token is its latest claim; otherwise a *LostRunError.
func (m *decider) claimed(execution string, token int64) (executionState, error) {
	x, ok := m.state.execution(execution)
	switch {
	case !ok || x.Run == nil:
		return x, events.Missing("run of execution", execution)
	case x.Status != events.Executing:
		return x, &LostRunError{ExecutionID: execution, Token: token, Now: x.Run.Token, Ended: true}
	case token != x.Run.Token:
		return x, &LostRunError{ExecutionID: execution, Token: token, Now: x.Run.Token}
	}
	return x, nil
}

func (m *decider) claimRun(d ClaimRun) error {
	x, ok := m.state.execution(d.ExecutionID)
	if !ok || x.Run == nil {
		return events.Missing("run of execution", d.ExecutionID)
	}
	if x.Status != events.Executing {
		return &LostRunError{ExecutionID: d.ExecutionID, Now: x.Run.Token, Ended: true}
	}
	m.emit(events.RunClaimedType, d.ExecutionID, d.ExecutionID,
		events.RunClaimed{Worker: d.Worker, Token: x.Run.Token + 1, Definitions: d.Definitions})
	if x.Run.mustEnd() {
		return m.finishStopped(d.ExecutionID)
	}
	if len(d.Missing) > 0 && !x.Run.Stop {
		return m.awaitServers(d)
	}
	if x.Run.Step == "" {
		return m.beginStep(d.ExecutionID, d.Side)
	}
	return nil
}

// awaitServers parks a run that was just claimed and cannot reach MCP servers, unless it has
// waited too long for one of them. The calls of the open step stay unmade.
func (m *decider) awaitServers(d ClaimRun) error {
	x, _ := m.state.execution(d.ExecutionID)
	since := cmp.Or(x.Run.ServerMissingSince, m.at)
	var lacks []events.WaitFor
	until := events.Time(math.MaxInt64)
	for _, l := range d.Missing {
		lacks, until = append(lacks, l.WaitFor), min(until, since+events.Time(l.Wait.Microseconds()))
	}
	if until <= m.at {
		return nil
	}
	m.emit(events.RunAwaitedType, d.ExecutionID, d.ExecutionID, events.RunAwaited{For: lacks, Until: until.String()})
	m.emit(events.RunParkedType, d.ExecutionID, d.ExecutionID, events.RunParked{Token: x.Run.Token, Calls: x.Run.waiting(), Unmade: x.Run.unmade()})
	return nil
}

// beginStep starts the next step. If a caller has queued calls, they are the step's calls, and
// the reactor is not called.
func (m *decider) beginStep(execution string, side events.Side) error {
	x, _ := m.state.execution(execution)
	if x.Run.Turn != "" {
		side = x.Run.Turn
	}
	calls := x.Run.First
	var drained []string
	var limits []*events.Rights
	for _, q := range m.state.Queue {
		if !q.joins() || x.Run.Handoff != nil || slices.Contains(drained, q.ID) || hasCall(calls, q.ID) {
			continue // older versions could queue calls with the same id
		}
		item, err := q.item()
		if err != nil {
			return err
		}
		call, err := callFrom(item)
		if err != nil {
			return err
		}
		if q.Rights != nil {
			limits = append(limits, q.Rights)
		}
		drained, calls = append(drained, q.ID), append(calls[:len(calls):len(calls)], call)
	}
	if len(drained) > 0 {
		m.emit(events.QueueDrainedType, drained[0], execution, events.QueueDrained{IDs: drained})
	}
	for _, r := range limits {
		m.limit(execution, r)
	}
	id := events.DeriveID(events.StepPrefix, x.Run.Begun, m.command.Tenant, m.command.ThreadID, execution, int(x.Steps))
	step := events.StepCreated{
		ID: id, ExecutionID: execution, Iteration: x.Steps, Status: events.StepMachine().Initial(), Side: side, SessionID: x.Session,
	}
	if err := m.placeStep(execution, &step); err != nil {
		return err
	}
	m.emit(events.StepCreatedType, id, execution, step)
	if len(calls) == 0 {
		return nil
	}
	parts, types := make([]events.JSON, len(calls)), make([]string, len(calls))
	for i, c := range calls {
		var err error
		if parts[i], err = callPart(c); err != nil {
			return err
		}
		types[i] = ToolPart + c.Name
	}
	if err := m.putParts(execution, id, parts, types); err != nil {
		return err
	}
	return m.putCalls(execution, id, calls)
}

// callPart returns the part of a call that has no result yet.
func callPart(c events.ToolCall) (events.JSON, error) {
	part, err := json.Marshal(struct {
		Type  string      `json:"type"`
		ID    string      `json:"toolCallId"`
		Input events.JSON `json:"input,omitzero"`
	}{ToolPart + c.Name, c.CallID, c.Arguments}, json.Deterministic(true))
	if err != nil {
		return nil, events.Invalid("/calls", "%w", err)
	}
	return part, nil
}

// putParts adds parts to a step, and to the item that it writes.
func (m *decider) putParts(execution, step string, parts []events.JSON, types []string) error {
	for i, part := range parts {
		n := int64(i)
		if err := m.putPart(events.PutPart{StepID: step, ExecutionID: execution, Idx: &n, Type: types[i], Part: part}); err != nil {
			return err
		}
	}
	return m.addToReaction(execution, parts)
}

// addToReaction adds parts to the item that a run writes. The first part creates the item.
func (m *decider) addToReaction(execution string, parts []events.JSON) error {
	x, _ := m.state.execution(execution)
	if x.Run.Handoff != nil { // its summary is not a message of this thread
		return nil
	}
	if _, made := m.state.item(x.writes()); made {
		if len(parts) == 0 {
			return nil
		}
		placed := make([]events.PlacedPart, len(parts))
		for i, part := range parts {
			placed[i] = events.PlacedPart{Place: x.Run.Place + int64(i), Part: part}
		}
		m.emit(events.MessageEditedType, x.writes(), execution, events.MessageEdited{Parts: placed})
		return nil
	}
	list, err := json.Marshal(parts)
	if err != nil {
		return events.Invalid("/parts", "%w", err)
	}
	if len(parts) == 0 {
		list = []byte("[]")
	}
	if x.Run.Room > 0 {
		m.place = new(x.Run.Room - 1)
		defer func() { m.place = nil }()
	}
	return m.putItem(events.NewItem{
		ID: x.writes(), Type: events.Message, Role: events.Assistant, Status: events.ItemPending, Content: list,
	}, x.Context, execution)
}

// putCalls adds an item for each call that has none yet.
func (m *decider) putCalls(execution, step string, calls []events.ToolCall) error {
	x, _ := m.state.execution(execution)
	for i, c := range calls {
		if c.ItemID != "" {
			continue
		}
		raw, err := json.Marshal(c, json.Deterministic(true))
		if err != nil {
			return events.Invalid("/calls", "%w", err)
		}
		if err := m.putItem(events.NewItem{
			ID: m.derive(x, step+":call", i), Type: events.ActionExecute, Status: events.ItemCompleted, ParentItemID: m.reactionItem(x), Content: raw,
		}, x.Context, execution); err != nil {
			return err
		}
	}
	return nil
}

// reactionItem returns the item that an execution writes, "" if it was deleted.
func (m *decider) reactionItem(x executionState) string {
	if _, err := m.itemOf(x.writes()); err != nil {
		return ""
	}
	return x.writes()
}

// derive returns an id that depends on the execution only, so that a repeated attempt writes
// the same ids.
func (m *decider) derive(x executionState, what string, n int) string {
	return events.DeriveID(events.ItemPrefix, x.Run.Begun, m.command.Tenant, m.command.ThreadID, what, n)
}

// putItem adds an item to a context, with an execution if one is named.
func (m *decider) putItem(item events.NewItem, ctx, execution string) error {
	was := m.correlation
	m.correlation = execution
	defer func() { m.correlation = was }()
	return m.addItem(events.CreateItem{ContextID: ctx, Item: item})
}

func (m *decider) reactStep(d ReactStep) error {
	x, err := m.claimed(d.ExecutionID, d.Token)
	if err != nil {
		return err
	}
	if x.Run.Step != d.StepID || x.Run.Reacted {
		return events.Invalid("/stepId", "step %s is not waiting for its reactor", d.StepID)
	}
	m.served(d.ExecutionID, func(w events.WaitFor) bool { return w.Kind == events.ReactorWorker })
	if err := m.putParts(d.ExecutionID, d.StepID, d.Parts, d.Types); err != nil {
		return err
	}
	if err := m.putCalls(d.ExecutionID, d.StepID, d.Calls); err != nil {
		return err
	}
	m.record(d.ExecutionID, d.Records)
	x, _ = m.state.execution(d.ExecutionID)
	if x.Run.Handoff != nil && !x.Run.Stop {
		if err := m.endHandoff(x, d); err != nil {
			return err
		}
	}
	if x.Run.Stop || len(x.Run.Calls) == 0 { // the caller of the run makes the other calls
		return m.closeStep(d.ExecutionID, d.After)
	}
	if len(d.Approve) == 0 {
		return nil
	}
	hold := HoldCalls{ExecutionID: d.ExecutionID, Token: d.Token, StepID: d.StepID}
	for _, c := range d.Calls {
		for _, id := range d.Approve {
			if id == c.CallID {
				hold.Approve = append(hold.Approve, events.ApprovalRequested{CallID: id, StepID: d.StepID, Name: c.Name, Arguments: c.Arguments, Reason: events.ApprovalManual})
			}
		}
	}
	return m.holdCalls(hold)
}

func (m *decider) record(execution string, records []events.TraceRecorded) {
	x, _ := m.state.execution(execution)
	for _, r := range records {
		r.ExecutionID, r.SessionID = execution, x.Session
		m.emit(events.TraceRecordedType, execution, execution, r)
	}
}

func (m *decider) endCalls(d EndCalls) error {
	x, err := m.claimed(d.ExecutionID, d.Token)
	if err != nil {
		return err
	}
	if x.Run.Step != d.StepID {
		return events.Invalid("/stepId", "step %s is not open", d.StepID)
	}
	m.served(d.ExecutionID, func(w events.WaitFor) bool {
		return slices.ContainsFunc(d.Results, func(r CallResult) bool { return r.CallID == w.CallID })
	})
	if err := m.putResults(d.ExecutionID, d.Results); err != nil {
		return err
	}
	m.record(d.ExecutionID, d.Records)
	if d.Agent != "" && d.Agent != m.state.Agent {
		if err := m.assignAgent(events.AssignAgent{AgentID: d.Agent, Reason: "handoff"}); err != nil {
			return err
		}
	}
	x, _ = m.state.execution(d.ExecutionID)
	if len(x.Run.Calls) > x.Run.left(callDone) {
		return m.park(d.ExecutionID, nil)
	}
	return m.closeStep(d.ExecutionID, d.After)
}

func (m *decider) holdCalls(d HoldCalls) error {
	x, err := m.claimed(d.ExecutionID, d.Token)
	if err != nil {
		return err
	}
	if x.Run.Step != d.StepID {
		return events.Invalid("/stepId", "step %s is not open", d.StepID)
	}
	for _, a := range d.Approve {
		m.emit(events.ApprovalRequestedType, a.CallID, d.ExecutionID, a)
	}
	if len(d.Wait) > 0 {
		m.emit(events.RunSuspendedType, d.ExecutionID, d.ExecutionID, events.RunSuspended{Calls: d.Wait})
	}
	return m.park(d.ExecutionID, nil)
}

// park parks a run if every remaining call of its step waits: for a person, for another thread or,
// if it is in unmade, for a process that serves its tool. A stopped run ends instead if only
// people could complete its calls.
func (m *decider) park(execution string, unmade []string) error {
	x, _ := m.state.execution(execution)
	waits := x.Run.waiting()
	if x.Run.due() > len(unmade) || len(waits)+len(unmade) == 0 {
		return nil
	}
	if x.Run.mustEnd() {
		return m.finishStopped(execution)
	}
	m.emit(events.RunParkedType, execution, execution, events.RunParked{Token: x.Run.Token, Calls: waits, Unmade: unmade})
	return nil
}

func (m *decider) failRun(d FailRun) error {
	x, err := m.claimed(d.ExecutionID, d.Token)
	if err != nil {
		return err
	}
	if x.Run.Step != "" && len(d.Parts) > 0 && !x.Run.Reacted {
		if err := m.putParts(d.ExecutionID, x.Run.Step, d.Parts, d.Types); err != nil {
			return err
		}
	}
	m.record(d.ExecutionID, d.Records)
	if x.Run.Stop {
		return m.finishStopped(d.ExecutionID)
	}
	return m.finish(events.SetExecutionStatus{ExecutionID: d.ExecutionID, To: events.ExecutionFailed, ErrorText: errorText(d.ErrorText), ErrorCode: d.ErrorCode})
}

// errorText shortens an error's text to fit its event.
func errorText(text string) string {
	const most = 4096
	if len(text) <= most {
		return excerpt.Head(text, most)
	}
	return excerpt.Of(text, most) + " (" + strconv.Itoa(len(text)) + " bytes)"
}

func (m *decider) resumeCalls(d ResumeCalls) error {
	id, x, err := m.activeRun(d.ExecutionID)
	if err != nil {
		return err
	}
	for _, call := range d.CallIDs {
		if c := x.Run.call(call); c == nil || c.Is != callThread {
			return events.Missing("waiting call", call)
		}
	}
	m.emit(events.RunResumedType, id, id, events.RunResumed{Calls: d.CallIDs})
	return m.unpark(id)
}

func (m *decider) parkRun(d ParkRun) error {
	x, err := m.claimed(d.ExecutionID, d.Token)
	switch {
	case err != nil:
		return err
	case x.Run.mustEnd():
		return m.finishStopped(d.ExecutionID)
	case x.Run.Stop && x.Run.left(callEnded) > 0: // the results of ended calls are recorded first
		return nil
	case x.Run.missingServer() && !x.Run.Stop:
		m.emit(events.RunParkedType, d.ExecutionID, d.ExecutionID, events.RunParked{Token: x.Run.Token, Calls: x.Run.waiting(), Unmade: x.Run.unmade()})
		return nil
	case x.Run.missingReactor() || x.Run.Stop:
		m.emit(events.RunParkedType, d.ExecutionID, d.ExecutionID, events.RunParked{Token: x.Run.Token, Calls: x.Run.waiting()})
		return nil
	case len(d.Unmade) == 0:
		return events.Invalid("/executionId", "execution %s waits neither for its reactor nor for a tool", d.ExecutionID)
	}
	for _, id := range d.Unmade {
		if !x.Run.missingTool(id) {
			return events.Missing("call without a process that serves its tool", id)
		}
	}
	return m.park(d.ExecutionID, d.Unmade)
}

func (m *decider) wakeRun(d WakeRun) error {
	id, x, err := m.activeRun(d.ExecutionID)
	if err != nil {
		return err
	}
	if !x.Run.Parked || x.Run.Stop || !x.Run.missingReactor() && !x.Run.missingServer() && !slices.ContainsFunc(x.Run.Missing, func(w events.WaitFor) bool { return x.Run.missingTool(w.CallID) }) {
		return events.Missing("parked run of execution", d.ExecutionID)
	}
	return m.unpark(id)
}

func (m *decider) recordRun(d RecordRun) error {
	if _, err := m.claimed(d.ExecutionID, d.Token); err != nil {
		return err
	}
	m.record(d.ExecutionID, d.Records)
	return nil
}
