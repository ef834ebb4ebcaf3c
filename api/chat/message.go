package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runview"
)

// Message is a UI message of the AI SDK.
type Message struct {
	ID       string      `json:"id"`
	Role     string      `json:"role"`
	Metadata events.JSON `json:"metadata,omitzero"`
	Parts    []Part      `json:"parts"`
}

// Part is a part of a UI message. Which fields are set depends on Type.
type Part struct {
	Type             string      `json:"type"`
	Text             *string     `json:"text,omitzero"`
	State            string      `json:"state,omitzero"`
	ToolCallID       string      `json:"toolCallId,omitzero"`
	ToolName         string      `json:"toolName,omitzero"` // of a dynamic-tool
	Input            events.JSON `json:"input,omitzero"`
	Output           events.JSON `json:"output,omitzero"`
	ErrorText        string      `json:"errorText,omitzero"`
	ProviderExecuted bool        `json:"providerExecuted,omitzero"`
	Preliminary      bool        `json:"preliminary,omitzero"`
	Approval         *Approval   `json:"approval,omitzero"`
	SourceID         string      `json:"sourceId,omitzero"`
	URL              string      `json:"url,omitzero"`
	MediaType        string      `json:"mediaType,omitzero"`
	Title            string      `json:"title,omitzero"`
	Filename         string      `json:"filename,omitzero"`
	FileID           string      `json:"file_id,omitzero"` // of a file that was uploaded before, in place of its URL
	ID               string      `json:"id,omitzero"`
	Data             events.JSON `json:"data,omitzero"`

	source string // of a file of the thread: its URL, if URL is its content
}

// Approval is the approval of a call.
type Approval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitzero"`
	Reason   string `json:"reason,omitzero"`
}

// Types of parts that are no chunks.
const (
	partStepStart   = "step-start"
	partDynamicTool = "dynamic-tool"
)

// tool returns the tool that a part is a call of, "" if it is none.
func (p *Part) tool() string {
	if p.Type == partDynamicTool {
		return p.ToolName
	}
	return runview.Tool(p.Type)
}

// metadata is what the item of a message keeps for clients of this protocol.
type metadata struct {
	Chat struct {
		ID       string      `json:"id,omitzero"`       // the client's, if the item has another
		Metadata events.JSON `json:"metadata,omitzero"` // the client's own
		Request  string      `json:"request,omitzero"`  // the digest of the request, if it had an Idempotency-Key
	} `json:"chat"`
}

// messageID returns the client's id of a message.
func messageID(item string, raw events.JSON) string {
	var m metadata
	if json.Unmarshal(raw, &m) == nil && m.Chat.ID != "" {
		return m.Chat.ID
	}
	return item
}

// messageOf returns an item as a UI message; nil if it is shown as none. approvals has the
// approvals of the run that it answers, by call.
func messageOf(item *events.Item, approvals map[string]events.CallApproval) *Message {
	if item.Type != events.Message || item.Silent || item.Depth != 0 {
		return nil
	}
	m := &Message{ID: messageID(item.ID, item.Metadata), Role: string(item.Role), Parts: []Part{}}
	if item.Role == events.Developer {
		m.Role = string(events.System)
	}
	var own metadata
	if json.Unmarshal(item.Metadata, &own) == nil {
		m.Metadata = own.Chat.Metadata
	}
	var list []events.JSON
	_ = json.Unmarshal(attachment.Served(item.Content, item.ThreadID), &list) // content that is not a list has no parts
	step := false                                                             // whether a step has begun that has no call yet
	for i, raw := range list {
		p := runview.ReadPart(raw)
		if item.Role == events.Assistant && !step && (runview.Tool(p.Type) == "" || i == 0) {
			m.Parts, step = append(m.Parts, Part{Type: partStepStart}), true
		}
		if runview.Tool(p.Type) != "" {
			step = false
		}
		m.Parts = append(m.Parts, partsOf(&p, raw, approvals)...)
	}
	if len(m.Parts) == 0 && item.Role != events.Assistant { // the client's validation wants one
		m.Parts = append(m.Parts, Part{Type: string(runview.PlainText), Text: new("")})
	}
	return m
}

