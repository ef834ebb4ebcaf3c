package chat

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

// Codec is the codec of the Chat Completions protocol.
type Codec struct{}

// Protocol implements model.Codec.
func (Codec) Protocol() model.Protocol {
	return model.Protocol{
		Name: "Chat Completions", Path: "/chat/completions", EmbeddingsPath: "/embeddings", LastName: "a finish_reason", TooLong: "context_length_exceeded", Steps: true, Stops: true,
		Params: model.Rules{
			Usual: []string{
				"frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_output_tokens", "max_tokens", "parallel_tool_calls", "presence_penalty", "reasoning",
				"reasoning_effort", "response_format", "safety_identifier", "seed", "stop", "temperature", "text", "tool_choice", "top_k", "top_logprobs", "top_p", "verbosity",
			},
			Own: []string{"messages", "model", "n", "stream", "stream_options"},
		},
		Provider: "chat", Setting: "SKEIN_CHAT",
		Authorize: func(h http.Header, key string) {
			if key != "" {
				h.Set("Authorization", "Bearer "+key)
			}
		},
		Returns: func(openresponses.Item) bool { return false },
	}
}

// fields are the fixed fields of a request; the model's params come alongside.
type fields struct {
	Model       string        `json:"model"`
	Messages    events.JSON   `json:"messages"`
	Tools       []events.JSON `json:"tools,omitempty"`
	MaxTokens   int64         `json:"max_tokens,omitzero"`
	Temperature *float64      `json:"temperature,omitzero"`

	Params map[string]events.JSON `json:",embed"`
}

type function struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitzero"`
	Parameters  events.JSON `json:"parameters"`
	Strict      bool        `json:"strict,omitzero"`
}

type functionTool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

// Encode implements model.Codec.
func (Codec) Encode(t *model.Turn) (*model.Request, error) {
	if err := translate(t); err != nil {
		return nil, err
	}
	tools, err := t.EncodeTools(func(tool runtime.ToolSpec) any {
		return functionTool{"function", function{tool.Name, tool.Description, tool.Parameters, tool.Strict}}
	}, model.Field{Name: "max_tokens", Into: &t.MaxOutputTokens})
	if err != nil {
		return nil, err
	}
	f := fields{Model: t.Model, Tools: tools, MaxTokens: t.MaxOutputTokens, Temperature: t.Temperature}
	if t.Params["max_completion_tokens"] != nil { // endpoints refuse both
		f.MaxTokens = 0
	}
	if len(f.Tools) == 0 {
		delete(t.Params, "tool_choice")
		delete(t.Params, "parallel_tool_calls")
	}
	f.Params = t.Params
	list := messagesOf(t)
	if len(list) == 0 {
		return nil, model.ErrNothingToShow
	}
	if f.Messages, err = json.Marshal(list, json.Deterministic(true)); err != nil {
		return nil, fmt.Errorf("the thread's items cannot be sent: %w", err)
	}
	return model.NewRequest(f, `"stream":true,"stream_options":{"include_usage":true}`, f.Messages)
}

// translate renames params of the Responses protocol, which settings of a run have, to the names that
// they have in this one.
func translate(t *model.Turn) error {
	s, err := t.Settings()
	if err != nil {
		return err
	}
	set := func(name string, v any) {
		if raw, err := json.Marshal(v, json.Deterministic(true)); err == nil && t.Params[name] == nil {
			t.Params[name] = raw
		}
	}
	if s.Effort != "" {
		set("reasoning_effort", s.Effort)
	}
	if s.Verbosity != "" {
		set("verbosity", s.Verbosity)
	}
	switch s.Format.Type {
	case "json_object":
		set("response_format", map[string]string{"type": "json_object"})
	case "json_schema":
		set("response_format", map[string]any{"type": "json_schema", "json_schema": s.Format.Schema})
	}
	if s.Tool != "" {
		t.Params["tool_choice"] = nil
		set("tool_choice", map[string]any{"type": "function", "function": map[string]string{"name": s.Tool}})
	}
	return nil
}

