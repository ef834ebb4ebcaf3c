package telemetry

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/runview"
)

// Limits of the content of one span, if content is exported.
const (
	maxPiece  = 4096 // bytes of one text, of arguments or of a result
	maxPieces = 32   // of one message
)

// said is content: it is kept only if the configuration says so.
type said struct {
	input  string // messages, or a call's arguments
	output string // messages, or a call's result
	pieces []piece
}

// piece is a part of a message, as in the conventions' JSON schemas.
type piece struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitzero"`
	ID        string `json:"id,omitzero"`
	Name      string `json:"name,omitzero"`
	Arguments string `json:"arguments,omitzero"`

	result string
}

// toolPart is the prefix of the type of a part that is a call.
const toolPart = "tool-"

// says adds a part of a step.
func (r *run) says(step, kind string, raw events.JSON) {
	of := r.Span(step)
	if r.said == nil || of == nil {
		return
	}
	s := r.said[of]
	if s == nil {
		s = &said{}
		r.said[of] = s
	}
	var part struct {
		Text   string      `json:"text"`
		CallID string      `json:"toolCallId"`
		Input  events.JSON `json:"input"`
		Output events.JSON `json:"output"`
	}
	if json.Unmarshal(raw, &part) != nil {
		return
	}
	tool, call := strings.CutPrefix(kind, toolPart)
	for i := range s.pieces {
		if p := &s.pieces[i]; call && p.ID == part.CallID {
			p.Arguments, p.result = excerpt.Of(string(part.Input), maxPiece), excerpt.Of(string(part.Output), maxPiece)
			return
		}
	}
	switch {
	case len(s.pieces) >= maxPieces:
	case call:
		s.pieces = append(s.pieces, piece{Type: "tool_call", ID: part.CallID, Name: tool, Arguments: excerpt.Of(string(part.Input), maxPiece)})
	case part.Text != "":
		s.pieces = append(s.pieces, piece{Type: "text", Content: excerpt.Of(part.Text, maxPiece)})
	}
}

// quote keeps the output of a model's call, or the arguments and result of a tool's call, as the
// step recorded them.
func (r *run) quote(s *runview.Span) {
	step := r.said[r.Span(s.Parent)]
	if step == nil || len(step.pieces) == 0 {
		return
	}
	if s.Kind == runview.ModelSpan {
		r.said[s] = &said{output: message("assistant", step.pieces)}
		return
	}
	for _, p := range step.pieces {
		if s.Kind == runview.ToolSpan && p.ID == s.Call {
			r.said[s] = &said{input: p.Arguments, output: p.result}
			return
		}
	}
}

// asks returns the message that a run answers, if its trigger is in the commit.
func asks(commit *events.Commit, trigger string) string {
	for i := range commit.Events {
		d, ok := commit.Events[i].Data.(events.ItemCreated)
		if !ok || d.ID != trigger {
			continue
		}
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(d.Content, &parts) != nil {
			return ""
		}
		var pieces []piece
		for _, p := range parts[:min(len(parts), maxPieces)] {
			if p.Text != "" {
				pieces = append(pieces, piece{Type: "text", Content: excerpt.Of(p.Text, maxPiece)})
			}
		}
		return message("user", pieces)
	}
	return ""
}

// message returns a message in the form of gen_ai.input.messages.
func message(role string, pieces []piece) string {
	if len(pieces) == 0 {
		return ""
	}
	raw, err := json.Marshal([]struct {
		Role  string  `json:"role"`
		Parts []piece `json:"parts"`
	}{{role, pieces}}, json.Deterministic(true))
	if err != nil {
		return ""
	}
	return string(raw)
}
