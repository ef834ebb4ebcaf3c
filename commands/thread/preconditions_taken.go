package thread

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// leaving returns the item that leaves the queue to begin a run; nil if calls join the current
// run.
func (l *Ledger) leaving(e *events.Event, d events.QueueDrained) *events.NewItem {
	if e.Correlation != "" || len(d.IDs) != 1 {
		return nil
	}
	at := slices.IndexFunc(l.state.Queue, func(q queued) bool { return q.ID == d.IDs[0] })
	if at < 0 {
		return nil
	}
	item, err := l.state.Queue[at].item()
	if err != nil {
		return nil
	}
	return &item
}

// leftQueue checks that the item is the one that has just left the queue.
func (r preconditions) leftQueue(d events.ItemCreated) error {
	if r.taken == nil {
		return nil
	}
	return firstFault(
		unless(d.Type == r.taken.Type && d.Role == r.taken.Role, "what waited is a %s of %.40q, and not a %s of %.40q", r.taken.Type, r.taken.Role, d.Type, d.Role),
		unless(events.EqualJSON(d.Content, r.taken.Content), "its content is not that of what waited"),
	)
}

// forked checks the relationship that a fork records to its origin.
func (r preconditions) forked(d events.RelationshipAdded) error {
	if d.Type != events.ForkRelation || d.Role != events.ChildRole || r.origin == nil {
		return nil
	}
	point := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	return firstFault(
		unless(d.ThreadID == r.origin.OriginThreadID, "the thread was forked from %.80q", r.origin.OriginThreadID),
		unless(point(d.MessageIndex) == point(r.origin.ForkPointIndex), "the thread was forked at message %d, and not at %d", point(r.origin.ForkPointIndex), point(d.MessageIndex)),
	)
}

// callInPart holds the fields of a part that concern its call.
type callInPart struct {
	Type   string      `json:"type"`
	CallID string      `json:"toolCallId"`
	Output events.JSON `json:"output"`
}

func callIn(part events.JSON) (c callInPart) {
	_ = json.Unmarshal(part, &c) // a part may be anything
	return c
}

// callPart checks a part of a run's open step against its type and its call.
func (r preconditions) callPart(step string, idx int64, kind string, part events.JSON) error {
	t, _ := r.state.step(step)
	x, _ := r.state.execution(t.Execution)
	if x.Run == nil || x.Run.Step != step {
		return nil
	}
	in := callIn(part)
	faults := []error{unless(in.Type == "" || in.Type == kind, "the part is a %.80q, and not a %.80q", in.Type, kind)}
	for _, c := range x.Run.Calls {
		if c.Idx == idx {
			faults = append(faults,
				unless(kind == ToolPart+c.Name, "the part is of call %.80q of the tool %.80q", c.ID, c.Name),
				unless(in.CallID == c.ID, "the part is of call %.80q, and not of %.80q", c.ID, in.CallID))
		}
	}
	return firstFault(faults...)
}

// callItem checks the item of a run's call, or of its result, against the open step.
func (r preconditions) callItem(e *events.Event, d events.ItemCreated) error {
	x, _ := r.state.execution(e.Correlation)
	if x.Run == nil || x.Run.Step == "" {
		return nil
	}
	switch d.Type {
	case events.ActionExecute:
		var call events.ToolCall
		if json.Unmarshal(d.Content, &call) != nil || d.CallOf == nil {
			return nil
		}
		c := x.Run.call(call.CallID)
		if c == nil { // a tool that the caller of the run executes is no call of the step
			return unless(x.Run.Settings != nil, "call %.80q is none of the open step", call.CallID)
		}
		return unless(c.Name == call.Name, "call %.80q is of the tool %.80q, and not of %.80q", c.ID, c.Name, call.Name)
	case events.ActionResult:
		if r.before == nil || r.before.Correlation != e.Correlation {
			return nil
		}
		put, ok := r.before.Data.(events.PartUpdated)
		var result events.CallResult
		if !ok || put.StepID != x.Run.Step || json.Unmarshal(d.Content, &result) != nil {
			return nil
		}
		in := callIn(put.Part)
		return firstFault(
			unless(result.CallID == in.CallID, "it is the result of call %.80q, and its part of %.80q", result.CallID, in.CallID),
			unless(result.Name == "" || ToolPart+result.Name == put.Type, "it is a result of the tool %.80q, and its part a %.80q", result.Name, put.Type),
			unless(d.OutputOf != "" || in.Output == nil || result.Output == nil || events.EqualJSON(result.Output, in.Output), "its output is not that of its part"),
		)
	}
	return nil
}
