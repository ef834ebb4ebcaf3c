package model

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
)

// Limits of the protocols.
const (
	maxCallID = 64
	maxName   = 64
)

// noResult replaces a missing result.
const noResult = "(there is no result of this call)"

// entry is an item of a turn.
type entry struct {
	of   int // the place of the thread's item that it shows
	item Item
}

// history turns the items of a thread into those of a turn, item by item.
type history struct {
	raw     bool                            // the endpoint takes the text of reasoning
	to      string                          // names the endpoint
	returns func(o openresponses.Item) bool // what the endpoint has made goes back to it

	made    map[string]partOfCall // of the item that is being added, by the id of the call
	at      int                   // the place of the item that is being added
	entries []entry
	used    map[string]int   // ids of calls, and how often each was used
	sent    map[string]bool  // ids of items that the endpoint has made
	open    map[string][]int // places in entries of the results of calls that have none yet, by id
}

func newHistory(p Protocol, c Config) *history {
	return &history{
		raw: c.RawReasoning, to: c.endpoint(), returns: p.Returns,
		sent: map[string]bool{}, used: map[string]int{}, open: map[string][]int{},
	}
}

// show returns the items of a turn that show items to a model, and the ids of those that it shows.
func (h *history) show(items []events.Item) (turn []Item, shown []string) {
	for h.at = range items {
		h.add(&items[h.at])
	}
	shown = []string{}
	shows := make([]bool, len(items))
	for _, e := range h.acceptable() {
		turn = append(turn, e.item)
		shows[e.of] = true
	}
	for i := range items {
		if shows[i] {
			shown = append(shown, items[i].ID)
		}
	}
	return turn, shown
}

// acceptable returns the entries without the reasoning that an endpoint refuses where it is.
// Reasoning is followed by what came of it: a call, an answer, or more reasoning. What followed may
// be deleted, empty, or of a kind that cannot be sent. An endpoint of an open model, which has the
// reasoning in plain text, takes it anywhere.
func (h *history) acceptable() []entry {
	if h.raw {
		return h.entries
	}
	out := make([]entry, 0, len(h.entries))
	var next Item
	for _, e := range slices.Backward(h.entries) {
		if _, is := e.item.(Reasoning); is && !followsReasoning(next) {
			continue
		}
		next = e.item
		out = append(out, e)
	}
	slices.Reverse(out)
	return out
}

// followsReasoning reports whether an item can be what a model said after reasoning.
func followsReasoning(item Item) bool {
	switch i := item.(type) {
	case Reasoning, Call:
		return true
	case Message:
		return i.Role == events.Assistant
	case Own:
		return i.Type != compaction
	}
	return false
}

// compaction is the type of what stands for the items before it.
const compaction = "compaction"

func (h *history) push(i Item) { h.entries = append(h.entries, entry{h.at, i}) }

// add adds an item of the thread. Package events defines its form in Open Responses; parts that an
// endpoint refuses wherever they are, are omitted here, the rest by acceptable.
func (h *history) add(i *events.Item) {
	list, err := openresponses.Form{Split: true}.Write(i)
	if err != nil {
		return
	}
	h.made = callsOf(i)
	lost := false // reasoning without which the endpoint refuses what it has made next
	for n, o := range list {
		from := Text(o.Rest[openresponses.Provider])
		delete(o.Rest, openresponses.Provider)
		switch {
		case o.Type == "message" || o.Type == "": // in the form in which a caller sent it
			if jsontext.Value(o.Content).Kind() == '"' {
				o.Content = i.Content
			}
			h.message(i.Role, o.Content, Text(o.Rest["phase"]))
		case o.Type == compaction:
			h.compaction(o)
		case o.Type == "reasoning":
			item, ok := h.reasoning(o, from == "" || from == h.to)
			if lost = !ok; ok {
				h.push(item)
			}
		case from != "" && from == h.to && h.returns(o) && !lost && !h.sent[o.ID]:
			h.sent[o.ID] = true
			h.push(Own{o})
		case o.Type == "function_call" && o.Name != "" && o.Arguments != nil:
			if n+1 < len(list) && list[n+1].Type == "function_call_output" {
				h.call(o.CallID, o.Name, *o.Arguments, asOutput(list[n+1].Output))
				break
			}
			h.open[o.CallID] = append(h.open[o.CallID], h.call(o.CallID, o.Name, *o.Arguments, events.Quote(noResult)))
		case o.Type == "function_call_output" && i.Type == events.ActionResult && len(h.open[o.CallID]) > 0:
			place := h.open[o.CallID][0]
			h.open[o.CallID] = h.open[o.CallID][1:]
			result := h.entries[place].item.(Result)
			result.Output, result.Failed = asOutput(o.Output), hasFailed(i)
			h.entries[place] = entry{h.at, result}
		}
	}
}

