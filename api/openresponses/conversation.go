package openresponses

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// conversation is a thread as clients of Open Responses see it.
type conversation struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"`
	Metadata  map[string]string `json:"metadata"`
}

// conversationID returns the id of a conversation: its thread's id, where that is a UUID with the
// prefix that clients check.
func conversationID(thread string) string {
	if rest, ok := strings.CutPrefix(thread, "T-"); ok {
		return "conv_" + strings.ReplaceAll(rest, "-", "")
	}
	return thread
}

// threadOf returns the thread that an id of a conversation names.
func threadOf(id string) string {
	if rest, ok := strings.CutPrefix(id, "conv_"); ok {
		if u, err := uuid.Parse(rest); err == nil && len(rest) == 32 {
			return "T-" + u.String()
		}
	}
	return id
}

// thread returns the thread of a conversation.
func thread(ctx context.Context, c *edge.Caller, id string) (*client.Client, *events.Thread, error) {
	ref := threadOf(id)
	if !events.Pattern(events.PatternThreadRef).MatchString(ref) {
		return nil, nil, events.Missing("conversation", clipped(id))
	}
	upToDate, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, nil, err
	}
	t, err := client.Read(ctx, upToDate, events.GetThread{ThreadID: ref})
	if events.IsNotFound(err) {
		return nil, nil, events.Missing("conversation", clipped(id))
	}
	return upToDate, t, err
}

// conversationOf returns the thread that a request for a response names, by an id, or by an
// object with one, and a client whose queries show at least as much.
func conversationOf(ctx context.Context, c *edge.Caller, raw events.JSON) (*client.Client, *events.Thread, error) {
	id := textOf(raw)
	if jsontext.Value(raw).Kind() == '{' {
		var of struct {
			ID string `json:"id"`
		}
		if err := misfit("/conversation", json.Unmarshal(raw, &of)); err != nil {
			return nil, nil, err
		}
		id = of.ID
	}
	if id == "" {
		return nil, nil, events.Invalid("/conversation", "a conversation is an id, or an object with one")
	}
	return thread(ctx, c, id)
}

func resourceOfThread(t *events.Thread) conversation {
	out := conversation{ID: conversationID(t.ID), Object: "conversation", CreatedAt: unix(t.CreatedAt), Metadata: map[string]string{}}
	var all map[string]events.JSON
	if t.Metadata != nil && json.Unmarshal(t.Metadata, &all) == nil {
		for name, v := range all {
			if jsontext.Value(v).Kind() == '"' { // others are not the protocol's
				out.Metadata[name] = textOf(v)
			}
		}
	}
	return out
}

// conversationBody is the body of a request about a conversation.
type conversationBody struct {
	Metadata map[string]string `json:"metadata"`
	Items    events.JSON       `json:"items"`
}

// items converts the items of a request, whose ids follow from its own.
func (b *conversationBody) items(ctx context.Context, c *edge.Caller, thread string, id uuid.UUID) ([]events.NewItem, error) {
	if k := jsontext.Value(b.Items).Kind(); k == 0 || k == 'n' {
		return nil, nil
	}
	var input []transform.Item
	err := c.Decode(ctx, len(b.Items), func() (err error) {
		input, err = inputOf(b.Items)
		return err
	})
	if err != nil {
		return nil, ofItems(err)
	}
	items, err := newItems(ctx, c, input, len(b.Items), thread)
	if err != nil {
		return nil, ofItems(err)
	}
	for i := range items {
		items[i].ID = inputItem(id, i)
		items[i].Metadata = withOwn(items[i].Metadata)
	}
	return items, nil
}

// ofItems returns a refusal of an input as one of the items of a conversation.
func ofItems(err error) error {
	e := *events.AsError(err)
	if e.Details == nil {
		return err
	}
	details := *e.Details
	if rest, is := strings.CutPrefix(details.Path, "/input"); is {
		details.Path = "/items" + rest
		e.Details = &details
	}
	return &e
}

