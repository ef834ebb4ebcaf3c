package runview

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// call is a call of a tool, as far as it is shown.
type call struct {
	Call
	place    int  // in its step; 0: it was taken back
	started  bool // CallStarted was returned
	ready    bool // CallReady was returned
	recorded bool // its part is known
	waits    bool // for a person
	request  events.ApprovalRequested
	denied   bool // by a person
	ended    bool // its outcome was returned
}

// answeredCall returns the call that an event says a person has answered, "" if none.
func answeredCall(e *events.Event) string {
	switch d := e.Data.(type) {
	case events.ApprovalGranted:
		return d.CallID
	case events.ApprovalDenied:
		return d.CallID
	case events.ApprovalResolved:
		return d.CallID
	}
	return ""
}

// callStarted shows that a model begins to write a call.
func (v *View) callStarted(s *step, id, name string) []Frame {
	if v.calls[id] != nil || id == "" || name == "" {
		return nil
	}
	c := v.newCall(s, id)
	c.Name, c.started = name, true
	return []Frame{CallStarted{c.Call}}
}

func (v *View) newCall(s *step, id string) *call {
	c := &call{Call: Call{StepID: s.ID, ID: id}}
	v.calls[id] = c
	s.put(c)
	return c
}

// put places a call after what the step has shown.
func (s *step) put(c *call) {
	c.place = s.nextPlace()
	s.begun = append(s.begun, c.ID)
}

// callDelta shows more of the arguments of a call.
func (v *View) callDelta(s *step, id, delta string) []Frame {
	c := v.calls[id]
	if c == nil || !c.started || c.ready || delta == "" || s.again {
		return nil
	}
	return []Frame{CallDelta{c.Call, delta}}
}

// callWritten shows that a model has written a call. Of a step that has streamed nothing before, the
// parts have the order.
func (v *View) callWritten(s *step, written Call) []Frame {
	if c := v.calls[written.ID]; c != nil && c.ready || s.places == 0 || written.ID == "" {
		return nil
	}
	return []Frame{CallWritten{written}}
}

// callPart shows a call that is recorded, and its outcome if there is one. It reports false if the
// call was shown in another place.
func (v *View) callPart(s *step, p *Part, raw events.JSON) (out []Frame, same bool) {
	if p.ToolCallID == "" {
		return nil, true
	}
	c := v.calls[p.ToolCallID]
	if c == nil || c.StepID != s.ID { // an id is unique in its step
		c = v.newCall(s, p.ToolCallID)
	} else if c.place == 0 { // the step is shown again
		s.put(c)
	}
	c.Part = raw
	if c.Name = Tool(p.Type); !c.recorded {
		if c.recorded, c.ended = true, false; !v.inOrder(s, c.place) {
			return nil, false
		}
	}
	if !c.ready {
		if c.ready = true; c.Input == nil {
			c.Input = p.Input
		}
		if out = append(out, CallReady{Call: c.Call}); c.waits && (c.Question || !v.history) {
			out = append(out, Asked{c.Call, c.request})
		}
	}
	if c.ended {
		return out, true
	}
	switch {
	case c.denied:
		c.ended = true
		out = append(out, CallDenied{c.Call})
	case p.State == ResultState:
		c.ended, c.Output = true, p.Output
		out = append(out, CallResult{c.Call})
	case p.State == ErrorState:
		c.ended, c.Error = true, p.Failure()
		out = append(out, CallFailed{c.Call})
	}
	return out, true
}

// dropped ends the calls of a step that a model began to write and that were never made.
func (v *View) dropped(s *step) []Frame {
	var out []Frame
	for _, id := range s.begun {
		if c := v.calls[id]; c != nil && c.StepID == s.ID && c.started && !c.ready && !c.ended {
			c.ended = true
			out = append(out, CallDropped{c.Call})
		}
	}
	return out
}

func (v *View) approvalRequested(d events.ApprovalRequested) []Frame {
	c := v.calls[d.CallID]
	if c == nil || !c.ready {
		return nil
	}
	s := v.steps[c.StepID]
	s.settled = true // people are asked when all of the answer is recorded
	out := append(v.surplus(s), v.dropped(s)...)
	c.waits, c.request, c.Question = true, d, d.Reason == events.ApprovalQuestion
	if v.history && !c.Question {
		if !v.quiet && !slices.Contains(v.asked, c) {
			v.asked = append(v.asked, c)
		}
		return out
	}
	return append(out, Asked{c.Call, d})
}

// approvalGranted shows the arguments that a person has changed. Otherwise what is shown of the call
// stays until its outcome.
func (v *View) approvalGranted(d events.ApprovalGranted) []Frame {
	c := v.calls[d.CallID]
	if c == nil || !c.waits {
		return nil
	}
	if c.waits = false; d.Arguments == nil {
		return nil
	}
	c.Input = d.Arguments
	return []Frame{CallReady{Call: c.Call, Changed: true}}
}

func (v *View) approvalDenied(d events.ApprovalDenied) []Frame {
	c := v.calls[d.CallID]
	if c == nil || !c.waits {
		return nil
	}
	c.waits, c.denied, c.ended = false, true, true
	return []Frame{CallDenied{c.Call}}
}
