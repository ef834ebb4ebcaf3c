package messages

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

const (
	// DefaultBaseURL is Anthropic's own. It has no /v1, as in ANTHROPIC_BASE_URL.
	DefaultBaseURL = "https://api.anthropic.com"

	version          = "2023-06-01"
	defaultMaxTokens = 8192 // the protocol demands a limit
)

// Codec is the codec of the Messages protocol.
type Codec struct{}

// Protocol implements model.Codec.
func (Codec) Protocol() model.Protocol {
	return model.Protocol{
		Name: "Messages", Path: "/v1/messages", LastName: "message_stop", TooLong: "prompt is too long", Steps: true, Stops: true,
		Params: model.Rules{
			Usual: []string{
				"max_output_tokens", "max_tokens", "output_config", "parallel_tool_calls", "reasoning", "stop", "stop_sequences", "temperature", "text", "thinking", "tool_choice", "top_k", "top_p",
			},
			Own: []string{"messages", "model", "stream", "system"},
		},
		BaseURL: DefaultBaseURL, Provider: "anthropic", Setting: "ANTHROPIC",
		Authorize: func(h http.Header, key string) {
			h.Set("anthropic-version", version)
			if key != "" {
				h.Set("x-api-key", key)
			}
		},
		Returns: func(openresponses.Item) bool { return false },
	}
}

// fields are the fixed fields of a request; the model's params come alongside.
type fields struct {
	Model       string        `json:"model"`
	MaxTokens   int64         `json:"max_tokens"`
	System      string        `json:"system,omitzero"`
	Messages    events.JSON   `json:"messages"`
	Tools       []events.JSON `json:"tools,omitempty"`
	Choice      events.JSON   `json:"tool_choice,omitzero"`
	Temperature *float64      `json:"temperature,omitzero"`

	Params map[string]events.JSON `json:",embed"`
}

type tool struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitzero"`
	Schema      events.JSON `json:"input_schema"`
}

// Encode implements model.Codec.
func (Codec) Encode(t *model.Turn) (*model.Request, error) {
	s, err := t.Settings()
	if err != nil {
		return nil, err
	}
	tools, err := t.EncodeTools(func(one runtime.ToolSpec) any { return tool{one.Name, one.Description, one.Parameters} },
		model.Field{Name: "max_tokens", Into: &t.MaxOutputTokens})
	if err != nil {
		return nil, err
	}
	f := fields{Model: t.Model, Tools: tools, MaxTokens: t.MaxOutputTokens, Temperature: t.Temperature}
	if stop := t.Params["stop"]; stop != nil {
		delete(t.Params, "stop")
		t.Params["stop_sequences"] = stop
	}
	if err := f.settle(t, &s); err != nil {
		return nil, err
	}
	f.Params = t.Params
	list := f.messages(t, wishes(&s))
	if len(list) == 0 {
		return nil, model.ErrNothingToShow
	}
	if f.Messages, err = json.Marshal(list, json.Deterministic(true)); err != nil {
		return nil, fmt.Errorf("the thread's items cannot be sent: %w", err)
	}
	return model.NewRequest(f, `"stream":true`, f.Messages)
}

// settle sets the limits, and converts params of the Responses protocol, which settings of a run have,
// to this one.
func (f *fields) settle(t *model.Turn, s *model.Settings) (err error) {
	var thinking struct {
		Type   string `json:"type"`
		Budget int64  `json:"budget_tokens"`
	}
	parallel, choice := true, events.JSON(nil)
	_ = json.Unmarshal(t.Params["thinking"], &thinking) // the endpoint says what is wrong with it
	if err := t.Take(model.Field{Name: "parallel_tool_calls", Into: &parallel}, model.Field{Name: "tool_choice", Into: &choice}); err != nil {
		return err
	}
	if f.MaxTokens == 0 {
		f.MaxTokens = thinking.Budget + defaultMaxTokens
	}
	switch {
	case thinking.Type == "enabled" || thinking.Type == "adaptive": // no other is permitted then
		f.Temperature = nil
	case f.Temperature != nil:
		most := min(*f.Temperature, 1)
		f.Temperature = &most
	}
	output := map[string]any{}
	if s.Format.Type == "json_schema" {
		output["format"] = map[string]any{"type": "json_schema", "schema": s.Format.Schema.Schema}
	}
	if effort := effortOf(s.Effort); effort != "" {
		output["effort"] = effort
	}
	if len(output) > 0 && t.Params["output_config"] == nil {
		if t.Params["output_config"], err = json.Marshal(output, json.Deterministic(true)); err != nil {
			return err
		}
	}
	if len(f.Tools) > 0 {
		f.Choice, err = choiceOf(choice, s.Tool, parallel)
	}
	return err
}

