package mcp

import (
	stdjson "encoding/json"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/runtime"
)

const maxErrorText = 4 << 10 // bytes

// result converts a server's answer into a result:
//
//   - isError: an error with the texts of the answer;
//   - structured content alone, or with texts with the same content: that content;
//   - one text: a JSON string;
//   - no content: null;
//   - with an image or a PDF: a list of parts that models see, input_text, input_image and
//     input_file; of other blocks, and of structured content, the JSON is a text;
//   - anything else: a list of the blocks as in MCP, sound in base64; with structured content,
//     {"content": that list, "structuredContent": ...}.
func (t *tool) result(a *mcp.CallToolResult) runtime.ToolResult {
	var texts []string
	for _, c := range a.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, strings.ToValidUTF8(text.Text, "\ufffd"))
		}
	}
	switch {
	case a.NeedsInput():
		return runtime.Failed("the MCP server " + t.link.def.Name + " asks for more input, which is not supported")
	case a.IsError:
		secrets, _ := t.link.def.secrets(t.manager.options.Variable)
		text := excerpt.Of(masked(strings.Join(texts, "\n"), secrets), maxErrorText)
		if strings.TrimSpace(text) == "" {
			text = "the tool failed without a message"
		}
		return runtime.Failed(text)
	}
	var out any
	switch onlyTexts := len(texts) == len(a.Content); {
	case slices.ContainsFunc(a.Content, func(c mcp.Content) bool { return isImage(c) || isDocument(c) }):
		out = shown(a, texts)
	case a.StructuredContent != nil && onlyTexts:
		out = exact(a.StructuredContent, texts)
	case a.StructuredContent != nil:
		out = map[string]any{"content": a.Content, "structuredContent": exact(a.StructuredContent, texts)}
	case onlyTexts && len(texts) == 1:
		out = texts[0]
	case len(a.Content) > 0:
		out = a.Content
	}
	raw, err := stdjson.Marshal(out)
	if err == nil { // the same bytes as elsewhere: <b> and not \u003cb\u003e
		value := events.JSON(raw)
		err = (*jsontext.Value)(&value).Format(jsontext.PreserveRawStrings(false))
		raw = value
	}
	if err != nil {
		return runtime.Failed("the answer of the MCP server " + t.link.def.Name + " cannot be encoded as JSON")
	}
	return runtime.Done(raw)
}

// isImage reports whether a block is an image.
func isImage(c mcp.Content) bool {
	switch c := c.(type) {
	case *mcp.ImageContent:
		return true
	case *mcp.EmbeddedResource:
		return c.Resource != nil && len(c.Resource.Blob) > 0 && strings.HasPrefix(c.Resource.MIMEType, "image/")
	}
	return false
}

// isDocument reports whether a block is a file that models read.
func isDocument(c mcp.Content) bool {
	r, is := c.(*mcp.EmbeddedResource)
	return is && r.Resource != nil && len(r.Resource.Blob) > 0 && r.Resource.MIMEType == "application/pdf"
}

// shownPart is a part of a result that a model sees.
type shownPart struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"`
	ImageURL string  `json:"image_url,omitempty"`
	FileData string  `json:"file_data,omitempty"`
	Filename string  `json:"filename,omitempty"`
}

// shown returns an answer with images as parts that models see.
func shown(a *mcp.CallToolResult, texts []string) []shownPart {
	text := func(s string) shownPart { return shownPart{Type: events.InputText, Text: &s} }
	var out []shownPart
	for _, c := range a.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			out = append(out, text(strings.ToValidUTF8(c.Text, "\ufffd")))
		case *mcp.ImageContent:
			out = append(out, shownPart{Type: events.InputImage, ImageURL: attachment.DataURL(c.MIMEType, c.Data)})
		case *mcp.EmbeddedResource:
			switch {
			case isImage(c):
				out = append(out, shownPart{Type: events.InputImage, ImageURL: attachment.DataURL(c.Resource.MIMEType, c.Resource.Blob)})
			case isDocument(c):
				out = append(out, shownPart{Type: events.InputFile, FileData: attachment.DataURL(c.Resource.MIMEType, c.Resource.Blob), Filename: path.Base(c.Resource.URI)})
			default:
				out = append(out, text(asText(c)))
			}
		default:
			out = append(out, text(asText(c)))
		}
	}
	if a.StructuredContent != nil {
		if structured := asText(exact(a.StructuredContent, texts)); !slices.Contains(texts, structured) {
			out = append(out, text(structured))
		}
	}
	return out
}

// asText returns a value as JSON, in a text.
func asText(v any) string {
	raw, err := stdjson.Marshal(v)
	if err != nil {
		return "(a block that cannot be encoded as JSON)"
	}
	return string(raw)
}

// exact returns structured content from a text with the same content, which servers
// should send too: the library decodes numbers as floats, and loses digits of long
// ones.
func exact(structured any, texts []string) any {
	for _, text := range texts {
		var same any
		if jsontext.Value(text).IsValid() && stdjson.Unmarshal([]byte(text), &same) == nil && reflect.DeepEqual(same, structured) {
			return stdjson.RawMessage(text)
		}
	}
	return structured
}
