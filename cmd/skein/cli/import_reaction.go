package cli

import (
	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/openaichat"
)

// reaction plans the steps of one execution, and the item that they write.
type reaction struct {
	*planner
	turn      *turn
	execution string
	item      string
	parts     int  // of the item so far
	made      bool // the item
}

// step plans one assistant message. What it writes does not depend on the steps before it.
func (r *reaction) step(s *step, iteration int, more bool) {
	for _, m := range s.before {
		r.note(m)
	}
	id, m := r.stepID(s), s.answer
	r.at = m.Index
	number := int64(iteration)
	r.add("step.create", events.CreateStep{ID: id, ExecutionID: r.execution, Iteration: &number})
	base := r.parts
	for i, part := range m.Content {
		r.put(id, i, part)
	}
	asked := make([]events.JSON, len(m.Calls))
	for i, c := range m.Calls {
		asked[i] = object("callId", c.ID, "name", c.Name, "arguments", c.Arguments)
		r.put(id, len(m.Content)+i, callPart(c))
	}
	edits := r.write(s)
	for i := range m.Calls {
		r.callItem(m, i, r.item)
	}
	outcome := events.SetStepStatus{StepID: id, To: events.StepCompleted, ContinueLoop: &more}
	var answered []events.JSON
	missing := map[int]bool{}
	for i := range m.Calls {
		missing[i] = true
	}
	for _, done := range s.results { // merged into the same part
		delete(missing, done.call)
		c, out := m.Calls[done.call], done.message
		state := "output-available"
		if out.IsError {
			state = "output-error"
		}
		part := object("type", openaichat.ToolPart+c.Name, "toolCallId", c.ID, "state", state, "input", c.Arguments, "output", out.Output)
		r.resultItem(out, c.Name, r.item)
		idx := len(m.Content) + done.call
		r.put(id, idx, part)
		edits = replaced(edits, base+idx, part)
		answered = append(answered, object("callId", c.ID, "name", c.Name, "output", out.Output, "isError", out.IsError))
	}
	for i, c := range m.Calls {
		if !missing[i] {
			continue
		}
		idx := len(m.Content) + i
		part := events.FailedCall(callPart(c), events.CallUnknown)
		r.put(id, idx, part)
		edits = replaced(edits, base+idx, part)
	}
	r.edit(edits)
	outcome.ToolCalls, outcome.ToolExecutionResults = list(asked), list(answered)
	r.add("step.status", outcome)
}

func callPart(c openaichat.Call) events.JSON {
	return object("type", openaichat.ToolPart+c.Name, "toolCallId", c.ID, "input", c.Arguments)
}

// write adds the parts of a step to the item. The first step's make the item, as far as its event
// holds them; the others are returned, to be put into it when the results are known.
func (r *reaction) write(s *step) (edits []events.PartEdit) {
	parts := s.answer.Content
	for _, c := range s.answer.Calls {
		parts = append(parts[:len(parts):len(parts)], callPart(c))
	}
	first := 0
	if !r.made {
		for size := 0; first < len(parts) && size+len(parts[first]) < editBytes; first++ {
			size += len(parts[first]) + 1
		}
		r.made = true
		r.planner.item(events.NewItem{
			ID: r.item, Type: events.Message, Role: events.Assistant, Status: events.ItemPending, Content: list(parts[:first]), CreatedAt: s.answer.At,
		})
	}
	for i := first; i < len(parts); i++ {
		edits = append(edits, events.PartEdit{Place: new(int64(r.parts + i)), Part: parts[i]})
	}
	r.parts += len(parts)
	return edits
}

// replaced puts a part into a list of edits, in place of one that has the same place.
func replaced(edits []events.PartEdit, place int, part events.JSON) []events.PartEdit {
	for i := range edits {
		if *edits[i].Place == int64(place) {
			edits[i].Part = part
			return edits
		}
	}
	return append(edits, events.PartEdit{Place: new(int64(place)), Part: part})
}

// editBytes is how many bytes of parts one event of the item holds: the event around them stays
// within its limit.
const editBytes = events.MaxEventBytes - 4096

// edit puts parts into the item, in as many commands as they need.
func (r *reaction) edit(edits []events.PartEdit) {
	for len(edits) > 0 {
		n, size := 1, len(edits[0].Part)
		for n < len(edits) && size+len(edits[n].Part)+64 <= editBytes {
			size += len(edits[n].Part) + 64
			n++
		}
		r.add("message.edit", events.EditMessage{ItemID: r.item, Parts: edits[:n]})
		edits = edits[n:]
	}
}

func (r *reaction) put(step string, idx int, part events.JSON) {
	n := int64(idx)
	r.add("part.put", events.PutPart{StepID: step, ExecutionID: r.execution, Idx: &n, Type: partType(part), Part: part})
}

// partType returns the type of a part.
func partType(part events.JSON) string {
	var p struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(part, &p) // it was checked when it was read
	return p.Type
}
