package threadtools

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// textOf returns what a message says, as text. What a model thought is left out, and so are the
// bytes of images.
func textOf(m *events.DocumentMessage) string {
	var lines []string
	for i := range m.Content {
		if line, shown := blockText(&m.Content[i]); shown {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func blockText(b *events.DocumentBlock) (text string, shown bool) {
	switch b.Type {
	case events.TextBlock:
		return *b.Text, true
	case events.ThinkingBlock:
		return "", false
	case events.ImageBlock:
		if b.Source.Type == "base64" {
			return fmt.Sprintf("[image: %s, %d bytes in base64]", b.Source.MediaType, len(b.Source.Data)), true
		}
		return "[image: " + b.Source.URL + "]", true
	case events.ToolUseBlock:
		if b.Elided {
			return "[calls " + b.Name + ", arguments left out]", true
		}
		return "[calls " + b.Name + " " + string(b.Input) + "]", true
	case events.ToolResultBlock:
		switch {
		case b.Run == nil:
			return "[no result]", true
		case b.Run.Status == events.ToolError:
			return "[failed: " + b.Run.Error + "]", true
		}
		return "[result: " + plain(b.Run.Result) + "]", true
	default:
		return "[part " + string(b.Part) + "]", true
	}
}

// plain returns a JSON text without its quotes, and any other JSON as it is.
func plain(raw events.JSON) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// cost returns the size of a character in JSON, for any encoder.
func cost(r rune, size int) int {
	switch {
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029':
		return len(`\u0000`)
	case r == '"', r == '\\':
		return 2
	case r == utf8.RuneError:
		return len(`\ufffd`)
	}
	return size
}

// costOf returns the size of a text in JSON.
func costOf(text string) (sum int) {
	for _, r := range text {
		sum += cost(r, utf8.RuneLen(r))
	}
	return sum
}

// prefix returns how many bytes of a text fit into a size in JSON, whole characters only.
func prefix(text string, room int) int {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if room -= cost(r, size); room < 0 {
			break
		}
		at += size
	}
	return at
}

// aligned returns the next beginning of a character, from a position on.
func aligned(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return min(at, len(text))
}
