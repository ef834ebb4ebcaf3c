// Package excerpt shortens texts that come from outside, so that they fit an event, an error, a
// log line or an attribute.
//
// What it returns is valid UTF-8, whatever the text is, and has no half of a character. It does not
// hide control characters or secrets: a caller that prints an excerpt quotes it.
package excerpt

import (
	"strings"
	"unicode/utf8"
)

// Of returns a text of at most so many bytes as it is, and a longer one up to there, with three dots
// behind it.
func Of(text string, most int) string {
	head := Head(text, most)
	if len(text) > most {
		head += "..."
	}
	return head
}

// Head returns the beginning of a text, of at most so many bytes.
func Head(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
