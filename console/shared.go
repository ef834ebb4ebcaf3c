package console

import (
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/markdown"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// sharedShown is the number of messages of a page of a shared thread.
const sharedShown = 100

// shared is the page that the holder of a link sees of a thread: its messages, as in the
// conversation. Files are named, but cannot be opened.
func shared(texts *markdown.Renderer) page.Shared {
	c := &talk{texts}
	return page.Shared{Path: "/shared/{tenant}/{token}", Template: "shared", Load: c.loadShared}
}

// sharedPage is a page of a shared thread, oldest message first.
type sharedPage struct {
	Title       string
	Created     time.Time
	Turns       []*turn
	First, More string // addresses of the beginning and of the next page; empty: it is the one shown, or there is none
}

func (c *talk) loadShared(a *page.Ask) (string, any, error) {
	from, err := strconv.ParseInt(a.Query("from"), 10, 64)
	if err != nil || from < 0 {
		from = 0
	}
	thread, err := client.Read(a.Context(), a.Client, events.ReadShared{Token: a.Path("token"), FromMessage: &from})
	if err != nil {
		return "", nil, err
	}
	p := &sharedPage{Title: thread.Title, Created: time.UnixMilli(thread.Created)}
	next := thread.NextMessageIndex
	if len(thread.Messages) > sharedShown { // every message has an index
		thread.Messages, next = thread.Messages[:sharedShown], from+sharedShown
	}
	if next > 0 {
		p.More = a.With("from", strconv.FormatInt(next, 10))
	}
	if from > 0 {
		p.First = a.With("from", "")
	}
	p.Turns = c.sharedTurns(thread.Messages)
	return p.Title, p, nil
}

// sharedLink returns the path of a shared thread.
func sharedLink(tenant, token string) string {
	return page.Root + "/shared/" + url.PathEscape(tenant) + "/" + url.PathEscape(token)
}

// sharedTurns returns the messages of a shared thread as the turns of a conversation. The result
// of a call is shown with the call, unless the call is on an earlier page.
func (c *talk) sharedTurns(messages []events.DocumentMessage) []*turn {
	results, called, shown := map[string]events.CallResult{}, map[string]bool{}, map[string]bool{}
	for _, m := range messages {
		for _, b := range m.Content {
			called[b.ID] = called[b.ID] || b.Type == events.ToolUseBlock
			if b.Type == events.ToolResultBlock {
				results[b.ToolUseID] = resultOf(b)
			}
		}
	}
	var turns []*turn
	for n, m := range messages {
		id := "m" + strconv.Itoa(n)
		t := &turn{Item: events.Item{ID: id, Type: events.Message}, Speaker: string(m.Role)}
		if m.CreatedAt > 0 {
			t.CreatedAt = events.TimeOf(time.UnixMilli(m.CreatedAt)).String()
		}
		var raws []rawPart
		for _, b := range m.Content {
			switch {
			case b.Type != events.ToolResultBlock:
				raws = append(raws, rawOf(b))
			case !called[b.ToolUseID]:
				r := results[b.ToolUseID]
				t.Parts = append(t.Parts, part{Kind: "call", ID: id + "-r", Name: "result", CallID: r.CallID, Output: r.Output, State: resultState(r.IsError)})
			}
		}
		if t.Parts = append(t.Parts, c.partsOf(id, raws, results, shown)...); len(t.Parts) > 0 {
			turns = append(turns, t)
		}
	}
	return turns
}

func resultOf(b events.DocumentBlock) events.CallResult {
	r := events.CallResult{CallID: b.ToolUseID}
	switch {
	case b.Run == nil:
	case b.Run.Status == events.ToolError:
		r.Output, r.IsError = events.Quote(b.Run.Error), true
	default:
		r.Output = b.Run.Result
	}
	return r
}

// rawOf returns the part of a message that a block of a document was made from.
func rawOf(b events.DocumentBlock) rawPart {
	switch {
	case b.Type == events.TextBlock && b.Text != nil:
		return rawPart{Type: events.InputText, Text: *b.Text}
	case b.Type == events.ThinkingBlock && b.Thinking != nil:
		return rawPart{Type: events.Reasoning, Text: *b.Thinking}
	case b.Type == events.ImageBlock && b.Source != nil:
		address := b.Source.URL
		if b.Source.Data != "" {
			address = "data:" + b.Source.MediaType + ";base64," + b.Source.Data
		}
		return rawPart{Type: events.InputImage, ImageURL: events.Quote(address)}
	case b.Type == events.ToolUseBlock:
		return rawPart{Type: events.ToolPart + b.Name, ToolCallID: b.ID, Input: b.Input}
	}
	var r rawPart
	_ = json.Unmarshal(b.Part, &r) // it was validated when it was written
	return r
}
