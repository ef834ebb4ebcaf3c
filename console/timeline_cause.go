package console

import (
	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// links finds the cause of each event: the event that it names as its cause, or else the event
// that began its entity.
type links struct {
	byID   map[string]int
	begun  map[string]int // entities by name, with the index of the event that began each
	trails map[events.Type]trail
}

func newLinks() *links {
	return &links{byID: map[string]int{}, begun: map[string]int{}, trails: trails()}
}

// cause returns the index of the event that caused e, and records e, which has index i.
func (l *links) cause(i int, e *events.Event) (int, bool) {
	begins, about := "", e.Subject
	if of, ok := l.trails[e.Type]; ok {
		begins, about = of(e)
	}
	at, ok := l.byID[e.Causation]
	if !ok {
		at, ok = l.begun[about]
	}
	l.byID[e.ID] = i
	if begins != "" {
		l.begun[begins] = i
	}
	return at, ok
}

// trail names the entities that an event begins, and the entity that the event follows from.
type trail func(e *events.Event) (begins, about string)

// trails has a row for each type of event that begins something, or follows from something other
// than its subject.
func trails() map[events.Type]trail {
	return map[events.Type]trail{
		events.ItemCreatedType:      of(itemTrail),
		events.ContextCreatedType:   func(e *events.Event) (begins, about string) { return e.Subject, "" },
		events.ExecutionCreatedType: of(func(d events.ExecutionCreated) (begins, about string) { return d.ID, d.TriggerItemID }),
		events.StepCreatedType:      of(func(d events.StepCreated) (begins, about string) { return d.ID, d.ExecutionID }),
		events.PartCreatedType:      of(func(d events.PartCreated) (begins, about string) { return d.Key, d.StepID }),
		events.PartUpdatedType:      of(func(d events.PartUpdated) (begins, about string) { return "", d.Key }),
		events.ApprovalRequestedType: of(func(d events.ApprovalRequested) (begins, about string) {
			return "approval " + d.CallID, "call " + d.CallID
		}),
		events.ApprovalGrantedType:  of(func(d events.ApprovalGranted) (begins, about string) { return "", "approval " + d.CallID }),
		events.ApprovalDeniedType:   of(func(d events.ApprovalDenied) (begins, about string) { return "", "approval " + d.CallID }),
		events.ApprovalResolvedType: of(func(d events.ApprovalResolved) (begins, about string) { return "", "approval " + d.CallID }),
		events.RunSuspendedType: of(func(d events.RunSuspended) (begins, about string) {
			return "wait " + first(d.Calls), "call " + first(d.Calls)
		}),
		events.RunResumedType:      of(func(d events.RunResumed) (begins, about string) { return "", "wait " + first(d.Calls) }),
		events.RunParkedType:       of(func(d events.RunParked) (begins, about string) { return "", "call " + first(d.Calls) }),
		events.RunClaimedType:      func(e *events.Event) (begins, about string) { return "", e.Correlation },
		events.ThreadFinishedType:  of(func(d events.ThreadFinished) (begins, about string) { return "", d.ExecutionID }),
		events.TraceRecordedType:   of(func(d events.TraceRecorded) (begins, about string) { return "", d.ExecutionID }),
		events.EffectScheduledType: func(e *events.Event) (begins, about string) { return e.Subject, "" },
		events.EffectStartedType:   func(e *events.Event) (begins, about string) { return "started " + e.Subject, e.Subject },
		events.EffectCompletedType: func(e *events.Event) (begins, about string) { return "", "started " + e.Subject },
		events.EffectFailedType:    func(e *events.Event) (begins, about string) { return "", "started " + e.Subject },
	}
}

// of returns the trail of an event by its data. Data of an unknown type has none.
func of[D any](names func(D) (begins, about string)) trail {
	return func(e *events.Event) (begins, about string) {
		d, ok := e.Data.(D)
		if !ok {
			return "", e.Subject
		}
		return names(d)
	}
}

// itemTrail links a call and its result; any other item begins what answers it.
func itemTrail(d events.ItemCreated) (begins, about string) {
	switch d.Type {
	case events.ActionExecute:
		return "call " + callOf(d.Content), ""
	case events.ActionResult:
		return d.ID, "call " + callOf(d.Content)
	}
	return d.ID, ""
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
