package openai

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// streamed collects what came of a text or of reasoning as deltas, by its index in the answer.
type streamed map[int64]*strings.Builder

func (s streamed) add(index int64, delta string) {
	if s[index] == nil {
		s[index] = &strings.Builder{}
	}
	s[index].WriteString(delta)
}

// addStreamed adds to the items of the answer what came as deltas alone: some endpoints end
// without an item of it, or with an empty one. What was shown stays.
func (a *answer) addStreamed() error {
	for _, one := range []struct {
		of   streamed
		kind string
		item func(said string) any
	}{
		{a.thoughts, "reasoning", func(said string) any {
			return map[string]any{"type": "reasoning", "summary": []any{map[string]any{"type": "summary_text", "text": said}}}
		}},
		{a.texts, "message", func(said string) any {
			return map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": said}}}
		}},
		{a.refusals, "message", func(said string) any {
			return map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "refusal", "refusal": said}}}
		}},
	} {
		if a.has(one.kind) {
			continue
		}
		for _, index := range slices.Sorted(maps.Keys(one.of)) {
			said := one.of[index].String()
			if said == "" {
				continue
			}
			raw, err := json.Marshal(one.item(strings.ToValidUTF8(said, "\uFFFD")), json.Deterministic(true))
			if err != nil {
				return err
			}
			if was, taken := a.done[index]; taken && kindOf(was) != one.kind {
				index = slices.Max(slices.Collect(maps.Keys(a.done))) + 1
			}
			a.done[index] = raw
		}
	}
	return nil
}

// has reports whether the answer has an item of a kind that says something.
func (a *answer) has(kind string) bool {
	for _, raw := range a.done {
		var item struct {
			Type             string      `json:"type"`
			Content          events.JSON `json:"content"`
			Summary          events.JSON `json:"summary"`
			EncryptedContent events.JSON `json:"encrypted_content"`
		}
		if json.Unmarshal(wellFormed(raw), &item) == nil && item.Type == kind &&
			(holds(string(item.Content)) || holds(string(item.Summary)) || holds(string(item.EncryptedContent))) {
			return true
		}
	}
	return false
}

func kindOf(raw events.JSON) string {
	var item struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(wellFormed(raw), &item) // what is none of the kind stays
	return item.Type
}
