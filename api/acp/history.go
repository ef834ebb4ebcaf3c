package acp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runview"
)

// mostMedia bounds the images of a conversation that are sent with it; others are named in a text.
const mostMedia = 64 << 20

// replay sends the conversation of a thread, except what a run that is active has written.
func (s *Server) replay(ctx context.Context, now *client.Client, thread string, x *events.Execution) error {
	files, left := s.c.Files(thread), int64(mostMedia)
	for q := (events.ListItems{ThreadID: thread, Order: "asc", Limit: new(int64(200))}); ; {
		page, err := client.Read(ctx, now, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			item := &page.Items[i]
			if x != nil && slices.Contains(x.Items(), item.ID) {
				continue
			}
			if item.Content, err = attachment.Load(ctx, files, item.Content, &left); err != nil {
				return err
			}
			for _, u := range updatesOf(item) {
				if err := s.notify("session/update", notification{thread, u}); err != nil {
					return err
				}
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return nil
		}
	}
}

// updatesOf returns an item as updates; none if it is not shown.
func updatesOf(item *events.Item) []update {
	if item.Silent || item.ParentItemID != "" || item.Depth != 0 || item.Type != events.Message { // a run's own record of a call
		return nil
	}
	var parts []events.JSON
	_ = json.Unmarshal(item.Content, &parts) // content that is not a list has no parts
	switch item.Role {
	case events.User:
		return askedOf(item.ID, parts)
	case events.Assistant:
		return answerOf(item.ID, parts)
	}
	return nil
}

// askedOf returns a message of a user as updates.
func askedOf(id string, parts []events.JSON) (list []update) {
	for _, raw := range parts {
		p := runview.ReadPart(raw)
		if text, plain := p.PlainText(); plain {
			list = append(list, say(userChunk, id, text))
		} else if b, ok := mediaOf(p); ok {
			list = append(list, update{Kind: userChunk, MessageID: id, Content: b})
		}
	}
	return list
}

// answerOf returns a message of the agent as updates.
func answerOf(id string, parts []events.JSON) (list []update) {
	n := 0
	for _, raw := range parts {
		p := runview.ReadPart(raw)
		text, plain := p.PlainText()
		switch {
		case plain && text != "":
			list = append(list, say(agentChunk, textID(id, n), text))
			n++
		case plain:
		case p.Type == events.Reasoning:
			if forms := p.Reasoning(); len(forms) > 0 {
				list = append(list, say(thoughtChunk, textID(id, n), forms[0]))
				n++
			}
		case runview.Tool(p.Type) != "" && p.ToolCallID != "":
			list = append(list, callOf(p))
		default:
			list = append(list, dataOf(p.Type, raw)...)
		}
	}
	return list
}

// callOf returns a call with its outcome.
func callOf(p runview.Part) update {
	u := update{Kind: toolCall, ToolCallID: p.ToolCallID, Title: titleOf(runview.Tool(p.Type)), ToolKind: "other", Status: failed, RawInput: p.Input}
	switch p.State {
	case runview.ResultState:
		u.Status, u.Content, u.RawOutput = completed, texts(events.TextOf(p.Output)), p.Output
	case runview.ErrorState:
		u.Content = texts(p.Failure())
	default: // its run has ended
		u.Content = texts("the call was not made")
	}
	return u
}

// mediaOf returns an image or a file as a block, and reports whether there is one.
func mediaOf(p runview.Part) (block, bool) {
	for _, url := range []string{p.ImageURL, p.FileData, p.FileURL, p.URL} {
		if url == "" {
			continue
		}
		head, data, inline := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
		switch {
		case !inline || !strings.HasPrefix(url, "data:"):
			name := p.Name
			if name == "" {
				name = url
			}
			return block{Type: "resource_link", URI: url, Name: name}, true
		case strings.HasPrefix(head, "image/"):
			return block{Type: "image", Data: data, MimeType: head}, true
		}
		uri := "skein:/" + p.Name
		return block{Type: "resource", Resource: &resource{URI: uri, MimeType: head, Blob: data}}, true
	}
	return block{}, false
}
