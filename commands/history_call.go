package commands

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// openCall is where a history has a call without a result.
type openCall struct {
	item string
	part int64 // its place in the content
}

// noteCalls records the calls without a result in a new message of an agent.
func (h *history) noteCalls(d events.ItemCreated) {
	var parts []events.JSON
	if json.Unmarshal(d.Content, &parts) != nil {
		return
	}
	for i, part := range parts {
		h.noteCall(d.ID, int64(i), part)
	}
}

// noteCall records whether a part is a call without a result. A part with a state has a result, or
// the caller of the run makes the call.
func (h *history) noteCall(item string, place int64, part events.JSON) {
	var p struct {
		Type   string `json:"type"`
		CallID string `json:"toolCallId"`
		State  string `json:"state"`
	}
	at := openCall{item, place}
	if json.Unmarshal(part, &p) == nil && strings.HasPrefix(p.Type, events.ToolPart) && p.CallID != "" && p.State == "" {
		h.open[at] = part
	} else {
		delete(h.open, at)
	}
}

// endCalls ends the calls without a result in the items before a place, because the run that makes
// them is not part of the fork.
func (h *history) endCalls(end int64) {
	for at, part := range h.open {
		if place, ok := h.placeOf(at.item); !ok || place >= end {
			continue
		}
		delete(h.open, at)
		h.edit(at.item, events.MessageEdited{Parts: []events.PlacedPart{{Place: at.part, Part: events.FailedCall(part, events.CallLeft)}}})
	}
}