// effortOf returns the nearest effort that the protocol has; empty for none of OpenAI's.
func effortOf(said string) string {
	switch said {
	case "minimal", "low":
		return "low"
	case "medium":
		return said
	case "high", "xhigh":
		return "high"
	}
	return ""
}

// wishes returns the settings that the protocol has no field for, as instructions.
func wishes(s *model.Settings) (out []string) {
	switch s.Verbosity {
	case "low":
		out = append(out, "Keep your answers short.")
	case "high":
		out = append(out, "Answer at length and in detail.")
	}
	if s.Format.Type == "json_object" {
		out = append(out, "Answer with one JSON object, and with nothing before or after it.")
	}
	return out
}

// choiceOf returns which tools must be called, in the form of the protocol.
func choiceOf(said events.JSON, name string, parallel bool) (events.JSON, error) {
	out := map[string]any{}
	var word string
	switch {
	case name != "":
		out["type"], out["name"] = "tool", name
	case jsontext.Value(said).Kind() == '{': // in the form of the protocol
		if err := json.Unmarshal(said, &out); err != nil {
			return nil, err
		}
	case json.Unmarshal(said, &word) == nil && word == "required":
		out["type"] = "any"
	case word == "none" || word == "auto":
		out["type"] = word
	}
	if !parallel && out["type"] != "none" {
		if out["type"] == nil {
			out["type"] = "auto"
		}
		out["disable_parallel_tool_use"] = true
	}
	if len(out) == 0 {
		return nil, nil
	}
	return json.Marshal(out, json.Deterministic(true))
}

// message is a message of a request.
type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a part of a message, of any type.
type block struct {
	Type      string      `json:"type"`
	Text      string      `json:"text,omitzero"`
	Source    *source     `json:"source,omitzero"`
	Title     string      `json:"title,omitzero"`
	ID        string      `json:"id,omitzero"`
	Name      string      `json:"name,omitzero"`
	Input     events.JSON `json:"input,omitzero"`
	ToolUseID string      `json:"tool_use_id,omitzero"`
	Content   []block     `json:"content,omitempty"`
	IsError   bool        `json:"is_error,omitzero"` // then the content has only texts
	Thinking  *string     `json:"thinking,omitzero"`
	Signature string      `json:"signature,omitzero"`
	Data      string      `json:"data,omitzero"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitzero"`
	Data      string `json:"data,omitzero"`
	URL       string `json:"url,omitzero"`
}

// thought is thinking as it is kept, opaque to everybody else: the block, and the model that made it.
type thought struct {
	Model     string  `json:"model"`
	Thinking  *string `json:"thinking,omitzero"`
	Signature string  `json:"signature,omitzero"`
	Redacted  string  `json:"redacted,omitzero"`
}

// messages returns the messages of a request, and sets what of them is the system's.
func (f *fields) messages(t *model.Turn, wishes []string) (out []message) {
	system := []string{}
	if t.Instructions != "" {
		system = append(system, t.Instructions)
	}
	for _, group := range model.Group(t.Items) {
		switch group.Role {
		case events.User:
			out = add(out, "user", blocksOf(group.Parts))
		case events.Assistant:
			if len(out) == 0 {
				out = add(out, "user", []block{{Type: "text", Text: "(The conversation begins with an answer.)"}})
			}
			said, results := answerOf(t.Model, group)
			out = add(add(out, "assistant", said), "user", results)
		default:
			var texts []string
			for _, b := range blocksOf(group.Parts) {
				texts = append(texts, b.Text)
			}
			switch said := strings.Join(texts, "\n"); {
			case said == "":
			case len(out) == 0:
				system = append(system, said)
			default:
				out = add(out, "user", []block{{Type: "text", Text: "<system>\n" + said + "\n</system>"}})
			}
		}
	}
	f.System = strings.Join(append(system, wishes...), "\n\n")
	if n := len(out); n > 0 && out[n-1].Role == "assistant" || n == 0 && f.System != "" { // it must end with one of a user
		out = add(out, "user", []block{{Type: "text", Text: "Continue."}})
	}
	return out
}

