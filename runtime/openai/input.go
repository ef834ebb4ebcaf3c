package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
)

// Limits of the protocol.
const (
	maxCallID = 64
	maxName   = 64
)

// noResult replaces a missing result.
const noResult = "(there is no result of this call)"

// inputItem is an item of a request's input, of any kind.
type inputItem struct {
	Type      string       `json:"type"`
	Role      events.Role  `json:"role,omitzero"`
	Content   []inputPart  `json:"content,omitempty"`
	CallID    string       `json:"call_id,omitzero"`
	Name      string       `json:"name,omitzero"`
	Arguments *string      `json:"arguments,omitzero"`
	Output    *events.JSON `json:"output,omitzero"` // a text, or a list of parts
	Phase     string       `json:"phase,omitzero"`  // of an assistant's message
}

// reasoningItem is an item whose content does not consist of a message's parts.
type reasoningItem struct {
	Type             string        `json:"type"`
	ID               string        `json:"id,omitzero"`
	Summary          []events.JSON `json:"summary"`
	Content          events.JSON   `json:"content,omitzero"`
	EncryptedContent string        `json:"encrypted_content,omitzero"`
}

// entry is an item of a request's input.
type entry struct {
	of    int // the place of the thread's item that it shows
	value any
}

// script writes the input of a request, item by item.
type script struct {
	raw   bool
	to    string // names the endpoint
	at    int    // the place of the item that is being added
	input []entry
	used  map[string]int   // ids of calls, and how often each was used
	sent  map[string]bool  // ids of items that the endpoint has made
	open  map[string][]int // places in the input of the results of calls that have none yet, by id
}

func newScript(raw bool, to string) *script {
	return &script{raw: raw, to: to, sent: map[string]bool{}, used: map[string]int{}, open: map[string][]int{}}
}

// inputOf returns the input that shows items to a model, and the ids of the items that it shows.
func inputOf(items []events.Item, raw bool, to string) (input []any, shown []string) {
	s := newScript(raw, to)
	for s.at = range items {
		s.item(&items[s.at])
	}
	input, shown = []any{}, []string{}
	shows := make([]bool, len(items))
	for _, e := range acceptable(s.input, raw) {
		input = append(input, e.value)
		shows[e.of] = true
	}
	for i := range items {
		if shows[i] {
			shown = append(shown, items[i].ID)
		}
	}
	return input, shown
}

func (s *script) add(value any) { s.input = append(s.input, entry{s.at, value}) }

// item adds an item of the thread. Package events defines its form in the protocol; parts that an
// endpoint refuses wherever they are, are omitted here, the rest by acceptable.
func (s *script) item(i *events.Item) {
	list, err := openresponses.Form{Split: true}.Write(i)
	if err != nil {
		return
	}
	lost := false // reasoning without which the endpoint refuses what it has made next
	for n, o := range list {
		from := text(o.Rest[openresponses.Provider])
		delete(o.Rest, openresponses.Provider)
		switch {
		case o.Type == "message" || o.Type == "": // in the form in which a caller sent it
			if jsontext.Value(o.Content).Kind() == '"' {
				o.Content = i.Content
			}
			s.message(i.Role, o.Content, text(o.Rest["phase"]))
		case o.Type == "compaction":
			if summary, ok := openresponses.SummaryOf(o); ok {
				s.add(inputItem{Type: "message", Role: events.Developer, Content: []inputPart{{Type: events.InputText, Text: &summary}}})
			} else { // of the endpoint itself, which can read it
				s.add(o)
			}
		case o.Type == "reasoning":
			item, ok := s.reasoning(o)
			if lost = !ok || from != "" && from != s.to && !s.raw; !lost {
				s.add(item)
			}
		case from != "" && from == s.to && goesBack(o) && !lost && !s.sent[o.ID]:
			s.sent[o.ID] = true
			s.add(o)
		case o.Type == "function_call" && o.Name != "" && o.Arguments != nil:
			if n+1 < len(list) && list[n+1].Type == "function_call_output" {
				s.call(o.CallID, o.Name, *o.Arguments, asOutput(list[n+1].Output))
				break
			}
			s.open[o.CallID] = append(s.open[o.CallID], s.call(o.CallID, o.Name, *o.Arguments, events.Quote(noResult)))
		case o.Type == "function_call_output" && i.Type == events.ActionResult && len(s.open[o.CallID]) > 0:
			place := s.open[o.CallID][0]
			s.open[o.CallID] = s.open[o.CallID][1:]
			result := s.input[place].value.(inputItem)
			result.Output = new(asOutput(o.Output))
			s.input[place] = entry{s.at, result}
		}
	}
}

