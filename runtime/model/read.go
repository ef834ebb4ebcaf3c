package model

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Read decodes what an endpoint has sent, which may repeat names and have half of a surrogate pair.
func Read(raw events.JSON, into any) error {
	return json.Unmarshal(raw, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Text returns the text of a JSON string; "" for anything else.
func Text(raw events.JSON) string {
	var s string
	if jsontext.Value(raw).Kind() != '"' || Read(raw, &s) != nil {
		return ""
	}
	return s
}

// FinishReason returns one of the reasons of events.Finish for the word with which an endpoint ends
// an answer, in any protocol; empty: the answer is complete.
func FinishReason(word string) string {
	switch word {
	case "stop", "tool_calls", "function_call", "end_turn", "stop_sequence", "tool_use":
		return ""
	case "length", "max_tokens", "max_output_tokens", "model_context_window_exceeded":
		return events.FinishLength
	case "content_filter", "refusal":
		return events.FinishContentFilter
	}
	return events.FinishOther
}