// createConversation answers POST /v1/conversations.
func createConversation(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	ctx := r.Context()
	var b conversationBody
	asked, err := readWriting(r, c, &b)
	if err != nil {
		return err
	}
	items, err := b.items(ctx, c, "", asked.id)
	if err != nil {
		return err
	}
	d := events.CreateThread{UserID: c.User}
	if err := checkMetadata(b.Metadata); err != nil {
		return err
	}
	if len(b.Metadata) > 0 {
		d.Metadata = marshal(b.Metadata)
	}
	first, err := client.Sub("thread.create", d)
	if err != nil {
		return err
	}
	list := []events.SubCommand{first}
	id := "T-" + asked.id.String()
	if created, err := beginFiles(ctx, c.Client, id, list, asked.command, items, "/items"); err != nil {
		return err
	} else if created {
		list = nil
	}
	added := additions{path: "/items"}
	if list, err = added.add(list, items); err != nil {
		return err
	}
	reply, err := c.Client.Commit(ctx, id, list, client.CommandID(asked.command))
	if err != nil {
		return asked.refused(err, &added)
	}
	t, err := client.Read(ctx, c.Client.WithMinSeq(reply.Seq), events.GetThread{ThreadID: id})
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, resourceOfThread(t))
	return nil
}

// getConversation answers GET /v1/conversations/{id}.
func getConversation(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	_, t, err := thread(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, resourceOfThread(t))
	return nil
}

// newMetadata reads the body of a change of a conversation. One without metadata is refused:
// it would erase what the conversation has. A null erases it.
func newMetadata(r *http.Request) (map[string]string, error) {
	var b struct {
		Metadata events.JSON `json:"metadata"`
	}
	if err := readBody(r, &b); err != nil {
		return nil, err
	}
	if len(b.Metadata) == 0 {
		return nil, events.Invalid("/metadata", "metadata is missing; send all that the conversation is to have, or null for none")
	}
	metadata := map[string]string{}
	if err := misfit("/metadata", json.Unmarshal(b.Metadata, &metadata, jsontext.AllowDuplicateNames(true))); err != nil {
		return nil, err
	}
	if metadata == nil {
		metadata = map[string]string{}
	}
	return metadata, checkMetadata(metadata)
}

// updateConversation answers POST /v1/conversations/{id}: its metadata is replaced.
func updateConversation(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	metadata, err := newMetadata(r)
	if err != nil {
		return err
	}
	cl, t, err := thread(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	reply, err := cl.Send(r.Context(), t.ID, events.UpdateThread{Metadata: marshal(metadata)})
	if err != nil {
		return err
	}
	if t, err = client.Read(r.Context(), cl.WithMinSeq(reply.Seq), events.GetThread{ThreadID: t.ID}); err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, resourceOfThread(t))
	return nil
}

// deleteConversation answers DELETE /v1/conversations/{id}.
func deleteConversation(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	cl, t, err := thread(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	if _, err := cl.Send(r.Context(), t.ID, events.DeleteThread{}); err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, deleted{conversationID(t.ID), "conversation.deleted", true})
	return nil
}

// createItems answers POST /v1/conversations/{id}/items.
func createItems(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	ctx := r.Context()
	var b conversationBody
	asked, err := readWriting(r, c, &b)
	if err != nil {
		return err
	}
	cl, t, err := thread(ctx, c, r.PathValue("id"))
	if err != nil {
		return err
	}
	items, err := b.items(ctx, c, t.ID, asked.id)
	if err == nil {
		err = keepFiles(ctx, c.Client, t.ID, items, "/items")
	}
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return events.Invalid("/items", "there are no items to add")
	}
	added := additions{path: "/items"}
	list, err := added.add(nil, items)
	if err != nil {
		return err
	}
	reply, err := cl.Commit(ctx, t.ID, list, client.CommandID(asked.command))
	if err != nil {
		return asked.refused(err, &added)
	}
	p := page{Object: "list", Data: []transform.Item{}}
	for _, item := range items {
		stored, err := client.Read(ctx, cl.WithMinSeq(reply.Seq), events.GetItem{ThreadID: t.ID, ItemID: item.ID})
		if err != nil {
			return err
		}
		p.Data = append(p.Data, piecesOf(stored, false)...)
	}
	if n := len(p.Data); n > 0 {
		p.FirstID, p.LastID = p.Data[0].ID, p.Data[n-1].ID
	}
	edge.WriteJSON(w, http.StatusOK, p)
	return nil
}

