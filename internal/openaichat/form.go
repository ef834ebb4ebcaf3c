package openaichat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// unreadError reports a field that holds something and is not read.
type unreadError struct{ field string }

func (e *unreadError) Error() string {
	switch e.field {
	case "parts", "text":
		return fmt.Sprintf("the field %q is not of this format; what was said is in content, a text or a list of parts", e.field)
	}
	return fmt.Sprintf("the field %.64q is not read; remove it, or leave it out with --ignore %.64s", e.field, e.field)
}

// checkUnread refuses a field that holds something, and is neither read nor to be ignored.
func checkUnread(unknown map[string]events.JSON, ignore []string) error {
	var unread []string
	for name, value := range unknown {
		if !slices.Contains([]string{"null", `""`, "[]", "{}"}, string(value)) && !slices.Contains(ignore, name) {
			unread = append(unread, name)
		}
	}
	if len(unread) == 0 {
		return nil
	}
	slices.Sort(unread)
	return &unreadError{unread[0]}
}

// times are the fields that say when a message, or a conversation, was written.
type times struct {
	Snake events.JSON `json:"created_at"`
	Camel events.JSON `json:"createdAt"`
	Stamp events.JSON `json:"timestamp"`
}

// read returns the time in the form of an event, "" if there is none.
func (t times) read() (string, error) {
	for _, raw := range []events.JSON{t.Snake, t.Camel, t.Stamp} {
		switch jsontext.Value(raw).Kind() {
		case 0, 'n':
			continue
		case '"':
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				return "", oneLine(err)
			}
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return "", fmt.Errorf("the time %.64q is not of ISO 8601 with a zone, such as 2026-02-20T10:00:00Z", text)
			}
			return eventTime(at)
		case '0':
			var n float64
			if err := json.Unmarshal(raw, &n); err != nil {
				return "", oneLine(err)
			}
			return eventTime(numericTime(n))
		}
		return "", errors.New("a time is a text of ISO 8601, or a number of seconds, milliseconds or microseconds since 1970")
	}
	return "", nil
}

// numericTime returns the time of a number since 1970: of seconds, milliseconds from 1e11 on
// (1973), or microseconds from 1e14 on.
func numericTime(n float64) time.Time {
	switch {
	case n >= 1e14:
		return time.UnixMicro(int64(min(n, 1e18)))
	case n >= 1e11:
		return time.UnixMicro(int64(n * 1e3))
	}
	return time.UnixMicro(int64(max(n, -1) * 1e6))
}

func eventTime(at time.Time) (string, error) {
	text := events.TimeOf(at).String()
	if _, err := events.ParseTime(text); err != nil {
		return "", fmt.Errorf("the time %.64s is out of range; times are from 1970 to 9999", at.UTC().Format(time.RFC3339))
	}
	return text, nil
}

// file returns a picture or a file of the chat format in the form of an item's part.
func file(fields map[string]events.JSON) (events.JSON, error) {
	var part struct {
		Image *struct {
			URL    string      `json:"url"`
			Detail events.JSON `json:"detail"`
		} `json:"image_url"`
		File map[string]events.JSON `json:"file"`
	}
	raw, err := json.Marshal(fields, json.Deterministic(true))
	if err == nil {
		err = json.Unmarshal(raw, &part)
	}
	if err != nil {
		return nil, oneLine(err)
	}
	out := map[string]events.JSON{"type": events.Quote(events.InputFile)}
	switch {
	case part.Image != nil && part.Image.URL != "":
		out["type"], out["image_url"] = events.Quote(events.InputImage), events.Quote(part.Image.URL)
		if part.Image.Detail != nil {
			out["detail"] = part.Image.Detail
		}
	case len(part.File) > 0:
		for name, value := range part.File {
			if name != "type" {
				out[name] = value
			}
		}
	default:
		return nil, fmt.Errorf("a part of the type %s names no file", fields["type"])
	}
	return json.Marshal(out, json.Deterministic(true))
}

// knownParts are the types of parts that items have, and that are kept unchanged.
func knownParts() []string {
	return []string{events.InputText, events.OutputText, events.Refusal, events.InputImage, events.InputFile}
}

// unknownPart refuses a part that no model would be shown.
func unknownPart(kind string) error {
	hint := ""
	switch kind {
	case "tool_use", "tool_result":
		hint = "; a call is an entry of tool_calls, and its result a message of the role tool"
	}
	return fmt.Errorf("the type %.64q is not known; a part is text, image_url, file or refusal%s", kind, hint)
}

// spoken reports whether content is there at all: a text, also an empty one, or parts.
func spoken(content events.JSON) bool {
	k := jsontext.Value(content).Kind()
	return k != 0 && k != 'n' && strings.TrimSpace(string(content)) != "[]"
}
