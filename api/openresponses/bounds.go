package openresponses

import (
	"unicode/utf8"

	"github.com/skein-threads/skein/events"
)

// What the protocol bounds.
const (
	mostMetadata       = 16
	longestKey         = 64 // characters
	longestValue       = 512
	mostLogprobs       = 20
	mostOutputTokens   = 1e9
	highestTemperature = 2
	highestPenalty     = 2
)

// checkBounds refuses numbers and metadata beyond what the protocol allows.
func (d *createRequest) checkBounds() error {
	for _, n := range []struct {
		name     string
		value    *float64
		from, to float64
	}{
		{"temperature", d.Temperature, 0, highestTemperature},
		{"top_p", d.TopP, 0, 1},
		{"presence_penalty", d.PresencePenalty, -highestPenalty, highestPenalty},
		{"frequency_penalty", d.FrequencyPenalty, -highestPenalty, highestPenalty},
	} {
		if n.value != nil && (*n.value < n.from || *n.value > n.to) {
			return events.Invalid("/"+n.name, "%s is between %v and %v", n.name, n.from, n.to)
		}
	}
	switch {
	case d.MaxOutputTokens != nil && (*d.MaxOutputTokens < 1 || *d.MaxOutputTokens > mostOutputTokens):
		return events.Invalid("/max_output_tokens", "max_output_tokens is at least 1")
	case d.MaxToolCalls != nil && *d.MaxToolCalls < 1:
		return events.Invalid("/max_tool_calls", "max_tool_calls is at least 1")
	case d.TopLogprobs != nil && (*d.TopLogprobs < 0 || *d.TopLogprobs > mostLogprobs):
		return events.Invalid("/top_logprobs", "top_logprobs is between 0 and %d", mostLogprobs)
	}
	return checkMetadata(d.Metadata)
}

// checkMetadata refuses metadata beyond what the protocol allows.
func checkMetadata(metadata map[string]string) error {
	if len(metadata) > mostMetadata {
		return events.Invalid("/metadata", "metadata has at most %d keys", mostMetadata)
	}
	for key, value := range metadata {
		if utf8.RuneCountInString(key) > longestKey || utf8.RuneCountInString(value) > longestValue {
			return events.Invalid("/metadata", "a key of metadata has at most %d characters, and a value %d", longestKey, longestValue)
		}
	}
	return nil
}