// shownItems returns the items of a thread as a conversation has them, in order.
func shownItems(ctx context.Context, c *client.Client, thread string, showServer bool) ([]transform.Item, error) {
	list := []transform.Item{}
	inside := map[string]bool{} // calls that are part of a message, with their result
	for q := (events.ListItems{ThreadID: thread, Limit: new(int64(500))}); ; {
		page, err := client.Read(ctx, c, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			switch {
			case item.Silent && string(item.Content) == "[]":
			case item.Type == events.ActionExecute && item.CallOf != nil: // its message has it
				if own := callIDOf(item.Content); !slices.ContainsFunc(list, func(o transform.Item) bool { return o.Type == callItem && o.CallID == own }) {
					inside[own] = true
				}
			case item.Type == events.ActionResult && inside[callIDOf(item.Content)]:
			default:
				list = append(list, piecesOf(item, showServer)...)
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return list, nil
		}
	}
}

// listItems answers GET /v1/conversations/{id}/items.
func listItems(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	cl, t, err := thread(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	v := r.URL.Query()
	list, err := shownItems(r.Context(), cl, t.ID, slices.Contains(slices.Concat(v["include"], v["include[]"]), serverTools))
	if err != nil {
		return err
	}
	return writePage(w, r, list)
}

// itemIn returns a thread's item that an id of a conversation's item names, and what it shows
// under that id.
func itemIn(ctx context.Context, c *client.Client, thread, id string) (*events.Item, transform.Item, error) {
	base, _ := baseOf(id)
	if !events.ValidID(base) {
		return nil, transform.Item{}, events.Missing("item", clipped(id))
	}
	item, err := client.Read(ctx, c, events.GetItem{ThreadID: thread, ItemID: base})
	if err != nil {
		return nil, transform.Item{}, err
	}
	for _, o := range piecesOf(item, true) {
		if o.ID == id {
			return item, o, nil
		}
	}
	return nil, transform.Item{}, events.Missing("item", clipped(id))
}

// getItem answers GET /v1/conversations/{id}/items/{item}.
func getItem(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	cl, t, err := thread(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	_, o, err := itemIn(r.Context(), cl, t.ID, r.PathValue("item"))
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, o)
	return nil
}

// deleteItem answers DELETE /v1/conversations/{id}/items/{item}. What is one of several of an
// answer is taken from it.
func deleteItem(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	ctx := r.Context()
	cl, t, err := thread(ctx, c, r.PathValue("id"))
	if err != nil {
		return err
	}
	item, o, err := itemIn(ctx, cl, t.ID, r.PathValue("item"))
	if err != nil {
		return err
	}
	if rest := without(item, o); len(rest) > 0 {
		_, err = cl.Send(ctx, t.ID, events.EditMessage{ItemID: item.ID, Content: marshal(rest)})
	} else {
		_, err = cl.Send(ctx, t.ID, events.DeleteMessage{ItemID: item.ID})
	}
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, resourceOfThread(t))
	return nil
}

// without returns the parts of a message that an item which it is shown as is not made of. Ids
// of later items of the same kind change.
func without(item *events.Item, o transform.Item) []events.JSON {
	var parts, rest []events.JSON
	if item.ID == o.ID || json.Unmarshal(item.Content, &parts) != nil {
		return nil
	}
	for n := range parts {
		one := slices.Delete(slices.Clone(parts), n, n+1)
		left := *item
		left.Content = marshal(one)
		if !slices.ContainsFunc(piecesOf(&left, true), func(p transform.Item) bool { return sameItem(p, o) }) {
			continue
		}
		rest = append(rest, parts[n])
	}
	return rest
}

// sameItem reports whether two items are the same but for their ids' numbers.
func sameItem(a, b transform.Item) bool {
	a.ID, b.ID = "", ""
	return a.Type == b.Type && string(marshal(a)) == string(marshal(b))
}
