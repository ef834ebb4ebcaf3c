package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// clip keeps a text short enough to be stored and shown.
func clip(s string) string {
	const most = 2048
	if !utf8.ValidString(s) {
		s = strconv.QuoteToASCII(s)
	}
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// text gives a text as JSON.
func text(s string) events.JSON {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // broken UTF-8
		b, _ = jsontext.AppendQuote(nil, strconv.QuoteToASCII(s))
	}
	return b
}

// object makes a JSON object of names and values, in their order. A value that
// is nothing is left out.
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

// spanID derives the id of a span of a step, so that a step that is done over
// writes the same one.
func spanID(step, what string) string {
	sum := sha256.Sum256([]byte(step + "\x00" + what))
	return "spn_" + hex.EncodeToString(sum[:12])
}

func lost(err error) bool {
	var e *thread.LostRunError
	return errors.As(err, &e)
}

// reacted notes why a reaction ended, and gives what else is recorded of it: the
// model that was asked for (its answer may name another), and that.
func (t *turn) reacted(model string, r *Reaction) events.JSON {
	t.finish = ""
	var fields []any
	if model != "" {
		fields = append(fields, "model", model)
	}
	if r.FinishReason != "" {
		t.finish = events.FinishReason(r.FinishReason)
		fields = append(fields, "finishReason", t.finish)
	}
	if fields == nil {
		return nil
	}
	return object(fields...)
}
