package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// object is a YAML mapping whose order is kept.
type object []entry

type entry struct {
	key   string
	value any // object, []any, string, bool, int or JSON
}

// list makes a YAML sequence.
func list[T any](values ...T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

// writeYAML writes a mapping. It knows no more of YAML than these documents need.
func writeYAML(b *bytes.Buffer, o object, indent int) {
	for _, e := range o {
		fmt.Fprintf(b, "%s%s:", strings.Repeat(" ", indent), scalar(e.key))
		writeValue(b, e.value, indent)
	}
}

// writeValue writes what follows a key or a dash.
func writeValue(b *bytes.Buffer, value any, indent int) {
	switch v := value.(type) {
	case object:
		if len(v) == 0 {
			b.WriteString(" {}\n")
			return
		}
		b.WriteByte('\n')
		writeYAML(b, v, indent+2)
	case []any:
		if len(v) == 0 {
			b.WriteString(" []\n")
			return
		}
		b.WriteByte('\n')
		for _, item := range v {
			b.WriteString(strings.Repeat(" ", indent+2) + "-")
			if o, ok := item.(object); ok && len(o) > 0 { // its first entry stands behind the dash
				var inner bytes.Buffer
				writeYAML(&inner, o, indent+4)
				b.WriteString(" " + strings.TrimLeft(inner.String(), " "))
				continue
			}
			writeValue(b, item, indent+2)
		}
	case events.JSON: // JSON is YAML
		b.WriteString(" " + string(v) + "\n")
	case string:
		b.WriteString(" " + scalar(v) + "\n")
	case int:
		b.WriteString(" " + strconv.Itoa(v) + "\n")
	case bool:
		b.WriteString(" " + strconv.FormatBool(v) + "\n")
	case nil:
		b.WriteString(" null\n")
	default:
		panic(fmt.Sprintf("generate: no YAML for %T", v))
	}
}

var plainScalar = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// scalar writes a text, in quotes unless it can be nothing else.
func scalar(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
	default:
		if plainScalar.MatchString(s) {
			return s
		}
	}
	quoted, _ := jsontext.AppendQuote(nil, s) // a text of this program
	return string(quoted)
}
