package eventtext

import (
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Who returns the speaker of an item.
func Who(t events.ItemType, role events.Role) string {
	if role != "" {
		return string(role)
	}
	switch t {
	case events.ActionExecute:
		return "call"
	case events.ActionResult:
		return "result"
	case events.ItemReference:
		return "reference"
	default:
		return string(t)
	}
}

// Said returns the content of an item as text.
func Said(t events.ItemType, content events.JSON) string {
	switch t {
	case events.ActionExecute:
		var c struct {
			Name      string      `json:"name"`
			Arguments events.JSON `json:"arguments"`
		}
		_ = json.Unmarshal(content, &c) // the content was validated when it was stored
		return c.Name + "(" + Plain(c.Arguments) + ")"
	case events.ActionResult:
		var c struct {
			Output events.JSON `json:"output"`
		}
		_ = json.Unmarshal(content, &c)
		return Plain(c.Output)
	case events.Message:
		var parts []struct {
			Type    string `json:"type"`
			Text    string `json:"text"`
			Refusal string `json:"refusal"`
		}
		_ = json.Unmarshal(content, &parts)
		var out []string
		for _, p := range parts {
			switch {
			case p.Text != "":
				out = append(out, p.Text)
			case p.Refusal != "":
				out = append(out, p.Refusal)
			default:
				out = append(out, "["+p.Type+"]")
			}
		}
		return strings.Join(out, "\n")
	default:
		return string(content)
	}
}

// Plain returns the text of a JSON string, and other JSON unchanged.
func Plain(v events.JSON) string {
	var s string
	if jsontext.Value(v).Kind() == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// Brief returns the beginning of a text on one line.
func Brief(s string, most int) string {
	s = Printable(s, false)
	if letters := []rune(s); len(letters) > most {
		return strings.TrimSpace(string(letters[:most-1])) + "…"
	}
	return s
}

// Printable removes characters that could control a terminal: anyone may have written
// the text.
func Printable(s string, lines bool) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && lines:
			return r
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	if lines {
		return out
	}
	return strings.Join(strings.Fields(out), " ")
}

// ShortID returns the end of an id, which differs even for ids of one moment.
func ShortID(id string) string { return id[max(0, len(id)-8):] }
