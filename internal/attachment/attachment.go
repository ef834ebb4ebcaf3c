package attachment

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Bounds of contents, in bytes.
const (
	MaxBytes  = 20 << 20  // of one content
	ItemBytes = 448 << 10 // an item whose JSON has at most so many keeps its contents
	smallest  = 16 << 10  // a content of fewer stays in its part
)

const (
	scheme = "skein:"
	folder = "/attachments/"
)

// Content is a content that was found in a part.
type Content struct {
	Data      []byte
	MediaType string
	Name      string // of the file, if the part says it
}

// Path returns where the content lies in the files of its thread: the same content at the same path.
func (c Content) Path() string {
	sum := sha256.Sum256(c.Data)
	return folder + hex.EncodeToString(sum[:]) + extension(c.MediaType)
}

// extension returns the extension of a file of a media type, empty if it is not a usual one.
func extension(mediaType string) string {
	switch mediaType {
	case "image/png", "image/gif", "image/webp":
		return "." + strings.TrimPrefix(mediaType, "image/")
	case "image/jpeg":
		return ".jpg"
	case "application/pdf":
		return ".pdf"
	}
	return ""
}

// what returns how a refusal names the content.
func (c Content) what() string {
	switch {
	case c.Name != "":
		return "the file " + c.Name
	case strings.HasPrefix(c.MediaType, "image/"):
		return "the image"
	}
	return "the file"
}

// Extract returns a JSON value of more than most bytes with references in place of its large contents,
// each of which was passed to store; a smaller value stays as it is. They are the image_url of an input_image, the file_data of an input_file, the url
// of a file, and the result of an image_generation_call, at any depth. The error is a
// payload_too_large that names the file, or that of store.
func Extract(raw events.JSON, most int, store func(Content) error) (events.JSON, error) {
	if len(raw) <= most {
		return raw, nil
	}
	return each(raw, smallest, func(f field) (string, error) {
		c, ok := f.content()
		if !ok || len(c.Data) < smallest {
			return f.value, nil
		}
		if len(c.Data) > MaxBytes {
			return "", events.TooLarge(c.what(), int64(len(c.Data)), MaxBytes)
		}
		if err := store(c); err != nil {
			return "", err
		}
		return scheme + c.Path(), nil
	})
}

// Rewrite returns a JSON value with others in place of its references. The function gets the path of
// each; bare reports whether the field holds base64 alone, and not a URL. It returns "" for a
// content that cannot be had: its part becomes a text that says so.
func Rewrite(raw events.JSON, to func(path string, bare bool) string) events.JSON {
	if !bytes.Contains(raw, []byte(`"`+scheme+folder)) {
		return raw
	}
	out, _ := each(raw, 0, func(f field) (string, error) { // the function returns no error
		path, is := strings.CutPrefix(f.value, scheme)
		if !is || !strings.HasPrefix(path, folder) {
			return f.value, nil
		}
		return to(path, f.bare), nil
	})
	return out
}

// URL returns where the edge serves the file of a reference of a thread.
func URL(thread, path string) string {
	return "/api/threads/" + url.PathEscape(thread) + "/files" + path
}

// Served returns a JSON value with URLs in place of its references, for readers over HTTP.
func Served(raw events.JSON, thread string) events.JSON {
	return Rewrite(raw, func(path string, _ bool) string { return URL(thread, path) })
}

// SaysNothing reports whether the content of a message has neither a text, blanks aside, nor a part of
// another kind.
func SaysNothing(raw events.JSON) bool {
	var parts []map[string]events.JSON
	if json.Unmarshal(raw, &parts) != nil {
		return false
	}
	return !slices.ContainsFunc(parts, func(p map[string]events.JSON) bool {
		return p["text"] == nil || strings.TrimSpace(textOf(p["text"])) != ""
	})
}

// DataURL returns a content as a data URL.
func DataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// field is a field of a part that holds a content, or refers to one.
type field struct {
	value string
	bare  bool   // base64 alone, and not a data URL
	name  string // of the file
}

// content returns the content of a field, if it is there.
func (f field) content() (Content, bool) {
	mediaType, coded := "", f.value
	if rest, is := strings.CutPrefix(f.value, "data:"); is {
		head, body, found := strings.Cut(rest, ",")
		kind, encoded := strings.CutSuffix(head, ";base64")
		if !found || !encoded {
			return Content{}, false
		}
		if parsed, _, err := mime.ParseMediaType(kind); err == nil {
			mediaType = parsed
		}
		coded = body
	} else if !f.bare {
		return Content{}, false
	}
	data, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		if data, err = base64.RawStdEncoding.DecodeString(coded); err != nil {
			return Content{}, false
		}
	}
	if mediaType == "" {
		mediaType, _, _ = mime.ParseMediaType(http.DetectContentType(data)) // it returns valid ones
	}
	return Content{Data: data, MediaType: mediaType, Name: f.name}, true
}

// fieldOf returns the name of the field of a part that holds a content, "" if it has none.
func fieldOf(partType string) (name string, bare bool) {
	switch partType {
	case events.InputImage:
		return "image_url", false
	case events.InputFile:
		return "file_data", false
	case "file":
		return "url", false
	case "image_generation_call":
		return "result", true
	}
	return "", false
}

// each replaces the contents of all parts in a JSON value that is larger than least bytes.
func each(raw events.JSON, least int, replace func(field) (string, error)) (events.JSON, error) {
	if len(raw) <= least {
		return raw, nil
	}
	switch jsontext.Value(raw).Kind() {
	case '[':
		var list []events.JSON
		if json.Unmarshal(raw, &list) != nil {
			return raw, nil
		}
		changed := false
		for i, value := range list {
			out, err := each(value, least, replace)
			if err != nil {
				return nil, err
			}
			changed = changed || !bytes.Equal(out, value)
			list[i] = out
		}
		return encoded(raw, list, changed)
	case '{':
		var fields map[string]events.JSON
		if json.Unmarshal(raw, &fields) != nil {
			return raw, nil
		}
		return eachField(raw, fields, least, replace)
	}
	return raw, nil
}

func eachField(raw events.JSON, fields map[string]events.JSON, least int, replace func(field) (string, error)) (events.JSON, error) {
	own, bare := fieldOf(textOf(fields["type"]))
	changed := false
	for name, value := range fields {
		if name != own {
			out, err := each(value, least, replace)
			if err != nil {
				return nil, err
			}
			changed = changed || !bytes.Equal(out, value)
			fields[name] = out
			continue
		}
		before := textOf(value)
		if before == "" {
			continue
		}
		after, err := replace(field{before, bare, textOf(fields["filename"])})
		switch {
		case err != nil:
			return nil, err
		case after == "":
			return lost(before), nil
		case after != before:
			fields[name], changed = events.Quote(after), true
		}
	}
	return encoded(raw, fields, changed)
}

// lost returns the part that says that a content cannot be had.
func lost(reference string) events.JSON {
	text := events.Quote("(the file " + strings.TrimPrefix(reference, scheme) + " is not available here)")
	return events.JSON(`{"text":` + string(text) + `,"type":"` + events.InputText + `"}`)
}

func encoded(raw events.JSON, value any, changed bool) (events.JSON, error) {
	if !changed {
		return raw, nil
	}
	return json.Marshal(value, json.Deterministic(true))
}

func textOf(raw events.JSON) (s string) {
	if jsontext.Value(raw).Kind() != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
