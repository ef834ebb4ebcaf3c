package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/skein-threads/skein/events"
)

// maxText bounds a text of an attribute, in bytes.
const maxText = 1024

// clip cuts a text to what an attribute may have, at a character's end.
func clip(s string, most int) string {
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "")
}

func text(key attribute.Key, value string) attribute.KeyValue {
	return key.String(clip(value, maxText))
}

// calls names calls: as many as one can look at.
func calls(ids []string) attribute.KeyValue {
	const most = 32
	out := make([]string, min(len(ids), most))
	for i := range out {
		out[i] = clip(ids[i], maxText)
	}
	return attribute.StringSlice("skein.calls", out)
}

// attributes is what a span is described by. Empty values are left out.
type attributes []attribute.KeyValue

func (a *attributes) text(key attribute.Key, value string) {
	if value != "" {
		*a = append(*a, text(key, value))
	}
}

func (a *attributes) count(key attribute.Key, n int64) {
	if n != 0 {
		*a = append(*a, key.Int64(n))
	}
}

// tokens describes what calls of models used.
func (a *attributes) tokens(u events.Usage) {
	a.count(semconv.GenAIUsageInputTokensKey, u.InputTokens)
	a.count(semconv.GenAIUsageOutputTokensKey, u.OutputTokens)
	a.count(semconv.GenAIUsageCacheReadInputTokensKey, u.CachedTokens)
	a.count(semconv.GenAIUsageReasoningOutputTokensKey, u.ReasoningTokens)
}

// provider names who served a model: the conventions want a name always.
func (a *attributes) provider(u *events.Usage) {
	who := "_OTHER"
	if u != nil && u.Provider != "" {
		who = u.Provider
	}
	a.text(semconv.GenAIProviderNameKey, who)
}

// whole adds content, which was bounded when it was kept.
func (a *attributes) whole(key attribute.Key, value string) {
	if value != "" {
		*a = append(*a, key.String(value))
	}
}