// message is a message of a request.
type message struct {
	Role      string      `json:"role"`
	Content   events.JSON `json:"content,omitzero"` // a text, or a list of parts
	Reasoning string      `json:"reasoning_content,omitzero"`
	Calls     []call      `json:"tool_calls,omitempty"`
	CallID    string      `json:"tool_call_id,omitzero"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type part struct {
	Type  string    `json:"type"`
	Text  string    `json:"text,omitzero"`
	Image *imageURL `json:"image_url,omitzero"`
	File  *file     `json:"file,omitzero"`
}

type imageURL struct {
	URL    string      `json:"url"`
	Detail events.JSON `json:"detail,omitzero"`
}

type file struct {
	ID   events.JSON `json:"file_id,omitzero"`
	Data events.JSON `json:"file_data,omitzero"`
	Name events.JSON `json:"filename,omitzero"`
}

// messagesOf returns the messages of a request.
func messagesOf(t *model.Turn) (out []message) {
	if t.Instructions != "" {
		out = append(out, message{Role: "system", Content: events.Quote(t.Instructions)})
	}
	for _, group := range model.Group(t.Items) {
		if group.Role != events.Assistant {
			role := string(group.Role)
			if group.Role == events.Developer { // most endpoints do not know it
				role = "system"
			}
			if content := contentOf(group.Parts, group.Role == events.User); content != nil {
				out = append(out, message{Role: role, Content: content})
			}
			continue
		}
		m := message{Role: "assistant"}
		if t.RawReasoning {
			for _, r := range group.Reasoning {
				m.Reasoning += r.Text()
			}
		}
		if said := saidIn(group.Parts); said != "" {
			m.Content = events.Quote(said)
		}
		var answers []message
		var seen []part
		for _, c := range group.Calls {
			one := call{ID: c.ID, Type: "function"}
			one.Function.Name, one.Function.Arguments = c.Name, string(model.ObjectOf(c.Arguments))
			m.Calls = append(m.Calls, one)
			said, images := resultOf(group.Results[c.ID].Output)
			answers = append(answers, message{Role: "tool", CallID: c.ID, Content: events.Quote(said)})
			seen = append(seen, images...)
		}
		if m.Content == nil && m.Calls == nil {
			continue
		}
		out = append(append(out, m), answers...)
		if len(seen) > 0 {
			raw, err := json.Marshal(append([]part{{Type: "text", Text: "(what the tools returned)"}}, seen...), json.Deterministic(true))
			if err == nil {
				out = append(out, message{Role: "user", Content: raw})
			}
		}
	}
	return out
}

// contentOf returns the content of a message: a text if it has nothing else.
func contentOf(parts []model.Part, rich bool) events.JSON {
	var list []part
	for _, p := range parts {
		if one := partOf(p); rich || one.Type == "text" {
			list = append(list, one)
		}
	}
	switch {
	case len(list) == 0:
		return nil
	case len(list) == 1 && list[0].Type == "text":
		return events.Quote(list[0].Text)
	}
	raw, err := json.Marshal(list, json.Deterministic(true))
	if err != nil {
		return nil
	}
	return raw
}

// web matches addresses of the web.
var web = regexp.MustCompile(`^https?://`)

// partOf returns a part in the form of the protocol, or a note.
func partOf(p model.Part) part {
	switch media, data, ok := model.DataURL(p.ImageURL); {
	case p.Type == events.InputImage && ok && model.IsImage(media):
		return part{Type: "image_url", Image: &imageURL{"data:" + media + ";base64," + data, p.Detail}}
	case p.Type == events.InputImage && web.MatchString(p.ImageURL):
		return part{Type: "image_url", Image: &imageURL{p.ImageURL, p.Detail}}
	case p.Type == events.InputFile && (p.FileData != nil || p.FileID != nil):
		f := &file{Data: p.FileData, Name: p.Filename}
		if f.Data == nil {
			f.ID = p.FileID
		}
		return part{Type: "file", File: f}
	}
	return part{Type: "text", Text: p.Note()}
}

// saidIn returns the text of an assistant's parts.
func saidIn(parts []model.Part) string {
	var said []string
	for _, p := range parts {
		said = append(said, p.Note())
	}
	return strings.Join(said, "\n")
}

// resultOf returns the text of a call's result, and what of it a tool message cannot have.
func resultOf(output events.JSON) (said string, rest []part) {
	var parts []model.Part
	if json.Unmarshal(output, &said) == nil {
		return said, nil
	}
	if json.Unmarshal(output, &parts) != nil {
		return string(output), nil
	}
	var texts []string
	for _, p := range parts {
		one := partOf(p)
		if one.Type != "text" {
			rest, one.Text = append(rest, one), "(it follows)"
		}
		texts = append(texts, one.Text)
	}
	return strings.Join(texts, "\n"), rest
}
