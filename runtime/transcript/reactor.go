package transcript

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// Step is the answer of a script to one step.
type Step struct {
	Parts []events.JSON // each an object with a type
	Calls []runtime.ToolCall
	Usage *runtime.Usage
	Err   error // instead of an answer
}

// Text returns a step with a text and calls.
func Text(text string, calls ...runtime.ToolCall) Step {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return Step{Err: fmt.Errorf("the script's text is not UTF-8: %w", err)}
	}
	return Step{Parts: []events.JSON{events.JSON(`{"type":"output_text","text":` + string(quoted) + `}`)}, Calls: calls}
}

// Fixed returns a reactor that answers every execution with the same steps, the first
// to iteration 0. A step beyond the last is a final error.
func Fixed(steps ...Step) runtime.Reactor {
	return Chosen(func(*runtime.StepInput) ([]Step, error) { return steps, nil })
}

// Chosen returns a reactor whose script is chosen for each step; the same input must
// choose the same script.
func Chosen(choose func(in *runtime.StepInput) ([]Step, error)) runtime.Reactor {
	return runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
		steps, err := choose(in)
		if err != nil {
			return nil, err
		}
		if in.Iteration < 0 || in.Iteration >= int64(len(steps)) {
			return nil, fmt.Errorf("the script has %d steps; there is none for iteration %d", len(steps), in.Iteration)
		}
		s := &steps[in.Iteration]
		if s.Err != nil {
			return nil, s.Err
		}
		s.stream(in.ItemID, out)
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		content := s.Parts
		if content == nil {
			content = []events.JSON{}
		}
		return &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: content}, ToolCalls: s.Calls, Usage: s.Usage}, nil
	})
}

// Trigger returns the text of the latest message of a user, which the step answers; ""
// if there is none.
func Trigger(in *runtime.StepInput) string {
	for i := len(in.Items) - 1; i >= 0; i-- {
		if in.Items[i].Type != events.Message || in.Items[i].Role != events.User {
			continue
		}
		var parts []textPart
		if json.Unmarshal(in.Items[i].Content, &parts) != nil {
			return ""
		}
		var text string
		for _, p := range parts {
			text += p.Text
		}
		return text
	}
	return ""
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// pieceLetters is how many characters of a text one chunk has.
const pieceLetters = 24

type (
	delta struct {
		ID    string `json:"id"`
		Delta string `json:"delta"`
	}
	toolInput struct {
		ToolCallID string      `json:"toolCallId"`
		ToolName   string      `json:"toolName"`
		Input      events.JSON `json:"input,omitzero"`
	}
)

// stream streams the step's texts in pieces, and its calls.
func (s *Step) stream(id string, out runtime.Stream) {
	if out == nil {
		return
	}
	send := func(kind string, data any) {
		if raw, err := json.Marshal(data); err == nil { // texts of valid JSON: cannot fail
			out.Chunk(runtime.Chunk{Type: kind, Data: raw})
		}
	}
	for _, raw := range s.Parts {
		var p textPart
		kind := runtime.ChunkTextDelta
		switch err := json.Unmarshal(raw, &p); {
		case err != nil:
			continue
		case p.Type == events.Reasoning:
			kind = runtime.ChunkReasoningDelta
		case p.Type != events.OutputText:
			continue
		}
		for _, piece := range pieces(p.Text) {
			send(kind, delta{id, piece})
		}
	}
	for _, c := range s.Calls {
		send(runtime.ChunkToolInput, toolInput{c.CallID, c.Name, c.Arguments})
	}
}

// pieces splits a text every pieceLetters letters.
func pieces(text string) []string {
	var out []string
	for from, n := 0, 0; ; {
		at := len(text)
		n = 0
		for i := range text[from:] {
			if n == pieceLetters {
				at = from + i
				break
			}
			n++
		}
		if at > from {
			out = append(out, text[from:at])
		}
		if at == len(text) {
			return out
		}
		from = at
	}
}
