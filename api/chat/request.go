package chat

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openaifiles"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
)

// Bounds of a request.
const (
	maxBody     = edge.MaxMessageBody // bytes
	maxMessages = 10_000              // of a conversation that begins
)

// What a request asks for.
const (
	triggerSubmit     = "submit-message"
	triggerRegenerate = "regenerate-message"
)

// request is the body of POST /chat, as the AI SDK's transport sends it.
type request struct {
	Actor     events.JSON   `json:"actor"` // refused
	ID        string        `json:"id"`
	Messages  []events.JSON `json:"messages"` // decoded when they are needed: of an old chat only the last one is
	Message   events.JSON   `json:"message"`
	Trigger   string        `json:"trigger"`
	MessageID string        `json:"messageId"`
	Agent     string        `json:"agent"`

	last *Message // nil if there is none
	size int      // of the body, in bytes
}

// readRequest decodes the body of a request. Fields that it does not know are skipped, as the
// clients' own ones are sent along.
func readRequest(body []byte) (*request, error) {
	req := request{size: len(body)}
	if err := json.Unmarshal(body, &req); err != nil {
		if misfit := (*json.SemanticError)(nil); errors.As(err, &misfit) {
			return nil, events.Invalid(string(misfit.JSONPointer), "the body is not what useChat sends: %q has the wrong type", misfit.JSONPointer)
		}
		return nil, events.Errorf(events.InvalidRequest, "the body is not JSON: %s", strings.ReplaceAll(err.Error(), "jsontext: ", ""))
	}
	if req.Actor != nil {
		return nil, edge.NamedActor()
	}
	if err := checkChat(req.ID); err != nil {
		return nil, err
	}
	if req.Message != nil && string(req.Message) != "null" {
		req.Messages = append(req.Messages, req.Message)
	}
	if req.Trigger == "" {
		req.Trigger = triggerSubmit
	}
	switch {
	case req.Trigger != triggerSubmit && req.Trigger != triggerRegenerate:
		return nil, events.Invalid("/trigger", "the trigger is %s or %s, not %.64q", triggerSubmit, triggerRegenerate, req.Trigger)
	case len(req.Messages) > maxMessages:
		return nil, events.Invalid("/messages", "a request has at most %d messages; this one has %d. Send the last one as message", maxMessages, len(req.Messages))
	case len(req.Messages) == 0 && req.Trigger == triggerSubmit:
		return nil, events.Invalid("/messages", "a request has messages, or a message")
	case len(req.Messages) == 0:
		return &req, nil
	}
	var err error
	req.last, err = req.message(len(req.Messages) - 1)
	return &req, err
}

// message decodes a message of the request.
func (r *request) message(i int) (*Message, error) {
	m := new(Message)
	err := json.Unmarshal(r.Messages[i], m)
	if misfit := (*json.SemanticError)(nil); errors.As(err, &misfit) {
		return nil, events.Invalid(r.path(i)+string(misfit.JSONPointer), "a message is {id, role, parts}; this has the wrong type")
	}
	if err != nil {
		return nil, events.Invalid(r.path(i), "a message is {id, role, parts}: %w", err)
	}
	return m, nil
}

// checkChat reports what is wrong with a chat's id.
func checkChat(id string) error {
	if !events.ValidKey(id) {
		return events.Invalid("/id", "the id of a chat is the key of its thread: 1 to 256 characters, none of them a control character")
	}
	return nil
}

// threadOf returns how requests to Skein name the thread of a chat: its key, or its id.
func threadOf(chat string) string {
	if events.ValidThreadID(chat) {
		return chat
	}
	return "key:" + chat
}

// path returns where a message is in the body.
func (r *request) path(i int) string {
	if r.Message != nil && i == len(r.Messages)-1 {
		return "/message"
	}
	return "/messages/" + strconv.Itoa(i)
}

// earlierItems returns the messages before the last one as items.
func (r *request) earlierItems(ctx context.Context, c *edge.Caller) (list []events.NewItem, err error) {
	return list, c.Decode(ctx, r.size, func() error {
		for i := range r.Messages[:len(r.Messages)-1] {
			m, err := r.message(i)
			if err != nil {
				return err
			}
			one, err := itemOf(m, r.path(i))
			if err != nil {
				return err
			}
			list = append(list, one)
		}
		return nil
	})
}

// userItem returns the last message as an item, which a user must have written. Files of the
// thread are read.
func (r *request) userItem(ctx context.Context, h *chat) (*events.NewItem, error) {
	m, path := r.last, r.path(len(r.Messages)-1)
	if m.Role != string(events.User) {
		return nil, events.Invalid(path+"/role", "the last message is the user's, or the assistant's with answers to its calls; not of the role %.32q", m.Role)
	}
	inline := openaifiles.NewInliner(h.now)
	for i := range m.Parts {
		if m.Parts[i].Type != typeFile {
			continue
		}
		if err := readFile(ctx, h.now, h.thread, &m.Parts[i]); err != nil {
			return nil, err
		}
		if err := readUploaded(ctx, inline, &m.Parts[i], path+"/parts/"+strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	var item events.NewItem
	err := h.caller.Decode(ctx, r.size+inline.Bytes(), func() (err error) {
		item, err = itemOf(m, path)
		return err
	})
	if err == nil && attachment.SaysNothing(item.Content) {
		err = events.Invalid(path+"/parts", "a message of a user has a text, or a file")
	}
	return &item, err
}

// fileURL is where the edge serves files of threads.
const fileURL = "/api/threads/"

// readFile replaces the URL of a file of the thread by its content, which models can read.
func readFile(ctx context.Context, c *client.Client, thread *events.Thread, p *Part) error {
	rest, ours := strings.CutPrefix(p.URL, fileURL)
	if !ours {
		return nil
	}
	owner, path, _ := strings.Cut(rest, "/files/")
	owner, err := url.PathUnescape(owner)
	if err == nil {
		path, err = url.PathUnescape(path)
	}
	if err != nil || thread == nil || owner != thread.ID && (thread.Key == nil || owner != "key:"+*thread.Key) {
		return events.Errorf(events.InvalidRequest, "the file %.128q is not one of the chat's own thread", p.URL)
	}
	files := c.Files(thread.ID)
	record, err := files.StatFile(ctx, "/"+path)
	switch {
	case err != nil:
		return err
	case record == nil:
		return events.Missing("file", "/"+path)
	case record.Size > attachment.MaxBytes:
		return events.TooLarge("the file /"+path, record.Size, attachment.MaxBytes)
	}
	content, err := files.ReadFile(ctx, "/"+path)
	switch {
	case err != nil:
		return err
	case content == nil:
		return events.Missing("content of file", "/"+path)
	}
	if p.MediaType == "" {
		p.MediaType = record.MimeType
	}
	p.source, p.URL = p.URL, attachment.DataURL(p.MediaType, content)
	return nil
}

// readUploaded replaces the id of a file of /v1/files by its content. An id may stand in place of the
// URL, as the AI SDK's providers have it.
func readUploaded(ctx context.Context, inline *openaifiles.Inliner, p *Part, path string) error {
	id := p.FileID
	if id == "" && openaifiles.IsID(p.URL) {
		id = p.URL
	}
	if id == "" {
		return nil
	}
	if !openaifiles.IsID(id) {
		return events.Invalid(path+"/file_id", "%.80q is not the id of a file of POST /v1/files", id)
	}
	f, err := inline.File(ctx, id, path)
	if err != nil {
		return err
	}
	p.FileID, p.URL, p.MediaType, p.Filename = id, f.URL, f.MediaType, cmp.Or(p.Filename, f.Name)
	return nil
}
