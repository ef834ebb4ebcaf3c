package events

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DocumentMessageOf returns an item as a message of a ThreadDocument, with the calls that
// belong to it. The first elided calls are shown without their arguments. It returns nil for
// an item that is not a message of its own (see Item.IsMessage).
func DocumentMessageOf(i *Item, calls []*Item, elided int) *DocumentMessage {
	if !i.IsMessage() {
		return nil
	}
	m := &DocumentMessage{Role: DocumentUser, Content: []DocumentBlock{}, CreatedAt: i.micros() / 1000}
	switch i.Type {
	case ActionResult:
		var r CallResult
		_ = json.Unmarshal(i.Content, &r) // it was validated when it was written
		m.Content = append(m.Content, DocumentBlock{Type: ToolResultBlock, ToolUseID: r.CallID, Run: runOf(r)})
	case ActionExecute:
		m.Role, m.Content = DocumentAssistant, append(m.Content, toolUse(i, elided > 0))
	default:
		m.Role = documentRole(i.Role)
		m.addParts(i.Content, calls, elided)
	}
	return m
}

func documentRole(r Role) DocumentRole {
	switch r {
	case User:
		return DocumentUser
	case Assistant:
		return DocumentAssistant
	default:
		return DocumentInfo
	}
}

// runOf returns how a call ended.
func runOf(r CallResult) *ToolResult {
	if r.IsError {
		return &ToolResult{Status: ToolError, Error: TextOf(r.Output)}
	}
	return &ToolResult{Status: ToolSuccess, Result: r.Output}
}

// toolUse returns a call as a block.
func toolUse(i *Item, elided bool) DocumentBlock {
	var c Call
	_ = json.Unmarshal(i.Content, &c) // it was validated when it was written
	b := DocumentBlock{Type: ToolUseBlock, ID: c.CallID, Name: c.Name, Input: c.Arguments, Elided: elided}
	if elided {
		b.Input = nil
	}
	return b
}

// addParts adds the parts of a message, and its calls: each call once, where the content has
// it, else at the end.
func (m *DocumentMessage) addParts(content JSON, calls []*Item, elided int) {
	shown := map[string]DocumentBlock{}
	var order []string
	for n, c := range calls {
		b := toolUse(c, n < elided)
		if _, twice := shown[b.ID]; !twice {
			order = append(order, b.ID)
		}
		shown[b.ID] = b
	}
	var parts []JSON
	_ = json.Unmarshal(content, &parts) // it was validated when it was written
	for _, raw := range parts {
		b := documentBlock(raw)
		if b.Type == ToolUseBlock {
			if of, ok := shown[b.ID]; ok {
				b = of
				delete(shown, b.ID)
			}
		}
		m.Content = append(m.Content, b)
	}
	for _, id := range order {
		if b, ok := shown[id]; ok {
			m.Content = append(m.Content, b)
		}
	}
}

// documentBlock returns a part of a message as a block.
func documentBlock(raw JSON) DocumentBlock {
	var p struct {
		Type       string `json:"type"`
		Text       JSON   `json:"text"`
		Refusal    JSON   `json:"refusal"`
		ImageURL   JSON   `json:"image_url"`
		Summary    JSON   `json:"summary"`
		Content    JSON   `json:"content"`
		ToolCallID JSON   `json:"toolCallId"`
		Input      JSON   `json:"input"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return DocumentBlock{Type: PartBlock, Part: raw}
	}
	name, isCall := strings.CutPrefix(p.Type, ToolPart)
	id := stringOf(p.ToolCallID)
	switch {
	case p.Type == InputText || p.Type == OutputText:
		text := stringOf(p.Text)
		return DocumentBlock{Type: TextBlock, Text: &text}
	case p.Type == Refusal:
		text := stringOf(p.Refusal)
		return DocumentBlock{Type: TextBlock, Text: &text}
	case p.Type == InputImage && stringOf(p.ImageURL) != "":
		return DocumentBlock{Type: ImageBlock, Source: imageSource(stringOf(p.ImageURL))}
	case p.Type == Reasoning:
		text := thought(p.Text, p.Content, p.Summary)
		return DocumentBlock{Type: ThinkingBlock, Thinking: &text}
	case isCall && name != "" && id != "":
		return DocumentBlock{Type: ToolUseBlock, ID: id, Name: name, Input: p.Input}
	}
	return DocumentBlock{Type: PartBlock, Part: raw}
}

// imageSource returns where an image is, from its URL.
func imageSource(url string) *ImageSource {
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		if kind, data, ok := strings.Cut(rest, ";base64,"); ok {
			return &ImageSource{Type: "base64", MediaType: kind, Data: data}
		}
	}
	return &ImageSource{Type: "url", URL: url}
}

// thought returns the text of a reasoning part: its own, else that of its content, else its
// summary.
func thought(text, content, summary JSON) string {
	if said := stringOf(text); said != "" {
		return said
	}
	for _, list := range []JSON{content, summary} {
		var of []struct {
			Text JSON `json:"text"`
		}
		if jsontext.Value(list).Kind() != '[' || json.Unmarshal(list, &of) != nil {
			continue
		}
		var said []string
		for _, one := range of {
			if s := stringOf(one.Text); s != "" {
				said = append(said, s)
			}
		}
		if len(said) > 0 {
			return strings.Join(said, "\n")
		}
	}
	return ""
}

// DocumentQueuedOf returns what waits for a thread's agent as a document shows it. It returns
// nil for a call of a tool, which is no message.
func DocumentQueuedOf(q Queued) (*DocumentQueued, string) {
	var item NewItem
	if json.Unmarshal(q.Item, &item) != nil || item.Type != Message {
		return nil, ""
	}
	m := DocumentMessageOf(&Item{Type: item.Type, Role: item.Role, Content: item.Content}, nil, 0)
	m.MessageID = &q.MessageID
	if at, err := ParseTime(item.CreatedAt); err == nil {
		m.CreatedAt = int64(at) / 1000
	}
	return &DocumentQueued{ID: q.ID, QueuedMessage: *m}, item.ID
}

// Document returns the thread as a document, without what is not in its own read model: its
// messages and its queue.
func (t *Thread) Document() *ThreadDocument {
	var skills []DocumentSkill
	for _, s := range t.ActivatedSkills {
		skills = append(skills, DocumentSkill(s))
	}
	return &ThreadDocument{
		V: t.Changes, ID: t.ID, Created: t.CreatedAtMicros / 1000, Messages: []DocumentMessage{}, Title: t.Title, Archived: t.Archived,
		Draft: t.Draft, AutoSubmitDraft: t.AutoSubmitDraft, AgentMode: t.AgentMode, MaxTokens: t.MaxTokens, NextMessageID: t.NextMessageID,
		MainThreadID: t.MainThreadID, OriginThreadID: t.OriginThreadID, ForkPointIndex: t.ForkPointIndex, Env: t.Env,
		ActivatedSkills: skills,
	}
}
