package console

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/console/markdown"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// turn is an item of a conversation, prepared for its template.
type turn struct {
	events.Item
	viewer
	Speaker string
	Parts   []part
}

// Row returns the id of its element.
func (t *turn) Row() string { return rowID(t.ID) }

// maxEdited is the size of the longest message, in bytes, that can be edited on the page.
const maxEdited = 64 << 10

// Editable reports whether the reader may change the message and ask again.
func (t *turn) Editable() bool {
	return t.MayWrite && t.Type == events.Message && t.Role == events.User && len(t.Content) <= maxEdited
}

// Text returns the text of the message for editing.
func (t *turn) Text() string { return events.TextOfParts(t.Content) }

// part is one piece of an item.
type part struct {
	Kind      string // text, reasoning, call, image, file, note, error or json
	HTML      template.HTML
	Text      string
	ID        string // the id of its element, if it can be opened
	Name      string
	CallID    string
	Arguments events.JSON
	Output    events.JSON
	State     string // of a call: done, error, or pending until there is a result
	Image     string // address of an image that is shown
}

// rawPart is a part of a message as it is stored.
type rawPart struct {
	Type       string      `json:"type"`
	Text       string      `json:"text"`
	Refusal    string      `json:"refusal"`
	ToolCallID string      `json:"toolCallId"`
	Input      events.JSON `json:"input"`
	Output     events.JSON `json:"output"`
	ErrorText  string      `json:"errorText"`
	State      string      `json:"state"`
	ImageURL   events.JSON `json:"image_url"`
	FileURL    string      `json:"file_url"`
	Filename   string      `json:"filename"`
	Summary    []rawPart   `json:"summary"`
	Content    events.JSON `json:"content"`
}

// turnsOf returns items, newest first, as the turns of a conversation, oldest first. What
// belongs to a message is shown with it.
func (c *talk) turnsOf(items []events.Item, v viewer) []*turn {
	results := map[string]events.CallResult{}
	for _, i := range items {
		var r events.CallResult
		if i.Type == events.ActionResult && json.Unmarshal(i.Content, &r) == nil {
			results[r.CallID] = r
		}
	}
	var turns []*turn
	shown := map[string]bool{}
	for _, i := range slices.Backward(items) {
		t := &turn{Item: i, viewer: v, Speaker: cmp.Or(string(i.Role), string(i.Type))}
		switch i.Type {
		case events.Message:
			t.Parts = c.messageParts(&i, results, shown)
		case events.ActionExecute:
			var call events.Call
			if i.CallOf != nil || json.Unmarshal(i.Content, &call) != nil {
				continue
			}
			t.Speaker = "tool"
			t.Parts = []part{callPart(i.ID, call.Name, call.CallID, call.Arguments, results)}
			shown[call.CallID] = true
		case events.ActionResult:
			var r events.CallResult
			if json.Unmarshal(i.Content, &r) != nil || shown[r.CallID] || i.ParentItemID != "" {
				continue
			}
			t.Speaker = "tool"
			t.Parts = []part{{Kind: "call", ID: i.ID + "-r", Name: cmp.Or(r.Name, "result"), CallID: r.CallID, Output: r.Output, State: resultState(r.IsError)}}
		default:
			t.Parts = []part{{Kind: "json", ID: i.ID + "-j", HTML: page.ShowJSON(i.Content)}}
		}
		turns = append(turns, t)
	}
	return turns
}

func resultState(failed bool) string {
	if failed {
		return "error"
	}
	return "done"
}

func callPart(item, name, call string, arguments events.JSON, results map[string]events.CallResult) part {
	p := part{Kind: "call", ID: item + "-" + call, Name: name, CallID: call, Arguments: arguments, State: "pending"}
	if r, ok := results[call]; ok {
		p.Output, p.State = r.Output, resultState(r.IsError)
	}
	return p
}

// messageParts returns the parts of a message.
func (c *talk) messageParts(i *events.Item, results map[string]events.CallResult, shown map[string]bool) []part {
	var raws []rawPart
	if err := json.Unmarshal(i.Content, &raws); err != nil {
		return []part{{Kind: "json", ID: i.ID + "-j", HTML: page.ShowJSON(i.Content)}}
	}
	return c.partsOf(i.ID, raws, results, shown)
}

// partsOf returns the parts of the message with an id.
func (c *talk) partsOf(message string, raws []rawPart, results map[string]events.CallResult, shown map[string]bool) []part {
	var parts []part
	for n, r := range raws {
		id := message + "-" + strconv.Itoa(n)
		switch {
		case r.Type == events.InputText || r.Type == events.OutputText:
			if strings.TrimSpace(r.Text) != "" {
				parts = append(parts, part{Kind: "text", HTML: c.texts.Render(r.Text)}) // texts of models and people are Markdown
			}
		case r.Type == events.Reasoning:
			parts = append(parts, part{Kind: "reasoning", ID: id, HTML: c.texts.Render(reasoningText(r))})
		case r.Type == "error" && r.ErrorText != "":
			parts = append(parts, part{Kind: "error", Text: markdown.Visible(r.ErrorText)})
		case r.Type == events.Refusal:
			parts = append(parts, part{Kind: "note", Text: r.Refusal})
		case r.Type == events.InputImage:
			parts = append(parts, imagePart(r))
		case r.Type == events.InputFile:
			parts = append(parts, part{Kind: "file", Text: cmp.Or(r.Filename, r.FileURL, "a file")})
		case strings.HasPrefix(r.Type, events.ToolPart):
			p := callPart(message, strings.TrimPrefix(r.Type, events.ToolPart), r.ToolCallID, r.Input, results)
			if len(r.Output) > 0 {
				p.Output, p.State = r.Output, "done"
			}
			if r.ErrorText != "" {
				p.Output, p.State = events.Quote(r.ErrorText), "error"
			}
			shown[r.ToolCallID] = true
			parts = append(parts, p)
		default:
			raw, _ := json.Marshal(r, json.OmitZeroStructFields(true)) // it was decoded
			parts = append(parts, part{Kind: "json", ID: id, Name: r.Type, HTML: page.ShowJSON(raw)})
		}
	}
	return parts
}

func reasoningText(r rawPart) string {
	texts := []string{r.Text}
	for _, s := range r.Summary {
		texts = append(texts, s.Text)
	}
	return strings.TrimSpace(strings.Join(texts, "\n\n"))
}

// imagePart returns an image. An image within the message is shown; for any other a link is shown,
// so that nothing is loaded from other servers.
func imagePart(r rawPart) part {
	address := events.TextOf(r.ImageURL)
	for _, kind := range []string{"png", "jpeg", "gif", "webp"} {
		if strings.HasPrefix(address, "data:image/"+kind+";base64,") {
			return part{Kind: "image", Image: address, Text: cmp.Or(r.Filename, "an image of the message")}
		}
	}
	return part{Kind: "file", Text: cmp.Or(r.Filename, address, "an image")}
}

// Source returns the address of an image. It is a data URL of a raster image, which cannot run
// scripts.
func (p part) Source() template.URL { return template.URL(p.Image) }
