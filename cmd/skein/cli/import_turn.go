package cli

import (
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/openaichat"
)

// turn is a user message and what came of it. A turn without a trigger holds
// what was said before the first user message, or after the last answer.
type turn struct {
	before  []*openaichat.Message // what stands before the trigger and belongs to no execution
	trigger *openaichat.Message
	steps   []*step
}

// step is an assistant message, and the results of its calls in the order in
// which they came.
type step struct {
	before  []*openaichat.Message // system messages
	answer  *openaichat.Message
	results []result
}

type result struct {
	call    int // the place in the answer's calls
	message *openaichat.Message
}

// turns splits a conversation.
func turns(c *openaichat.Conversation) []*turn {
	type callPlace struct {
		step *step // nil: the call stands outside of any execution
		call int
	}
	var out []*turn
	var notes []*openaichat.Message // what waits for the next step or turn
	open := map[string]callPlace{}
	for i := range c.Messages {
		m := &c.Messages[i]
		var now *turn
		if len(out) > 0 {
			now = out[len(out)-1]
		}
		switch {
		case m.Role == events.User:
			out = append(out, &turn{before: notes, trigger: m})
			notes = nil
		case m.Role == events.Assistant && now != nil:
			s := &step{before: notes, answer: m}
			notes = nil
			now.steps = append(now.steps, s)
			for n, call := range m.Calls {
				open[call.ID] = callPlace{s, n}
			}
		case m.Result && open[m.CallID].step != nil:
			at := open[m.CallID]
			at.step.results = append(at.step.results, result{at.call, m})
		default:
			notes = append(notes, m)
		}
	}
	if len(notes) > 0 {
		out = append(out, &turn{before: notes})
	}
	return out
}