// partsOf returns a stored part as parts of a UI message.
func partsOf(p *runview.Part, raw events.JSON, approvals map[string]events.CallApproval) []Part {
	if runview.Tool(p.Type) != "" {
		out := []Part{toolPartOf(p, approvals)}
		if a, asked := approvals[p.ToolCallID]; asked && a.Reason == events.ApprovalQuestion {
			c := questionChunk(a.CallID, a.Question, a.Answer)
			out = append(out, Part{Type: c.Type, ID: c.ID, Data: c.Data})
		}
		return out
	}
	if text, is := p.PlainText(); is {
		out := []Part{{Type: string(runview.PlainText), Text: &text, State: "done"}}
		for _, c := range sources("source", p.Annotations) {
			out = append(out, Part{Type: c.Type, SourceID: c.SourceID, URL: c.URL, Title: c.Title})
		}
		return out
	}
	if p.Type == events.Reasoning {
		if forms := p.Reasoning(); len(forms) > 0 {
			return []Part{{Type: string(runview.Reasoning), Text: &forms[0], State: "done"}}
		}
		return nil
	}
	c, known := passOn(p.Type, raw)
	if !known {
		c = dataChunk(dataPart, "", map[string]events.JSON{"part": raw})
	}
	if c.Transient {
		return nil
	}
	return []Part{{Type: c.Type, SourceID: c.SourceID, URL: c.URL, MediaType: c.MediaType, Title: c.Title, Filename: c.Filename, ID: c.ID, Data: c.Data}}
}

// toolPartOf returns a call as a part of a UI message.
func toolPartOf(p *runview.Part, approvals map[string]events.CallApproval) Part {
	out := Part{Type: p.Type, ToolCallID: p.ToolCallID, State: stateInput, Input: some(p.Input), ProviderExecuted: true}
	a, asked := approvals[p.ToolCallID]
	question := asked && a.Reason == events.ApprovalQuestion
	out.ProviderExecuted = !question
	switch {
	case asked && !question && a.Status == events.ApprovalDenial:
		out.State, out.Approval = stateDenied, &Approval{ID: a.CallID, Approved: new(false), Reason: events.DenialReason(p.Failure())}
	case p.State == stateOutput:
		out.State, out.Output = stateOutput, output(p.Output)
	case p.State == stateError:
		out.State, out.ErrorText = stateError, p.Failure()
	case asked && !question && a.Status == events.ApprovalWaiting:
		out.State, out.Approval = stateRequested, &Approval{ID: a.CallID}
	}
	if asked && a.Status == events.ApprovalWithdrawn {
		if out.State == stateInput { // in older logs
			out.State, out.ErrorText = stateError, events.CallUnanswered
		}
		return out
	}
	if asked && !question && out.Approval == nil {
		out.Approval = &Approval{ID: a.CallID, Approved: new(true)}
		if out.State == stateInput {
			out.State = stateResponded
		}
	}
	return out
}

// itemOf returns a message of a client as an item. The error names what is wrong with it.
func itemOf(m *Message, path string) (events.NewItem, error) {
	item := events.NewItem{Type: events.Message}
	switch m.Role {
	case string(events.User), string(events.Assistant), string(events.System):
		item.Role = events.Role(m.Role)
	default:
		return item, events.Invalid(path+"/role", "the role of a message is user, assistant or system, not %.32q", m.Role)
	}
	parts := []events.JSON{}
	for i := range m.Parts {
		raw, err := storedOf(item.Role, &m.Parts[i])
		if err != nil {
			e := *events.AsError(err)
			e.Details = &events.ErrorDetails{Path: path + "/parts/" + strconv.Itoa(i)}
			return item, &e
		}
		if raw != nil {
			parts = append(parts, raw)
		}
	}
	if len(parts) == 0 && item.Role != events.Assistant {
		return item, events.Invalid(path+"/parts", "a message of the role %s has a part", m.Role)
	}
	var err error
	if item.Content, err = json.Marshal(parts); err != nil {
		return item, err
	}
	var own metadata
	if own.Chat.Metadata = m.Metadata; string(m.Metadata) == "null" {
		own.Chat.Metadata = nil
	}
	if item.ID = m.ID; !events.ValidID(m.ID) {
		item.ID, own.Chat.ID = "", m.ID
	}
	return item, own.put(&item)
}

// put writes the metadata to an item, if there is any.
func (m *metadata) put(item *events.NewItem) error {
	if m.Chat.ID == "" && m.Chat.Metadata == nil && m.Chat.Request == "" {
		return nil
	}
	if len(m.Chat.ID) > 256 {
		return events.Invalid("/messageId", "the id of a message has at most 256 bytes; this one has %d", len(m.Chat.ID))
	}
	raw, err := json.Marshal(m, json.Deterministic(true))
	item.Metadata = raw
	return err
}

