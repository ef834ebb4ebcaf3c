package openresponses

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
	longestName        = 64 // of a format, and of what a request is told by
)

// schemaFormat is the type of a format with a schema.
const schemaFormat = "json_schema"

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
		return events.Invalid("/max_output_tokens", "max_output_tokens is between 1 and %d", int64(mostOutputTokens))
	case d.MaxToolCalls != nil && *d.MaxToolCalls < 1:
		return events.Invalid("/max_tool_calls", "max_tool_calls is at least 1")
	case d.TopLogprobs != nil && (*d.TopLogprobs < 0 || *d.TopLogprobs > mostLogprobs):
		return events.Invalid("/top_logprobs", "top_logprobs is between 0 and %d", mostLogprobs)
	}
	for _, text := range []struct {
		name  string
		value *string
	}{{"prompt_cache_key", d.PromptCacheKey}, {"safety_identifier", d.SafetyIdentifier}} {
		if text.value != nil && utf8.RuneCountInString(*text.value) > longestName {
			return events.Invalid("/"+text.name, "%s has at most %d characters", text.name, longestName)
		}
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

// checkText refuses a form of text that the protocol does not have.
func (d *createRequest) checkText() error {
	var text struct {
		Format *struct {
			Type   string      `json:"type"`
			Name   string      `json:"name"`
			Schema events.JSON `json:"schema"`
		} `json:"format"`
		Verbosity string `json:"verbosity"`
	}
	if d.Text != nil {
		if err := misfit("/text", json.Unmarshal(d.Text, &text, jsontext.AllowDuplicateNames(true))); err != nil {
			return err
		}
	}
	if f := text.Format; f != nil {
		switch {
		case !slices.Contains([]string{"text", "json_object", schemaFormat}, f.Type):
			return events.Invalid("/text/format/type", "the type of a format is text, json_object or json_schema, and not %q", clipped(f.Type))
		case f.Type == schemaFormat && !events.Pattern(events.PatternTool).MatchString(f.Name):
			return events.Invalid("/text/format/name", "a format of type json_schema has a name: 1 to 64 letters, digits, dashes and underscores")
		case f.Type == schemaFormat && jsontext.Value(f.Schema).Kind() != '{':
			return events.Invalid("/text/format/schema", "a format of type json_schema has a schema, an object")
		}
	}
	if !slices.Contains([]string{"", "low", "medium", "high"}, text.Verbosity) {
		return events.Invalid("/text/verbosity", "verbosity is low, medium or high, and not %q", clipped(text.Verbosity))
	}
	return nil
}

// checkReasoning refuses a reasoning that the protocol and its clients do not have.
func (d *createRequest) checkReasoning() error {
	k := jsontext.Value(d.Reasoning).Kind()
	if k != 0 && k != '{' {
		return events.Invalid("/reasoning", "a reasoning is an object with an effort, or a summary")
	}
	var r reasoningConfig
	if k != 0 {
		if err := misfit("/reasoning", json.Unmarshal(d.Reasoning, &r, jsontext.AllowDuplicateNames(true))); err != nil {
			return err
		}
	}
	for _, one := range []struct {
		name  string
		value *string
		are   []string
	}{
		{"effort", r.Effort, []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}},
		{"summary", r.Summary, []string{"auto", "concise", "detailed"}},
	} {
		if one.value != nil && !slices.Contains(one.are, *one.value) {
			return events.Invalid("/reasoning/"+one.name, "the %s of a reasoning is one of %s, and not %s", one.name, strings.Join(one.are, ", "), quoted(*one.value))
		}
	}
	return nil
}
