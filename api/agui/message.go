package agui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runview"
)

// Roles that only this protocol has.
const (
	roleTool      = "tool"
	roleReasoning = "reasoning"
	roleActivity  = "activity"
)

// partError is the type of the part that says why a run has failed.
const partError = "error"

// message is a message of AG-UI.
type message struct {
	ID           string      `json:"id"`
	Role         string      `json:"role"`
	Content      events.JSON `json:"content,omitzero"`
	ToolCalls    []toolCall  `json:"toolCalls,omitempty"`
	ToolCallID   string      `json:"toolCallId,omitzero"`
	Error        string      `json:"error,omitzero"`
	ActivityType string      `json:"activityType,omitzero"`

	item string // of a thread: the item that it is of
	open bool   // of a thread: a run that is active writes it
}

// toolCall is a call of a tool.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`

	caller bool // of a thread: its caller makes it
}

// names makes the ids of the messages of an item, in the order of its parts: the same for a stream and
// a snapshot.
type names struct {
	item                        string
	texts, thoughts, activities int
}

// text returns the id of the next message of the assistant.
func (n *names) text() string {
	n.texts++
	return n.last()
}

// last returns the id of the message to which a call belongs.
func (n *names) last() string {
	if n.texts = max(n.texts, 1); n.texts == 1 {
		return n.item
	}
	return n.item + "-" + strconv.Itoa(n.texts-1)
}

// thought returns the id of the next reasoning.
func (n *names) thought() string {
	n.thoughts++
	return n.item + "-r" + strconv.Itoa(n.thoughts-1)
}

// activity returns the id of the next activity.
func (n *names) activity() string {
	n.activities++
	return n.item + "-a" + strconv.Itoa(n.activities-1)
}

// result returns the id of the result of a call.
func (n *names) result(call string) string { return n.item + "-" + call }

// metadata is what an item keeps for clients of this protocol.
type metadata struct {
	AGUI struct {
		ID    string `json:"id,omitzero"` // that its client gave the message
		asked        // of the last message of a request: the request
	} `json:"agui"`
}

// messagesOf returns an item as messages; none if it is not shown.
func messagesOf(item *events.Item) []message {
	if item.Silent || item.ParentItemID != "" || item.Depth != 0 { // a run's own record of a call
		return nil
	}
	content := attachment.Served(item.Content, item.ThreadID)
	id := cmp.Or(item.SourceItemID, item.ID) // a fork has copies, and the client the originals
	var list []message
	switch {
	case item.Type == events.ActionResult:
		var of events.CallResult
		_ = json.Unmarshal(content, &of) // it was checked when it was stored
		m := message{ID: id, Role: roleTool, ToolCallID: of.CallID, Content: events.Quote(events.TextOf(of.Output))}
		if of.IsError {
			m.Error = events.TextOf(of.Output)
		}
		list = []message{m}
	case item.Type != events.Message:
		return nil
	case item.Role == events.Assistant:
		list = answerOf(id, content)
	default:
		list = []message{{ID: id, Role: string(item.Role), Content: shownContent(content, item.Role)}}
	}
	var own metadata
	if len(list) == 1 && json.Unmarshal(item.Metadata, &own) == nil && own.AGUI.ID != "" {
		list[0].ID = own.AGUI.ID
	}
	for i := range list {
		list[i].item, list[i].open = item.ID, item.Status == events.ItemPending
	}
	return list
}

// answerOf returns an answer of the assistant as messages. Results follow the calls.
func answerOf(item string, content events.JSON) (list []message) {
	var parts []events.JSON
	_ = json.Unmarshal(content, &parts) // content that is not a list has no parts
	ids, at := names{item: item}, -1    // at: the message to which a call belongs
	for _, raw := range parts {
		p := runview.ReadPart(raw)
		text, plain := p.PlainText()
		switch {
		case plain && text != "":
			list = append(list, message{ID: ids.text(), Role: string(events.Assistant), Content: events.Quote(text)})
			at = len(list) - 1
		case plain:
		case p.Type == events.Reasoning:
			if forms := p.Reasoning(); len(forms) > 0 {
				list = append(list, message{ID: ids.thought(), Role: roleReasoning, Content: events.Quote(forms[0])})
			}
		case p.Type == partError: // RUN_ERROR has told it
		case runview.Tool(p.Type) == "":
			list = append(list, message{ID: ids.activity(), Role: roleActivity, ActivityType: p.Type, Content: raw})
		case p.ToolCallID != "":
			if at < 0 {
				list = append(list, message{ID: ids.last(), Role: string(events.Assistant)})
				at = len(list) - 1
			}
			c := toolCall{ID: p.ToolCallID, Type: "function", caller: p.State == events.CallerState}
			c.Function.Name, c.Function.Arguments = runview.Tool(p.Type), argumentsOf(p.Input)
			list[at].ToolCalls = append(list[at].ToolCalls, c)
			switch p.State {
			case runview.ResultState:
				list = append(list, resultOf(ids.result(c.ID), c.ID, p.Output, ""))
			case runview.ErrorState:
				list = append(list, resultOf(ids.result(c.ID), c.ID, nil, p.Failure()))
			}
		}
	}
	return list
}