// again makes an item that repeats or replaces the message with that id: the item gets an id
// of its own, because the first one's is in use.
func again(item *events.NewItem, id string) error {
	var m metadata
	_ = json.Unmarshal(item.Metadata, &m) // none is as good
	m.Chat.ID, m.Chat.Request, item.ID = id, "", ""
	return m.put(item)
}

// storedOf returns a part of a UI message as threads store it; nil if it has no place there.
func storedOf(role events.Role, p *Part) (events.JSON, error) {
	text := ""
	if p.Text != nil {
		text = *p.Text
	}
	switch {
	case p.Type == string(runview.PlainText) && role == events.Assistant:
		return json.Marshal(map[string]string{"type": events.OutputText, "text": text}, json.Deterministic(true))
	case p.Type == string(runview.PlainText):
		return json.Marshal(map[string]string{"type": events.InputText, "text": text}, json.Deterministic(true))
	case p.Type == typeFile:
		return storedFile(role, p)
	case strings.HasPrefix(p.Type, skeinPrefix), p.Type == partStepStart:
		return nil, nil
	case ownData(p.Type):
		fields := map[string]any{"type": p.Type, "data": output(p.Data)}
		if p.ID != "" {
			fields["id"] = p.ID
		}
		return json.Marshal(fields, json.Deterministic(true))
	case role == events.Assistant && p.Type == string(runview.Reasoning):
		return json.Marshal(map[string]string{"type": events.Reasoning, "text": text}, json.Deterministic(true))
	case role == events.Assistant && (p.Type == typeSourceURL || p.Type == typeSourceDocument):
		return json.Marshal(p, json.Deterministic(true))
	case role == events.Assistant && p.tool() != "":
		return storedCall(p)
	}
	return nil, events.Errorf(events.InvalidRequest, "a message of the role %s has no part of type %.64q", role, p.Type)
}

// storedCall returns a call of an earlier conversation, which nobody makes again.
func storedCall(p *Part) (events.JSON, error) {
	if p.ToolCallID == "" {
		return nil, events.Errorf(events.InvalidRequest, "a call has a toolCallId")
	}
	fields := map[string]any{"type": events.ToolPart + p.tool(), "toolCallId": p.ToolCallID, "input": some(p.Input)}
	switch p.State {
	case stateOutput:
		fields["state"], fields["output"] = stateOutput, output(p.Output)
	case stateError:
		fields["state"], fields["errorText"], fields["output"] = stateError, p.ErrorText, p.ErrorText
	default:
		fields["state"], fields["errorText"], fields["output"] = stateError, "the call was not made", "the call was not made"
	}
	return json.Marshal(fields, json.Deterministic(true))
}

// storedFile returns a file. Models are sent its content or its URL as the client sent it.
func storedFile(role events.Role, p *Part) (events.JSON, error) {
	fields := map[string]string{"mediaType": p.MediaType}
	if p.Filename != "" {
		fields["filename"] = p.Filename
	}
	if p.source != "" {
		fields["url"] = p.source
	}
	if p.FileID != "" {
		fields["file_id"] = p.FileID
	}
	data := strings.HasPrefix(p.URL, "data:")
	switch {
	case !data && !strings.HasPrefix(p.URL, "https://") && !strings.HasPrefix(p.URL, "http://"):
		return nil, events.Errorf(events.InvalidRequest, "the url of a file is a data URL, a URL with http or https, the id of a file of /v1/files, or /api/threads/ID/files/PATH of the chat's own thread; not %.64q", p.URL)
	case role == events.Assistant:
		fields["type"], fields["url"] = typeFile, p.URL
	case strings.HasPrefix(p.MediaType, "image/") || p.MediaType == "image":
		fields["type"], fields["image_url"] = events.InputImage, p.URL
	case data:
		fields["type"], fields["file_data"] = events.InputFile, p.URL
	default:
		fields["type"], fields["file_url"] = events.InputFile, p.URL
	}
	return json.Marshal(fields, json.Deterministic(true))
}

// commandID returns the id of a command that a request stands for, so that the request can be
// repeated; "" if the message has no id.
func commandID(kind, chat string, item *events.NewItem, id string) string {
	if id == "" {
		return ""
	}
	h := sha256.New()
	for _, part := range []string{kind, chat, id, string(item.Content)} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return "chat-" + hex.EncodeToString(h.Sum(nil)[:24])
}
