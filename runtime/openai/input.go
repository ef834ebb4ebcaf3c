package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// toolPart begins the type of a part that is a call (EK-49).
const toolPart = "tool-"

// Bounds of the protocol.
const (
	maxCallID = 64
	maxName   = 64
)

// What stands in for a result that cannot be shown.
const (
	noResult = "(there is no result of this call)"
	leftOut  = "(the result was too long and was left out)"
)

// inputItem is an item of a request's input, of any kind.
type inputItem struct {
	Type      string      `json:"type"`
	Role      events.Role `json:"role,omitzero"`
	Content   []inputPart `json:"content,omitempty"`
	CallID    string      `json:"call_id,omitzero"`
	Name      string      `json:"name,omitzero"`
	Arguments *string     `json:"arguments,omitzero"`
	Output    *string     `json:"output,omitzero"`
}

// reasoningItem is one whose content is not of a message's parts.
type reasoningItem struct {
	Type             string           `json:"type"`
	ID               string           `json:"id,omitzero"`
	Summary          []jsontext.Value `json:"summary"`
	Content          jsontext.Value   `json:"content,omitzero"`
	EncryptedContent string           `json:"encrypted_content,omitzero"`
}

// inputPart is a part of a message in a request.
type inputPart struct {
	Type     string         `json:"type"`
	Text     *string        `json:"text,omitzero"`
	Refusal  string         `json:"refusal,omitzero"`
	ImageURL string         `json:"image_url,omitzero"`
	Detail   jsontext.Value `json:"detail,omitzero"`
	FileID   jsontext.Value `json:"file_id,omitzero"`
	FileURL  jsontext.Value `json:"file_url,omitzero"`
	FileData jsontext.Value `json:"file_data,omitzero"`
	Filename jsontext.Value `json:"filename,omitzero"`
}

// threadPart is a part of an item, as far as a model can be told of it.
type threadPart struct {
	Type     string         `json:"type"`
	Text     jsontext.Value `json:"text"`
	Refusal  jsontext.Value `json:"refusal"`
	ImageURL jsontext.Value `json:"image_url"`
	Detail   jsontext.Value `json:"detail"`
	FileID   jsontext.Value `json:"file_id"`
	FileURL  jsontext.Value `json:"file_url"`
	FileData jsontext.Value `json:"file_data"`
	Filename jsontext.Value `json:"filename"`

	ToolCallID jsontext.Value `json:"toolCallId"`
	Input      jsontext.Value `json:"input"`
	Output     jsontext.Value `json:"output"`
	ErrorText  jsontext.Value `json:"errorText"`
	Elided     jsontext.Value `json:"elided"`

	ID        jsontext.Value `json:"id"`
	Summary   jsontext.Value `json:"summary"`
	Content   jsontext.Value `json:"content"`
	Encrypted jsontext.Value `json:"encrypted_content"`
}

// script writes the input of a request, item by item.
type script struct {
	raw   bool
	input []any
	shown []string
	used  map[string]int            // ids of calls, and how often each was there
	open  map[string][]*events.Item // calls that wait for their result, by id
	place map[*events.Item]*string  // where the result of a call goes
}

func newScript(raw bool) *script {
	return &script{raw: raw, input: []any{}, shown: []string{}, used: map[string]int{}, open: map[string][]*events.Item{}, place: map[*events.Item]*string{}}
}

// item shows an item of the thread, and notes it if anything of it is shown.
func (s *script) item(i *events.Item) {
	before, told := len(s.input), false
	switch i.Type {
	case events.Message:
		s.message(i)
	case events.ActionExecute:
		var c events.Call
		if json.Unmarshal(i.Content, &c) == nil && c.Name != "" {
			s.place[i] = s.call(c.CallID, c.Name, c.Arguments, noResult)
			s.open[c.CallID] = append(s.open[c.CallID], i)
		}
	case events.ActionResult:
		var c events.CallResult
		if json.Unmarshal(i.Content, &c) == nil && len(s.open[c.CallID]) > 0 {
			*s.place[s.open[c.CallID][0]] = asText(c.Output)
			s.open[c.CallID] = s.open[c.CallID][1:]
			told = true
		}
	}
	if told || len(s.input) > before {
		s.shown = append(s.shown, i.ID)
	}
}

