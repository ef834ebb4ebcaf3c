package console

import (
	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// links finds which event led to which: by the cause that an event names, or else by what it is
// about.
type links struct {
	byID map[string]int
	made map[string]int // what later events may be about, by its name: the event that began it
}

func newLinks() *links { return &links{byID: map[string]int{}, made: map[string]int{}} }

// cause returns the place of the event that led to e, which stands at place i, and remembers e.
func (l *links) cause(i int, e *events.Event) (int, bool) {
	at, ok := l.byID[e.Causation]
	if !ok {
		at, ok = l.made[about(e)]
	}
	l.byID[e.ID] = i
	if name := begins(e); name != "" {
		l.made[name] = i
	}
	return at, ok
}

// begins returns the name of what begins with an event.
func begins(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.ItemCreated:
		if d.Type == events.ActionExecute {
			return "call " + callOf(d.Content)
		}
		return d.ID
	case events.ExecutionCreated:
		return d.ID
	case events.StepCreated:
		return d.ID
	case events.ContextCreated:
		return e.Subject
	case events.PartCreated:
		return d.Key
	case events.ApprovalRequested:
		return "approval " + d.CallID
	case events.EffectScheduled:
		return d.ID
	case events.EffectStarted:
		return "started " + e.Subject
	case events.RunSuspended:
		return "wait " + first(d.Calls)
	case events.RunParked:
		return "parked " + e.Correlation
	}
	return ""
}

// about returns the name of what an event follows from.
func about(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.ItemCreated:
		if d.Type == events.ActionResult {
			return "call " + callOf(d.Content)
		}
		return ""
	case events.ExecutionCreated:
		return d.TriggerItemID
	case events.StepCreated:
		return d.ExecutionID
	case events.PartCreated:
		return d.StepID
	case events.PartUpdated:
		return d.Key
	case events.ThreadFinished:
		return d.ExecutionID
	case events.TraceRecorded:
		return d.ExecutionID
	case events.EffectCompleted, events.EffectFailed:
		return "started " + e.Subject
	default:
		return aboutRun(e)
	}
}

// aboutRun is about for events of waits, and for changes of what an earlier event began.
func aboutRun(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.ApprovalRequested:
		return "call " + d.CallID
	case events.ApprovalGranted:
		return "approval " + d.CallID
	case events.ApprovalDenied:
		return "approval " + d.CallID
	case events.ApprovalResolved:
		return "approval " + d.CallID
	case events.RunSuspended:
		return "call " + first(d.Calls)
	case events.RunResumed:
		return "wait " + first(d.Calls)
	case events.RunParked:
		return "call " + first(d.Calls)
	case events.RunClaimed:
		return e.Correlation
	}
	return e.Subject
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// callOf returns the call that an item is about.
func callOf(content events.JSON) string {
	var c struct {
		CallID string `json:"callId"`
	}
	_ = json.Unmarshal(content, &c) // the content was validated when it was stored
	return c.CallID
}
