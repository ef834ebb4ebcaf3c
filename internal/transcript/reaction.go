package transcript

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/chat"
)

// reaction plans the steps of one execution, and the item that they write.
type reaction struct {
	*planner
	turn      *turn
	execution string
	item      string
	parts     []piece // of all steps so far
	made      bool    // the item
}

// piece is a part of the reaction: as its step has it, and without what could be
// large.
type piece struct{ full, short events.JSON }

// step plans one assistant message.
func (r *reaction) step(s *step, iteration int, more bool) {
	for _, m := range s.before {
		r.note(m)
	}
	id, m := r.stepID(s), s.answer
	r.at = m.Index
	number := int64(iteration)
	r.add("step.create", events.CreateStep{ID: id, ExecutionID: r.execution, Iteration: &number})
	for i, part := range m.Content {
		r.put(id, i, part)
		r.parts = append(r.parts, piece{part, part})
	}
	calls := len(r.parts) // where the parts of the calls begin
	for i, c := range m.Calls {
		part := object("type", chat.ToolPart+c.Name, "toolCallId", c.ID, "input", c.Arguments)
		r.put(id, len(m.Content)+i, part)
		r.parts = append(r.parts, piece{part, object("type", chat.ToolPart+c.Name, "toolCallId", c.ID, "elided", true)})
	}
	fresh := !r.made
	if fresh {
		r.made = true
		r.planner.item(events.NewItem{
			ID: r.item, Type: events.Message, Role: events.Assistant, Status: events.ItemPending, Content: r.content(),
		})
	}
	for i := range m.Calls {
		r.callItem(m, i, r.item)
	}
	outcome := events.SetStepStatus{StepID: id, To: events.StepCompleted, ContinueLoop: &more}
	var asked, answered []events.JSON
	for _, c := range m.Calls {
		asked = append(asked, object("callId", c.ID, "name", c.Name, "arguments", c.Arguments))
	}
	for _, done := range s.results { // merged into the same part
		c, out := m.Calls[done.call], done.message
		state := "output-available"
		if out.IsError {
			state = "output-error"
		}
		part := object("type", chat.ToolPart+c.Name, "toolCallId", c.ID, "state", state, "input", c.Arguments, "output", out.Output)
		r.resultItem(out, c.Name, r.item)
		r.put(id, len(m.Content)+done.call, part)
		r.parts[calls+done.call] = piece{part, object("type", chat.ToolPart+c.Name, "toolCallId", c.ID, "state", state, "elided", true)}
		answered = append(answered, object("callId", c.ID, "name", c.Name, "output", out.Output, "isError", out.IsError))
	}
	if !fresh || len(s.results) > 0 {
		r.add("message.edit", events.EditMessage{ItemID: r.item, Content: r.content()})
	}
	outcome.ToolCalls, outcome.ToolExecutionResults = list(asked), list(answered)
	r.add("step.status", outcome)
}

func (r *reaction) put(step string, idx int, part events.JSON) {
	n := int64(idx)
	r.add("part.put", events.PutPart{StepID: step, ExecutionID: r.execution, Idx: &n, Type: partType(part), Part: part})
}

// reactionBytes is the most that a reaction's content takes, so that the event
// around it stays within its limit.
const reactionBytes = events.MaxEventBytes - 4096

// content returns the reaction's parts. If they are too large, the oldest calls are shown
// without their inputs and outputs.
func (r *reaction) content() events.JSON {
	size := 2
	for _, p := range r.parts {
		size += len(p.full) + 1
	}
	shown := make([]events.JSON, len(r.parts))
	for i, p := range r.parts {
		shown[i] = p.full
		if size > reactionBytes {
			shown[i] = p.short
			size -= len(p.full) - len(p.short)
		}
	}
	if size > reactionBytes && r.err == nil {
		r.err = fmt.Errorf("message %d: the answers of its turn have %d bytes; at most %d are taken", r.turn.trigger.Index+1, size, reactionBytes)
	}
	return list(shown)
}

// partType returns the type of a part.
func partType(part events.JSON) string {
	var p struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(part, &p) // it was checked when it was read
	return p.Type
}
