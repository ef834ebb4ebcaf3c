package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// clip shortens a text for storing and showing.
func clip(s string) string { return excerpt.Of(s, 2048) }

// text returns a text as JSON.
func text(s string) events.JSON {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // invalid UTF-8
		b, _ = jsontext.AppendQuote(nil, strconv.QuoteToASCII(s))
	}
	return b
}

// object returns a JSON object of names and values, in their order, without empty
// values.
func object(fields ...any) events.JSON {
	out := []byte{'{'}
	for i := 0; i+1 < len(fields); i += 2 {
		var value events.JSON
		switch v := fields[i+1].(type) {
		case string:
			value = text(v)
		case events.JSON:
			value = v
		default:
			b, err := json.Marshal(v)
			if err != nil {
				continue
			}
			value = b
		}
		if len(value) == 0 {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, text(fields[i].(string))...), ':')
		out = append(out, value...)
	}
	return append(out, '}')
}

// spanID derives the id of a span of a step, so that a repeated step writes the same
// one.
func spanID(step, what string) string {
	sum := sha256.Sum256([]byte(step + "\x00" + what))
	return "spn_" + hex.EncodeToString(sum[:12])
}

func isLost(err error) bool {
	var e *thread.LostRunError
	return errors.As(err, &e)
}

// maxProviderUsage bounds the usage that is recorded in its provider's form.
const maxProviderUsage = 4 << 10

// reacted records why a reaction ended. It returns the finish reason, the requested model, which the
// answer may name differently, and the usage in the provider's form, for the trace record.
func (t reactorCall) reacted(model string, r *Reaction) events.JSON {
	t.finish = ""
	var fields []any
	if model != "" {
		fields = append(fields, "model", model)
	}
	if r.FinishReason != "" {
		t.finish = events.FinishReason(r.FinishReason)
		fields = append(fields, "finishReason", t.finish)
	}
	if raw := jsontext.Value(r.ProviderUsage); len(raw) <= maxProviderUsage && raw.Kind() == '{' && raw.IsValid() {
		fields = append(fields, "providerUsage", r.ProviderUsage)
	}
	if fields == nil {
		return nil
	}
	return object(fields...)
}

// Answer returns a reaction with a text and no tool calls.
func Answer(said string) *Reaction {
	return &Reaction{AssistantEvent: Assistant{Content: []events.JSON{object("type", "output_text", "text", said)}}}
}

// LastText returns the text of the last message with a role in Items, such as
// events.User: its text parts, joined. It is empty if there is none.
func (in *StepInput) LastText(role events.Role) string {
	for i := len(in.Items) - 1; i >= 0; i-- {
		if in.Items[i].Type != events.Message || in.Items[i].Role != role {
			continue
		}
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		_ = json.Unmarshal(in.Items[i].Content, &parts) // content that is not a list of parts has no text
		var said strings.Builder
		for _, p := range parts {
			switch p.Type {
			case "input_text", "output_text", "text":
				said.WriteString(p.Text)
			}
		}
		return said.String()
	}
	return ""
}
