package transcript

import (
	"github.com/go-json-experiment/json/jsontext"

	"context"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/openaichat"
	"github.com/skein-threads/skein/runtime"
)

// Conversation is a recorded conversation of several turns, as a script.
type Conversation struct {
	turns   [][]Step
	said    []string // of the user, by turn
	results map[string]runtime.ToolResult
	names   []string // of tools, in the order of their first call
}

// FromConversation returns the script of a conversation. Each message of a user starts
// a turn; each of the assistant's after it is a step. If the conversation uses the id
// of a call again, it is replaced by one derived from its position.
func FromConversation(c *openaichat.Conversation) *Conversation {
	out := &Conversation{results: map[string]runtime.ToolResult{}}
	used := map[string]string{} // current ids, by the original ones
	taken, known := map[string]bool{}, map[string]bool{}
	for i := range c.Messages {
		m := &c.Messages[i]
		switch {
		case m.Role == events.User:
			out.turns = append(out.turns, nil)
			out.said = append(out.said, textOf(m.Content))
		case m.Result:
			result := runtime.Done(m.Output)
			if m.IsError {
				result = runtime.Failed(plain(m.Output))
			}
			out.results[used[m.CallID]] = result
		case m.Role == events.Assistant && len(out.turns) > 0:
			s := Step{Parts: m.Content}
			for _, call := range m.Calls {
				id := call.ID
				for taken[id] {
					id += "-" + strconv.Itoa(m.Index)
				}
				used[call.ID], taken[id] = id, true
				s.Calls = append(s.Calls, runtime.ToolCall{CallID: id, Name: call.Name, Arguments: call.Arguments})
				if !known[call.Name] {
					known[call.Name] = true
					out.names = append(out.names, call.Name)
				}
			}
			last := len(out.turns) - 1
			out.turns[last] = append(out.turns[last], s)
		}
	}
	return out
}

// Said returns the messages of the user, by turn.
func (c *Conversation) Said() []string { return c.said }

// Steps returns the steps of a turn, from 0.
func (c *Conversation) Steps(turn int) []Step { return c.turns[turn] }

// Reactor returns a reactor that repeats what the assistant said. The number of user
// messages in the thread's context selects the turn. A turn without an answer of the
// assistant has an empty answer.
func (c *Conversation) Reactor() runtime.Reactor {
	return Chosen(func(in *runtime.StepInput) ([]Step, error) {
		turn := 0
		for i := range in.Items {
			if in.Items[i].Type == events.Message && in.Items[i].Role == events.User {
				turn++
			}
		}
		switch {
		case turn < 1 || turn > len(c.turns):
			return nil, fmt.Errorf("the conversation has %d turns; there is none with the number %d", len(c.turns), turn)
		case len(c.turns[turn-1]) == 0:
			return []Step{{}}, nil
		}
		return c.turns[turn-1], nil
	})
}

// Tools returns the tools that the conversation calls. They return the recorded
// results, by the id of the call, and are idempotent.
func (c *Conversation) Tools() []runtime.Tool {
	out := make([]runtime.Tool, len(c.names))
	for i, name := range c.names {
		out[i] = recorded{name, c.results}
	}
	return out
}

type recorded struct {
	name    string
	results map[string]runtime.ToolResult
}

func (r recorded) Spec() runtime.ToolSpec {
	return runtime.ToolSpec{Name: r.name, Description: "Answers as it did.", Idempotent: true}
}

func (r recorded) Call(_ context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
	result, ok := r.results[in.CallID]
	if !ok {
		return runtime.Failed("the conversation has no result of the call " + in.CallID), nil
	}
	return result, nil
}

func textOf(parts []events.JSON) string {
	var text string
	for _, raw := range parts {
		var p textPart
		if json.Unmarshal(raw, &p) == nil {
			text += p.Text
		}
	}
	return text
}

// plain returns the text of a JSON value: that of a string, and the JSON of anything
// else.
func plain(v events.JSON) string {
	var s string
	if jsontext.Value(v).Kind() == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}