// message adds those parts of a message that an endpoint accepts: no empty texts, no
// images or files of an assistant, and nothing that only answers have.
func (s *script) message(role events.Role, content events.JSON, phase string) {
	var parts []inputPart
	if json.Unmarshal(content, &parts) != nil {
		return
	}
	now := make([]inputPart, 0, len(parts))
	for _, p := range parts {
		ok := false
		switch p.Type {
		case events.InputText, events.OutputText:
			if role != events.Assistant || !holds(string(p.Annotations)) {
				p.Annotations = nil
			}
			ok = p.Text != nil && *p.Text != ""
		case events.Refusal:
			ok = p.Refusal != ""
		case events.InputImage:
			ok = role != events.Assistant && (p.ImageURL != "" || p.FileID != nil)
		case events.InputFile:
			ok = role != events.Assistant && (p.FileID != nil || p.FileURL != nil || p.FileData != nil)
		}
		if ok {
			now = append(now, p)
		}
	}
	if len(now) == 0 {
		return
	}
	if role != events.Assistant {
		phase = ""
	}
	s.add(inputItem{Type: "message", Role: role, Content: now, Phase: phase})
}

// inputPart is a part of a message in a request.
type inputPart struct {
	Type     string      `json:"type"`
	Text     *string     `json:"text,omitzero"`
	Refusal  string      `json:"refusal,omitzero"`
	ImageURL string      `json:"image_url,omitzero"`
	Detail   events.JSON `json:"detail,omitzero"`
	FileID   events.JSON `json:"file_id,omitzero"`
	FileURL  events.JSON `json:"file_url,omitzero"`
	FileData events.JSON `json:"file_data,omitzero"`
	Filename events.JSON `json:"filename,omitzero"`

	Annotations events.JSON `json:"annotations,omitzero"` // of an assistant's text
}

// reasoning returns reasoning for the model, if it can be sent back.
func (s *script) reasoning(o openresponses.Item) (reasoningItem, bool) {
	out := reasoningItem{Type: "reasoning", ID: o.ID, Summary: []events.JSON{}, EncryptedContent: text(o.EncryptedContent)}
	if json.Unmarshal(o.Summary, &out.Summary) != nil || out.Summary == nil {
		out.Summary = []events.JSON{}
	}
	if s.raw && jsontext.Value(o.Content).Kind() == '[' && string(o.Content) != "[]" {
		out.Content = o.Content
	} else if said := text(o.Rest["text"]); s.raw && said != "" {
		quoted, _ := jsontext.AppendQuote(nil, said) // it was JSON before
		out.Content = events.JSON(`[{"type":"reasoning_text","text":` + string(quoted) + `}]`)
	}
	return out, out.EncryptedContent != "" || out.Content != nil
}

// goesBack reports whether an item is a call that the endpoint made itself and has finished, or
// what it listed for that: it expects to see what it did. An id that is not of the type's form it
// refuses, with the whole input.
func goesBack(o openresponses.Item) bool {
	var prefix string
	switch o.Type {
	case "web_search_call":
		prefix = "ws"
	case "file_search_call":
		prefix = "fs"
	case "code_interpreter_call":
		prefix = "ci"
	case "image_generation_call":
		prefix = "ig"
	case "mcp_call", "mcp_list_tools":
		prefix = "mcp"
	case "tool_search_call", "tool_search_output":
	default:
		return false
	}
	finished := o.Status == "" || o.Status == "completed" || o.Status == "failed"
	return finished && o.ID != "" && len(o.ID) <= maxItemID && strings.HasPrefix(o.ID, prefix)
}

// call adds a call and its result, and returns the place of the result in the input.
func (s *script) call(id, name, said string, output events.JSON) int {
	id = s.callID(id)
	s.add(inputItem{Type: "function_call", CallID: id, Name: wireName(name), Arguments: &said})
	s.add(inputItem{Type: "function_call_output", CallID: id, Output: &output})
	return len(s.input) - 1
}

// callID returns an id that the protocol accepts: short, and unique to one call.
func (s *script) callID(id string) string {
	s.used[id]++
	if n := s.used[id]; n > 1 || id == "" || len(id) > maxCallID {
		sum := sha256.Sum256([]byte(strings.Repeat("+", n) + id))
		return "call_" + hex.EncodeToString(sum[:16])
	}
	return id
}

// wireName returns a tool's name with the characters that the protocol permits.
func wireName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxName)]
}

// asOutput returns the result of a call as the protocol has it: a text, or a list of parts that
// a model sees. Anything else is shown as JSON, in a text.
func asOutput(v events.JSON) events.JSON {
	switch jsontext.Value(v).Kind() {
	case '"':
		if said := text(v); strings.HasPrefix(said, "[") && areParts(events.JSON(said)) { // of a tool
			return events.JSON(said)
		}
		return v
	case '[':
		if areParts(v) {
			return v
		}
	}
	return events.Quote(string(v))
}

// areParts reports whether a list is one of parts that a model sees.
func areParts(v events.JSON) bool {
	var parts []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(v, &parts) != nil || len(parts) == 0 {
		return false
	}
	for _, p := range parts {
		if p.Type != events.InputText && p.Type != events.InputImage && p.Type != events.InputFile {
			return false
		}
	}
	return true
}