// resultOf returns the result of a call, or why it failed, as a message.
func resultOf(id, call string, output events.JSON, failure string) message {
	m := message{ID: id, Role: roleTool, ToolCallID: call, Content: events.Quote(events.TextOf(output)), Error: failure}
	if failure != "" {
		m.Content = events.Quote(failure)
	}
	return m
}

// argumentsOf returns the arguments of a call as a text.
func argumentsOf(input events.JSON) string {
	if k := jsontext.Value(input).Kind(); k == 0 || k == 'n' {
		return "{}"
	}
	return events.TextOf(input)
}

// part is a part of the content of a message.
type part struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitzero"`
	Source   *source `json:"source,omitzero"`
	MimeType string  `json:"mimeType,omitzero"` // of binary, as it was before 1.0
	Data     string  `json:"data,omitzero"`     // likewise
	URL      string  `json:"url,omitzero"`      // likewise
	Filename string  `json:"filename,omitzero"` // likewise
}

// source says where the bytes of a part are.
type source struct {
	Type     string `json:"type"` // data, url, file
	Value    string `json:"value"`
	MimeType string `json:"mimeType,omitzero"`
}

// shownContent returns the content of a user's message: a text, or parts if it has others.
func shownContent(content events.JSON, role events.Role) events.JSON {
	var stored []events.JSON
	_ = json.Unmarshal(content, &stored) // content that is not a list has no parts
	parts, texts, plain := []part{}, []string{}, role != events.User
	for _, raw := range stored {
		p := runview.ReadPart(raw)
		if text, is := p.PlainText(); is {
			texts, parts = append(texts, text), append(parts, part{Type: "text", Text: &text})
			continue
		}
		for _, url := range []string{p.ImageURL, p.FileData, p.FileURL, p.URL} {
			if url == "" {
				continue
			}
			kind := "document"
			if p.ImageURL != "" {
				kind = "image"
			}
			parts = append(parts, part{Type: kind, Source: sourceOf(url)})
			break
		}
	}
	if plain || len(parts) == len(texts) {
		return events.Quote(strings.Join(texts, "\n"))
	}
	return marshal(parts)
}

// sourceOf returns a URL as a source.
func sourceOf(url string) *source {
	if head, data, is := strings.Cut(url, ";base64,"); is && strings.HasPrefix(head, "data:") {
		kind, _, _ := strings.Cut(strings.TrimPrefix(head, "data:"), ";")
		return &source{"data", data, kind}
	}
	return &source{Type: "url", Value: url}
}

// text returns what a message says, without its images and files.
func (m *message) text() string {
	if jsontext.Value(m.Content).Kind() == '"' {
		return events.TextOf(m.Content)
	}
	var parts []part
	_ = json.Unmarshal(m.Content, &parts) // a message without content says nothing
	var texts []string
	for _, p := range parts {
		if p.Text != nil {
			texts = append(texts, *p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// storedContent returns the content of a message of a user as parts of an item.
func (m *message) storedContent(path string) (events.JSON, error) {
	if jsontext.Value(m.Content).Kind() == '"' {
		return marshal([]map[string]string{{"type": events.InputText, "text": events.TextOf(m.Content)}}), nil
	}
	var parts []part
	if err := json.Unmarshal(m.Content, &parts); err != nil || len(parts) == 0 {
		return nil, events.Invalid(path+"/content", "the content of a message is a text, or a list of parts")
	}
	var out []map[string]string
	for i, p := range parts {
		at := path + "/content/" + strconv.Itoa(i)
		switch {
		case p.Type == "text" && p.Text != nil:
			out = append(out, map[string]string{"type": events.InputText, "text": *p.Text})
			continue
		case p.Type == "binary" && p.Data != "":
			p.Source = &source{"data", p.Data, p.MimeType}
		case p.Type == "binary" && p.URL != "":
			p.Source = &source{"url", p.URL, p.MimeType}
		}
		if !slices.Contains([]string{"image", "audio", "video", "document", "binary"}, p.Type) || p.Source == nil || p.Source.Value == "" {
			return nil, events.Invalid(at, "a part is text, image, audio, video or document, and all but a text have a source")
		}
		url, data := p.Source.Value, p.Source.Type == "data"
		if data {
			url = "data:" + p.Source.MimeType + ";base64," + url
		} else if p.Source.Type != "url" || !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			return nil, events.Invalid(at+"/source", "the source of a part is data, or a url with http or https")
		}
		fields := map[string]string{"type": events.InputFile}
		switch {
		case p.Type == "image" || strings.HasPrefix(p.Source.MimeType, "image/"):
			fields["type"], fields["image_url"] = events.InputImage, url
		case data:
			fields["file_data"] = url
		default:
			fields["file_url"] = url
		}
		if p.Filename != "" {
			fields["filename"] = p.Filename
		}
		out = append(out, fields)
	}
	return marshal(out), nil
}
