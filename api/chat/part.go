package chat

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runview"
)

// States of a call in a part.
const (
	stateInput     = "input-available"
	stateRequested = "approval-requested"
	stateResponded = "approval-responded"
	stateOutput    = runview.ResultState
	stateError     = runview.ErrorState
	stateDenied    = "output-denied"
)

// output returns the output of a call, null if there is none.
func output(v events.JSON) events.JSON {
	if len(v) == 0 {
		return events.JSON("null")
	}
	return v
}

// sources returns the web pages that a text cites.
func sources(key string, list []runview.Annotation) []Chunk {
	var out []Chunk
	for _, c := range list {
		if c.Type == "url_citation" && c.URL != "" {
			out = append(out, Chunk{Type: typeSourceURL, SourceID: key + "-" + c.URL, URL: c.URL, Title: c.Title})
		}
	}
	return out
}

// passOn returns a part, or a reactor's chunk, as a chunk of the same type, if clients know
// that and it has what they need of it.
func passOn(kind string, raw events.JSON) (Chunk, bool) {
	var d struct {
		SourceID  string      `json:"sourceId"`
		URL       string      `json:"url"`
		MediaType string      `json:"mediaType"`
		Title     string      `json:"title"`
		Filename  string      `json:"filename"`
		ID        string      `json:"id"`
		Data      events.JSON `json:"data"`
		Transient bool        `json:"transient"`
	}
	err := json.Unmarshal(raw, &d)
	c := Chunk{Type: kind}
	switch kind {
	case typeSourceURL:
		c.SourceID, c.URL, c.Title = d.SourceID, d.URL, d.Title
		return c, err == nil && c.SourceID != "" && c.URL != ""
	case typeSourceDocument:
		c.SourceID, c.MediaType, c.Title, c.Filename = d.SourceID, d.MediaType, d.Title, d.Filename
		return c, err == nil && c.SourceID != "" && c.MediaType != "" && c.Title != ""
	case typeFile:
		c.URL, c.MediaType, c.Filename = d.URL, d.MediaType, d.Filename
		return c, err == nil && c.URL != "" && c.MediaType != ""
	case events.InputImage, events.InputFile:
		p := runview.ReadPart(raw)
		c = fileOf(&p)
		return c, c.URL != ""
	case openresponses.ExtensionPart + "image_generation_call":
		return generatedImage(raw)
	}
	if !ownData(kind) {
		return Chunk{}, false
	}
	c.ID, c.Data, c.Transient = d.ID, d.Data, d.Transient
	if err != nil || d.Data == nil {
		c.ID, c.Data, c.Transient = "", raw, false
	}
	return c, jsontext.Value(c.Data).IsValid()
}

// generatedImage returns an image that a provider's own tool has made.
func generatedImage(raw events.JSON) (Chunk, bool) {
	var d struct {
		Item struct {
			Result string `json:"result"`
			Format string `json:"output_format"`
		} `json:"item"`
	}
	err := json.Unmarshal(raw, &d)
	c := Chunk{Type: typeFile, URL: d.Item.Result, MediaType: "image/" + cmp.Or(d.Item.Format, "png")}
	if c.URL != "" && !strings.HasPrefix(c.URL, fileURL) {
		c.URL = "data:" + c.MediaType + ";base64," + c.URL
	}
	return c, err == nil && c.URL != ""
}

// ownData reports whether a type is one of a program's own data parts.
func ownData(kind string) bool {
	if !strings.HasPrefix(kind, dataPrefix) || len(kind) == len(dataPrefix) || strings.HasPrefix(kind, skeinPrefix) {
		return false
	}
	switch kind {
	case events.ChunkContextID, events.ChunkContextSubstate, events.ChunkThreadPing:
		return false
	}
	return true
}

// fileOf returns an image or a file as a chunk; without a URL if the part names none.
func fileOf(p *runview.Part) Chunk {
	c := Chunk{Type: typeFile, URL: p.URL, MediaType: p.MediaType, Filename: p.Name}
	for _, url := range []string{p.ImageURL, p.FileData, p.FileURL} {
		if c.URL == "" {
			c.URL = url
		}
	}
	if c.MediaType == "" {
		c.MediaType = mediaOf(c.URL)
	}
	if c.MediaType == "" && p.Type == events.InputImage {
		c.MediaType = "image/*"
	} else if c.MediaType == "" {
		c.MediaType = "application/octet-stream"
	}
	return c
}

// mediaOf returns the media type of a data URL, "" for any other.
func mediaOf(url string) string {
	rest, is := strings.CutPrefix(url, "data:")
	if !is {
		return ""
	}
	kind, _, _ := strings.Cut(rest, ",")
	kind, _, _ = strings.Cut(kind, ";")
	return kind
}