func add(list []message, role string, content []block) []message {
	if len(content) == 0 {
		return list
	}
	return append(list, message{role, content})
}

// answerOf returns what a step made, and the results of its calls.
func answerOf(of string, e *model.Exchange) (said, results []block) {
	for _, r := range e.Reasoning {
		var kept thought
		if json.Unmarshal([]byte(r.Encrypted), &kept) != nil || kept.Model != of {
			continue
		}
		switch {
		case kept.Redacted != "":
			said = append(said, block{Type: "redacted_thinking", Data: kept.Redacted})
		case kept.Signature != "" && kept.Thinking != nil:
			said = append(said, block{Type: "thinking", Thinking: kept.Thinking, Signature: kept.Signature})
		}
	}
	texts := blocksOf(e.Parts)
	if len(texts) == 0 && len(e.Calls) == 0 {
		return nil, nil
	}
	said = append(said, texts...)
	for _, c := range e.Calls {
		id := idOf(c.ID)
		said = append(said, block{Type: "tool_use", ID: id, Name: c.Name, Input: model.ObjectOf(c.Arguments)})
		result := block{Type: "tool_result", ToolUseID: id, Content: resultOf(e.Results[c.ID].Output)}
		result.IsError = e.Results[c.ID].Failed && !slices.ContainsFunc(result.Content, func(b block) bool { return b.Type != "text" })
		results = append(results, result)
	}
	return said, results
}

var validID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// idOf returns the id of a call with the characters that the protocol permits.
func idOf(id string) string {
	if validID.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

func resultOf(output events.JSON) []block {
	var said string
	if json.Unmarshal(output, &said) == nil {
		return blocksOf([]model.Part{{Text: &said}})
	}
	var parts []model.Part
	if json.Unmarshal(output, &parts) != nil {
		said = string(output)
		parts = []model.Part{{Text: &said}}
	}
	return blocksOf(parts)
}

// blocksOf returns parts in the form of the protocol, which refuses blank texts.
func blocksOf(parts []model.Part) (out []block) {
	for _, p := range parts {
		if b := blockOf(p); b.Type != "text" || strings.TrimSpace(b.Text) != "" {
			out = append(out, b)
		}
	}
	return out
}

// web matches addresses of the web.
var web = regexp.MustCompile(`^https?://`)

// blockOf returns a part in the form of the protocol, or a note.
func blockOf(p model.Part) block {
	switch p.Type {
	case events.InputImage:
		if media, data, ok := model.DataURL(p.ImageURL); ok && model.IsImage(media) {
			return block{Type: "image", Source: &source{Type: "base64", MediaType: media, Data: data}}
		}
		if web.MatchString(p.ImageURL) {
			return block{Type: "image", Source: &source{Type: "url", URL: p.ImageURL}}
		}
	case events.InputFile:
		title := model.Text(p.Filename)
		if media, data, ok := model.DataURL(model.Text(p.FileData)); ok {
			switch {
			case model.IsImage(media):
				return block{Type: "image", Source: &source{Type: "base64", MediaType: media, Data: data}}
			case media == "application/pdf":
				return block{Type: "document", Title: title, Source: &source{Type: "base64", MediaType: media, Data: data}}
			case strings.HasPrefix(media, "text/"):
				raw, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "=")) // what cannot be read is no text
				if said := strings.ToValidUTF8(string(raw), "\uFFFD"); strings.TrimSpace(said) != "" {
					return block{Type: "document", Title: title, Source: &source{Type: "text", MediaType: "text/plain", Data: said}}
				}
			}
		}
		if address := model.Text(p.FileURL); web.MatchString(address) {
			return block{Type: "document", Title: title, Source: &source{Type: "url", URL: address}}
		}
	}
	return block{Type: "text", Text: p.Note()}
}
