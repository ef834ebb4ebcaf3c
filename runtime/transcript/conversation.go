package transcript

import (
	"github.com/go-json-experiment/json/jsontext"

	"context"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/chat"
	"github.com/skein-threads/skein/runtime"
)

// Conversation is a script of several turns: what was once said, said again.
type Conversation struct {
	turns   [][]Step
	said    []string // by the user, turn by turn
	results map[string]runtime.ToolResult
	names   []string // of tools, in the order of their first call
}

// FromConversation makes a script of a conversation. Each message of a user
// begins a turn; each of the assistant's after it is a step. An id of a call that
// the conversation uses again becomes a new one, made of its place.
func FromConversation(c *chat.Conversation) *Conversation {
	out := &Conversation{results: map[string]runtime.ToolResult{}}
	used := map[string]string{} // ids as they are now, by what they were last
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

// Said gives what the user says, turn by turn.
func (c *Conversation) Said() []string { return c.said }

// Steps gives the steps of a turn, from 0.
func (c *Conversation) Steps(turn int) []Step { return c.turns[turn] }

// Reactor gives the reactor that says what the assistant said. The turn is as
// many as the thread's context has messages of a user. A turn in which the
// assistant said nothing is answered with nothing.
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

// Tools gives the tools that the conversation calls. They answer as they did, by
// the id of the call, and are idempotent.
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

// plain gives the text of a JSON value: a string's own, of anything else the JSON.
func plain(v events.JSON) string {
	var s string
	if jsontext.Value(v).Kind() == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}
