package openresponses

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openaifiles"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
)

// items converts the input of a request to items for a place, and refuses the results of calls that
// nobody has made.
func (d *createRequest) items(ctx context.Context, c *edge.Caller, to place) ([]events.NewItem, error) {
	items, err := newItems(ctx, c, d.input, d.size, to.thread)
	if err != nil {
		return nil, err
	}
	return items, matched(ctx, c, items, to.thread)
}

// newItems converts the input of a body of some bytes to items of a thread, each with what it refers
// to.
func newItems(ctx context.Context, c *edge.Caller, input []transform.Item, size int, thread string) (items []events.NewItem, err error) {
	list := make([]transform.Item, 0, len(input))
	inline := openaifiles.NewInliner(c.Client)
	for i, o := range input {
		if o.Content, err = inline.Content(ctx, o.Content, "/input/"+strconv.Itoa(i)+"/content"); err != nil {
			return nil, err
		}
		if o.Output, err = inline.Content(ctx, o.Output, "/input/"+strconv.Itoa(i)+"/output"); err != nil {
			return nil, err
		}
		if asksApproval(o) { // of an earlier run, whose model never saw it
			continue
		}
		if o.Type != string(events.ItemReference) {
			o.ID = ""
			list = append(list, o)
			continue
		}
		of, pieces, err := referred(ctx, c.Client, o.ID, thread)
		if events.IsNotFound(err) {
			return nil, events.Invalid("/input/"+strconv.Itoa(i)+"/id", "there is no item %s to refer to", clipped(o.ID))
		}
		if err != nil {
			return nil, err
		}
		if of == thread { // the model sees it already
			continue
		}
		for _, p := range pieces {
			p.ID = ""
			if p, err = withFiles(ctx, c.Client, of, p); err != nil {
				return nil, err
			}
			list = append(list, p)
		}
	}
	err = c.Decode(ctx, size+inline.Bytes(), func() (err error) {
		items, err = transform.Read(list)
		return err
	})
	if err != nil {
		e := *events.AsError(err)
		if e.Details == nil {
			return nil, err
		}
		details := *e.Details
		details.Path = "/input" + details.Path
		e.Details = &details
		return nil, &e
	}
	return items, nil
}

// asksApproval reports whether an item is a request for an approval that a response has shown, or
// the answer to one.
func asksApproval(o transform.Item) bool {
	switch o.Type {
	case requestItem, string(events.ItemReference):
		return strings.HasPrefix(o.ID, requestPrefix)
	case responseItem:
		return strings.HasPrefix(textOf(o.Rest["approval_request_id"]), requestPrefix)
	}
	return false
}

// referred returns the items that an id refers to, and their thread: the one at hand, or another in use.
func referred(ctx context.Context, c *client.Client, id, at string) (thread string, list []transform.Item, err error) {
	base, part := baseOf(id)
	if !events.ValidID(base) {
		return "", nil, events.Missing("item", clipped(id))
	}
	item, err := client.Read(ctx, c, events.GetItem{ThreadID: at, ItemID: base})
	if at != "" && events.IsNotFound(err) {
		item, err = client.Read(ctx, c, events.GetItem{ItemID: base})
	}
	if events.HasCode(err, events.InvalidRequest) { // a cold thread may have it, of too many to search
		return "", nil, events.Missing("item", clipped(id))
	}
	if err != nil {
		return "", nil, err
	}
	stored := *item
	stored.ThreadID = "" // with its references, which are not for readers
	for _, o := range piecesOf(&stored, true) {
		if !part || o.ID == id {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		return "", nil, events.Missing("item", clipped(id))
	}
	return item.ThreadID, list, nil
}

// matched refuses the result of a call that nobody has made.
func matched(ctx context.Context, c *edge.Caller, items []events.NewItem, thread string) error {
	calls := map[string]bool{}
	looked := thread == ""
	for i, item := range items {
		switch item.Type {
		case events.ActionExecute:
			calls[callIDOf(item.Content)] = true
		case events.ActionResult:
			id := callIDOf(item.Content)
			if !calls[id] && !looked {
				looked = true
				if err := callsOf(ctx, c.Client, thread, calls); err != nil {
					return err
				}
			}
			if !calls[id] {
				return events.Invalid("/input/"+strconv.Itoa(i)+"/call_id", "no tool call found for function call output with call_id %s", clipped(id))
			}
		}
	}
	return nil
}

// callsOf adds the calls of a thread that its callers execute.
func callsOf(ctx context.Context, c *client.Client, thread string, calls map[string]bool) error {
	for q := (events.ListItems{ThreadID: thread, Order: "desc", Limit: new(int64(200))}); ; {
		page, err := client.Read(ctx, c, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			switch item := &page.Items[i]; {
			case item.Type == events.ActionExecute:
				calls[callIDOf(item.Content)] = true
			case item.Type == events.Message:
				callers, _ := callersOf(item.Content)
				for id := range callers {
					calls[id] = true
				}
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return nil
		}
	}
}

func callIDOf(content events.JSON) string {
	var of struct {
		CallID string `json:"callId"`
	}
	_ = decode(content, &of) // it was checked when it was read
	return of.CallID
}

// withOwn marks the metadata of an item that a request adds.
func withOwn(metadata events.JSON) events.JSON {
	fields := map[string]events.JSON{}
	if metadata != nil {
		_ = decode(metadata, &fields) // it was made here
	}
	fields[ownItem] = events.JSON("true")
	return marshal(fields)
}

// checkParts refuses what a model would not see: an image or a file of which a message has
// nothing, and the result of a call that is neither a text nor a list of parts.
func checkParts(path string, o transform.Item) error {
	if k := jsontext.Value(o.Output).Kind(); o.Type == callOutputItem && k != '"' && k != '[' {
		return events.Invalid(path+"/output", "the output of a call is a text, or a list of parts")
	}
	if o.Type != messageItem && o.Type != "" || !bytes.Contains(o.Content, []byte(`"input_`)) {
		return nil
	}
	var parts []events.JSON
	_ = json.Unmarshal(o.Content, &parts) // anything else is refused elsewhere
	for n, raw := range parts {
		var p map[string]events.JSON
		_ = json.Unmarshal(raw, &p, jsontext.AllowDuplicateNames(true)) // likewise
		var of []string
		switch textOf(p["type"]) {
		case events.InputImage:
			of = []string{"image_url", "file_id"}
		case events.InputFile:
			of = []string{"file_data", "file_url", "file_id"}
		default:
			continue
		}
		if !slices.ContainsFunc(of, func(name string) bool { return textOf(p[name]) != "" }) {
			return events.Invalid(path+"/content/"+strconv.Itoa(n), "%s needs one of %s, a text", textOf(p["type"]), strings.Join(of, ", "))
		}
	}
	return nil
}
