package page

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/console/markdown"
)

// maxIndents is how many bytes of indents a document may get: those of one that is nested deeply
// grow with the square of its size.
const maxIndents = 4 << 20

// Indented returns a document with a field a line, ordered by name. What is no JSON, is too long or
// nested too deeply is returned as it is; no document is an empty text.
func Indented(document []byte) string {
	v := jsontext.Value(bytes.Clone(document))
	if len(document) > maxText || indents(document) > maxIndents || v.Format(jsontext.ReorderRawObjects(true), jsontext.WithIndent("  ")) != nil {
		return string(document)
	}
	return string(v)
}

// written is Indented with the fields in the order of the document, which may be of any length. What
// a reader would not see in its strings is escaped, which means the same.
func written(document []byte) string {
	v := jsontext.Value(bytes.Clone(document))
	if !v.IsValid() {
		return markdown.Visible(string(document))
	}
	if indents(document) <= maxIndents {
		_ = v.Indent(jsontext.WithIndent("  ")) // it is valid
	}
	return escape(string(v))
}

// escape escapes the hidden characters of JSON, which has them in strings only.
func escape(text string) string {
	if strings.IndexFunc(text, markdown.Hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		switch high, low := utf16.EncodeRune(c); {
		case !markdown.Hidden(c):
			b.WriteRune(c)
		case high == utf8.RuneError:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// indents returns how many bytes of indents a document would get, or at least that they are too
// many.
func indents(document []byte) (sum int) {
	depth, quoted := 0, false
	for i := 0; i < len(document) && sum <= maxIndents; i++ {
		switch c := document[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			depth++
			sum += 2 * depth
		case c == '}' || c == ']':
			depth--
			sum += 2 * max(depth, 0)
		case c == ',':
			sum += 2 * max(depth, 0)
		}
	}
	return sum
}
