package model_test

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

// chat is a codec of the core of Chat Completions: a protocol without items, whose answers come as
// deltas alone, end with a reason, and then say their usage.
type chat struct{}

func (chat) Protocol() model.Protocol {
	return model.Protocol{
		Name: "Chat Completions", Path: "/chat/completions", LastName: "a finish_reason", Provider: "chat", Setting: "CHAT",
		Params:    model.Rules{Usual: []string{"temperature"}, Own: []string{"model", "messages", "stream"}},
		Authorize: func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) },
		Returns:   func(openresponses.Item) bool { return false },
	}
}

type chatCall struct {
	Index    int64  `json:"index"`
	ID       string `json:"id,omitzero"`
	Type     string `json:"type,omitzero"`
	Function struct {
		Name      string `json:"name,omitzero"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatMessage struct {
	Role      string      `json:"role"`
	Content   events.JSON `json:"content,omitzero"`
	Reasoning string      `json:"reasoning_content,omitzero"`
	Calls     []chatCall  `json:"tool_calls,omitempty"`
	CallID    string      `json:"tool_call_id,omitzero"`
}

func (chat) Encode(t *model.Turn) (*model.Request, error) {
	var messages []chatMessage
	reasoning, answers := "", []chatMessage(nil)
	flush := func() { messages, answers = append(messages, answers...), nil }
	for _, item := range t.Items {
		switch i := item.(type) {
		case model.Message:
			flush()
			said := ""
			for _, p := range i.Parts {
				if p.Text != nil {
					said += *p.Text
				}
			}
			messages = append(messages, chatMessage{Role: string(i.Role), Content: events.Quote(said)})
		case model.Reasoning:
			flush()
			var parts []struct{ Text string }
			if json.Unmarshal(i.Content, &parts, json.MatchCaseInsensitiveNames(true)) == nil && len(parts) > 0 {
				reasoning = parts[0].Text
			}
		case model.Call: // calls in a row are one message, before the results of all of them
			if len(answers) == 0 {
				messages = append(messages, chatMessage{Role: "assistant", Reasoning: reasoning})
				reasoning = ""
			}
			last := &messages[len(messages)-1]
			call := chatCall{Index: int64(len(last.Calls)), ID: i.ID, Type: "function"}
			call.Function.Name, call.Function.Arguments = i.Name, i.Arguments
			last.Calls = append(last.Calls, call)
		case model.Result:
			answers = append(answers, chatMessage{Role: "tool", CallID: i.CallID, Content: i.Output})
		}
	}
	flush()
	f := struct {
		Model       string        `json:"model"`
		Messages    []chatMessage `json:"messages"`
		Temperature *float64      `json:"temperature,omitzero"`
		Stream      bool          `json:"stream"`
	}{t.Model, messages, t.Temperature, true}
	if err := t.Take(model.Field{Name: "temperature", Into: &f.Temperature}); err != nil {
		return nil, err
	}
	shown, err := json.Marshal(messages)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(f)
	return &model.Request{Body: body, Shown: shown}, err
}

type chatChunk struct {
	Error   events.JSON `json:"error"`
	Choices []struct {
		Delta struct {
			Content   string     `json:"content"`
			Reasoning string     `json:"reasoning_content"`
			Calls     []chatCall `json:"tool_calls"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	} `json:"usage"`
}

func (chat) Decode(out *model.Output) model.Decoder {
	const reasoning, text, first = 0, 1, 2 // places: reasoning, the text, and the calls
	calls := map[int64]*chatCall{}
	return func(e model.Event) (last bool, err error) {
		if e.Over() {
			return true, nil
		}
		var c chatChunk
		if err := json.Unmarshal(e, &c); err != nil {
			return false, model.Unreadable(err.Error())
		}
		if c.Error != nil {
			return false, chat{}.Protocol().Failure(events.JSON(e))
		}
		if c.Usage != nil {
			out.Usage(runtime.Usage{InputTokens: c.Usage.Prompt, OutputTokens: c.Usage.Completion})
		}
		for _, choice := range c.Choices {
			if d := choice.Delta; d.Reasoning != "" {
				out.Reasoning(reasoning, "", d.Reasoning)
			}
			if d := choice.Delta; d.Content != "" {
				out.Text(text, "", d.Content)
			}
			for _, piece := range choice.Delta.Calls {
				at := first + piece.Index
				if calls[at] == nil {
					calls[at] = &piece
					out.BeginCall(at, piece.ID, piece.Function.Name)
				} else {
					calls[at].Function.Arguments += piece.Function.Arguments
				}
				out.Arguments(at, piece.Function.Arguments)
			}
			if choice.Finish == "" {
				continue
			}
			for at, call := range calls {
				out.EndCall(at, call.ID, call.Function.Name, call.Function.Arguments)
				item, err := json.Marshal(openresponses.Item{Type: "function_call", CallID: call.ID, Name: call.Function.Name, Arguments: &call.Function.Arguments})
				if err != nil {
					return false, err
				}
				out.Item(at, item)
			}
			finish := ""
			if choice.Finish == "length" {
				finish = events.FinishLength
			}
			out.End(finish)
		}
		return false, nil
	}
}
