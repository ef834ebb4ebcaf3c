package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// maxText limits the text of an attribute, in bytes.
const maxText = 1024

func text(key attribute.Key, value string) attribute.KeyValue {
	return key.String(excerpt.Of(value, maxText))
}

// calls lists a limited number of calls.
func calls(ids []string) attribute.KeyValue {
	const most = 32
	out := make([]string, min(len(ids), most))
	for i := range out {
		out[i] = excerpt.Of(ids[i], maxText)
	}
	return attribute.StringSlice("skein.calls", out)
}

// attributes are the attributes of a span. Empty values are omitted.
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

// tokens adds the usage of calls of models.
func (a *attributes) tokens(u events.Usage) {
	a.count(semconv.GenAIUsageInputTokensKey, u.InputTokens)
	a.count(semconv.GenAIUsageOutputTokensKey, u.OutputTokens)
	a.count(semconv.GenAIUsageCacheReadInputTokensKey, u.CachedTokens)
	a.count(semconv.GenAIUsageReasoningOutputTokensKey, u.ReasoningTokens)
}

// provider adds the provider of a model, which the conventions require.
func (a *attributes) provider(u *events.Usage) {
	who := "_OTHER"
	if u != nil && u.Provider != "" {
		who = u.Provider
	}
	a.text(semconv.GenAIProviderNameKey, who)
}

// whole adds content, which was limited when it was stored.
func (a *attributes) whole(key attribute.Key, value string) {
	if value != "" {
		*a = append(*a, key.String(value))
	}
}