// message shows a message: its parts up to a call or reasoning are one message
// of the input.
func (s *script) message(i *events.Item) {
	var parts []jsontext.Value
	if json.Unmarshal(i.Content, &parts) != nil {
		return
	}
	var now []inputPart
	flush := func() {
		if len(now) > 0 {
			s.input = append(s.input, inputItem{Type: "message", Role: i.Role, Content: now})
			now = nil
		}
	}
	for _, raw := range parts {
		var p threadPart
		if json.Unmarshal(raw, &p) != nil {
			continue
		}
		name, isCall := strings.CutPrefix(p.Type, toolPart)
		switch {
		case isCall && name != "":
			flush()
			s.call(text(p.ToolCallID), name, p.Input, p.output())
		case p.Type == events.Reasoning:
			if item, ok := s.reasoning(&p); ok {
				flush()
				s.input = append(s.input, item)
			}
		default:
			if part, ok := p.show(i.Role == events.Assistant); ok {
				now = append(now, part)
			}
		}
	}
	flush()
}

// show gives a part as a message in a request has it: what an assistant said is
// output, all else is input.
func (p *threadPart) show(assistant bool) (inputPart, bool) {
	switch p.Type {
	case events.InputText, events.OutputText, "text":
		said := text(p.Text)
		out := inputPart{Type: events.InputText, Text: &said}
		if assistant {
			out.Type = events.OutputText
		}
		return out, said != ""
	case events.Refusal:
		said := text(p.Refusal)
		if assistant {
			return inputPart{Type: events.Refusal, Refusal: said}, said != ""
		}
		return inputPart{Type: events.InputText, Text: &said}, said != ""
	case "input_image", "image_url":
		url := text(p.ImageURL)
		var wrapped struct {
			URL string `json:"url"`
		}
		if p.ImageURL.Kind() == '{' && json.Unmarshal(p.ImageURL, &wrapped) == nil {
			url = wrapped.URL
		}
		return inputPart{Type: "input_image", ImageURL: url, FileID: some(p.FileID), Detail: some(p.Detail)}, !assistant && (url != "" || some(p.FileID) != nil)
	case "input_file":
		out := inputPart{Type: "input_file", FileID: some(p.FileID), FileURL: some(p.FileURL), FileData: some(p.FileData), Filename: some(p.Filename)}
		return out, !assistant && (out.FileID != nil || out.FileURL != nil || out.FileData != nil)
	}
	return inputPart{}, false
}

// output gives the result of a part that is a call.
func (p *threadPart) output() string {
	switch {
	case text(p.ErrorText) != "":
		return "Error: " + text(p.ErrorText)
	case p.Output != nil:
		return asText(p.Output)
	case string(p.Elided) == "true":
		return leftOut
	}
	return noResult
}

// reasoning gives reasoning back to the model, if it can go back.
func (s *script) reasoning(p *threadPart) (reasoningItem, bool) {
	out := reasoningItem{Type: "reasoning", ID: text(p.ID), Summary: []jsontext.Value{}, EncryptedContent: text(p.Encrypted)}
	if json.Unmarshal(p.Summary, &out.Summary) != nil || out.Summary == nil {
		out.Summary = []jsontext.Value{}
	}
	if s.raw && p.Content.Kind() == '[' && string(p.Content) != "[]" {
		out.Content = p.Content
	} else if said := text(p.Text); s.raw && said != "" {
		quoted, _ := jsontext.AppendQuote(nil, said) // it was JSON before
		out.Content = jsontext.Value(`[{"type":"reasoning_text","text":` + string(quoted) + `}]`)
	}
	return out, out.EncryptedContent != "" || out.Content != nil
}

// call shows a call and its result, and gives the place of the result.
func (s *script) call(id, name string, arguments jsontext.Value, output string) *string {
	id = s.callID(id)
	said := "{}"
	if arguments != nil {
		said = asText(arguments)
	}
	s.input = append(s.input,
		inputItem{Type: "function_call", CallID: id, Name: wireName(name), Arguments: &said},
		inputItem{Type: "function_call_output", CallID: id, Output: &output})
	return &output
}

// callID gives an id as the protocol takes it: short, and of one call only.
func (s *script) callID(id string) string {
	s.used[id]++
	if n := s.used[id]; n > 1 || id == "" || len(id) > maxCallID {
		sum := sha256.Sum256([]byte(strings.Repeat("+", n) + id))
		return "call_" + hex.EncodeToString(sum[:16])
	}
	return id
}

// wireName gives a tool's name with the letters that the protocol allows.
func wireName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxName)]
}

// asText gives a JSON value as a text: a text as it is, anything else as JSON.
func asText(v jsontext.Value) string {
	if v.Kind() == '"' {
		return text(v)
	}
	return string(v)
}

// some gives a value that is there.
func some(v jsontext.Value) jsontext.Value {
	if k := v.Kind(); k == 0 || k == 'n' {
		return nil
	}
	return v
}
