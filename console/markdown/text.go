package markdown

import (
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"
)

// Visible returns a text in which what a reader would not see is visible: characters that
// change the direction of the text that follows, and control characters, by their names. Invalid
// UTF-8 is replaced.
func Visible(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexFunc(text, Hidden) < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for _, c := range text {
		if Hidden(c) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// Hidden reports whether a character must be shown by its name. A reader's own marks, which only
// concern neighbors (zero width joiners, variation selectors), are left alone: emoji and several
// scripts need them.
func Hidden(c rune) bool {
	switch {
	case c == '\n' || c == '\t' || c == '\r':
		return false
	case c < ' ', c >= 0x7f && c < 0xa0: // controls
		return true
	case c == 0x061c, c == 0x200e, c == 0x200f: // marks of direction
		return true
	case c >= 0x202a && c <= 0x202e, c >= 0x2066 && c <= 0x2069: // embeddings, overrides and isolates
		return true
	case c == 0x2028, c == 0x2029: // separators of lines and paragraphs
		return true
	case c >= 0xe0000 && c <= 0xe007f: // tags, which can hold whole sentences
		return true
	}
	return false
}

// Cut returns the beginning of a text, of at most so many bytes and without half of a character,
// and how many bytes follow it.
func Cut(text string, most int) (shown string, rest int) {
	if len(text) <= most {
		return text, 0
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end], len(text) - end
}

// plain returns a text as it is.
func plain(text string, rest int) template.HTML {
	return `<pre class="plain">` + template.HTML(template.HTMLEscapeString(text)) + "</pre>\n" + tail(rest)
}

// tail says how much of a text is not shown.
func tail(rest int) template.HTML {
	if rest == 0 {
		return ""
	}
	return template.HTML(fmt.Sprintf(`<p class="cut">%d more bytes are not shown here.</p>`+"\n", rest))
}