// partOfCall is what a part of a reaction says of a call, besides what Open Responses has.
type partOfCall struct {
	CallID    string      `json:"toolCallId"`
	Step      string      `json:"skein:step"`
	ErrorText events.JSON `json:"errorText"`
}

// callsOf returns what the parts of a reaction say of its calls.
func callsOf(i *events.Item) map[string]partOfCall {
	said := string(i.Content)
	if i.Role != events.Assistant || !strings.Contains(said, `"skein:step"`) && !strings.Contains(said, `"errorText"`) {
		return nil
	}
	var parts []partOfCall
	if json.Unmarshal(i.Content, &parts) != nil {
		return nil
	}
	calls := map[string]partOfCall{}
	for _, p := range parts {
		calls[p.CallID] = p
	}
	return calls
}

// hasFailed reports whether a result says that its call failed.
func hasFailed(i *events.Item) bool {
	var result events.CallResult
	return json.Unmarshal(i.Content, &result) == nil && result.IsError
}

// compaction adds what stands for older items: a summary that every model reads, or an item of the
// endpoint itself, which can read it.
func (h *history) compaction(o openresponses.Item) {
	if summary, ok := openresponses.SummaryOf(o); ok {
		h.push(Message{Role: events.Developer, Parts: []Part{{Type: events.InputText, Text: &summary}}})
	} else if h.returns(o) {
		h.push(Own{o})
	}
}

// message adds those parts of a message that an endpoint accepts: no empty texts, no
// images or files of an assistant, and nothing that only answers have.
func (h *history) message(role events.Role, content events.JSON, phase string) {
	var parts []Part
	if json.Unmarshal(content, &parts) != nil {
		return
	}
	now := make([]Part, 0, len(parts))
	for _, p := range parts {
		ok := false
		switch p.Type {
		case events.InputText, events.OutputText:
			if role != events.Assistant || !Holds(p.Annotations) {
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
			if p.ImageURL != "" || p.FileData != nil {
				p.FileID = nil // of the caller's; endpoints take one of them
			}
			now = append(now, p)
		}
	}
	if len(now) == 0 {
		return
	}
	if role != events.Assistant {
		phase = ""
	}
	h.push(Message{Role: role, Parts: now, Phase: phase})
}

// reasoning returns reasoning for the model, if it can be sent back. What is encrypted only its own
// endpoint can read.
func (h *history) reasoning(o openresponses.Item, own bool) (Reasoning, bool) {
	out := Reasoning{ID: o.ID, Summary: []events.JSON{}}
	if own {
		out.Encrypted = Text(o.EncryptedContent)
	}
	if json.Unmarshal(o.Summary, &out.Summary) != nil || out.Summary == nil {
		out.Summary = []events.JSON{}
	}
	if h.raw && jsontext.Value(o.Content).Kind() == '[' && string(o.Content) != "[]" {
		out.Content = o.Content
	} else if said := Text(o.Rest["text"]); h.raw && said != "" {
		quoted, _ := jsontext.AppendQuote(nil, said) // it was JSON before
		out.Content = events.JSON(`[{"type":"reasoning_text","text":` + string(quoted) + `}]`)
	}
	return out, out.Encrypted != "" || out.Content != nil
}

// call adds a call and its result, and returns the place of the result in the entries.
func (h *history) call(id, name, said string, output events.JSON) int {
	own := id
	id = h.callID(id)
	part := h.made[own]
	h.push(Call{ID: id, Name: wireName(name), Arguments: said, Step: part.Step})
	h.push(Result{CallID: id, Output: output, Failed: Text(part.ErrorText) != ""})
	return len(h.entries) - 1
}

// callID returns an id that the protocols accept: short, and unique to one call.
func (h *history) callID(id string) string {
	h.used[id]++
	if n := h.used[id]; n > 1 || id == "" || len(id) > maxCallID {
		sum := sha256.Sum256([]byte(strings.Repeat("+", n) + id))
		return "call_" + hex.EncodeToString(sum[:16])
	}
	return id
}

// wireName returns a tool's name with the characters that the protocols permit.
func wireName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxName)]
}

// asOutput returns the result of a call as a text, or as a list of parts that a model sees.
// Anything else is shown as JSON, in a text.
func asOutput(v events.JSON) events.JSON {
	switch jsontext.Value(v).Kind() {
	case '"':
		if said := Text(v); strings.HasPrefix(said, "[") && areParts(events.JSON(said)) { // of a tool
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
