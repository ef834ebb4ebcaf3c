package cli

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// list writes a JSON array.
func list(values []events.JSON) events.JSON {
	out := events.JSON{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// object writes a JSON object of names and values, in that order. A value is a
// text, a bool, or JSON; JSON that is nil is left out with its name.
func object(pairs ...any) events.JSON {
	out := events.JSON{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		var value events.JSON
		switch v := pairs[i+1].(type) {
		case string:
			value = quote(v)
		case bool:
			value = events.JSON(strconv.FormatBool(v))
		case events.JSON:
			if v == nil {
				continue
			}
			value = v
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quote(pairs[i].(string))...), ':'), value...)
	}
	return append(out, '}')
}

// quote writes a JSON string.
func quote(s string) events.JSON {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // what was read is valid UTF-8
		return events.JSON(`""`)
	}
	return b
}
