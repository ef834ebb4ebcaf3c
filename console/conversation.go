package console

import (
	"context"
	"errors"
	"strings"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/markdown"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// itemsShown is the number of items of a page of a conversation.
const itemsShown = 60

// liveRows is how many messages or events an open page may show before the oldest are removed.
const liveRows = 2000

// conversation is the first tab of a thread: its messages, and the form to write one.
func conversation(texts *markdown.Renderer) page.Page {
	c := &talk{texts}
	return page.Page{
		Path: "/threads/{thread}", Name: "Conversation", In: page.Tabs, Template: "conversation",
		JSON: "/api/threads/{thread}/items{at}", CLI: "skein item list {thread}{at}",
		Load: loadConversation,
		Panels: []page.Panel{
			{ID: "items", On: []string{"item.*", "message.*", "part.*", "step.*", "history.*", "approval.*", "execution.status.changed"}, Load: c.loadItems, Row: c.itemRow},
			{ID: "draft", On: []string{string(events.ProfileChangedType)}, Load: loadDraft},
			{ID: "activity", On: []string{"execution.*", "run.*", "queue.*", "approval.*", "thread.status.changed", "step.*"}, Load: loadRun},
		},
		Follow: followChunks,
	}
}

// talk renders the contents of a conversation.
type talk struct{ texts *markdown.Renderer }

// conversationPage is the data of the page, without its panels.
type conversationPage struct {
	MayWrite bool
	Policies []string
	End      bool // the page shows the end of the conversation
}

func loadConversation(a *page.Ask) (any, error) {
	return conversationPage{MayWrite: a.May(edge.Write) && a.Live(), Policies: events.Policy("").Enum(), End: a.Query("cursor") == ""}, nil
}

// itemPage is a page of a conversation, oldest first.
type itemPage struct {
	Turns  []*turn
	Older  string // the cursor of the page before
	Cursor string // the page's own cursor; empty: it is the end of the conversation
	Total  int64
}

func (c *talk) loadItems(a *page.Ask) (any, error) {
	limit := int64(itemsShown)
	list, err := client.Read(a.Context(), a.Client, events.ListItems{ThreadID: a.Thread.ID, At: a.At, Order: "desc", Limit: &limit, Cursor: a.Query("cursor")})
	if err != nil {
		return nil, err
	}
	p := &itemPage{Older: list.NextCursor, Cursor: a.Query("cursor"), Total: list.Total}
	p.Turns = c.turnsOf(list.Items, viewerOf(a))
	return p, nil
}

// viewer holds what the reader of a conversation may do.
type viewer struct {
	MayWrite, MayApprove bool
	Thread               string
}

func viewerOf(a *page.Ask) viewer {
	return viewer{MayWrite: a.May(edge.Write) && a.Live(), MayApprove: a.May(edge.Approve) && a.Live(), Thread: a.Thread.ID}
}

// itemRow returns the message that an event adds or changes.
func (c *talk) itemRow(a *page.Ask, e client.Event) (*page.Row, error) {
	id := ""
	switch kind := string(e.Type); {
	case strings.HasPrefix(kind, "item.") || strings.HasPrefix(kind, "message."):
		id = e.Subject
	case e.Correlation != "":
		run, err := client.Read(a.Context(), a.Client, events.GetExecution{ThreadID: e.ThreadID, ExecutionID: e.Correlation})
		if err != nil {
			return nil, ifThere(err)
		}
		id = run.LastItem()
	default:
		return nil, nil
	}
	item, err := client.Read(a.Context(), a.Client, events.GetItem{ThreadID: e.ThreadID, ItemID: id})
	if events.IsNotFound(err) && string(e.Type) == string(events.MessageDeletedType) {
		return &page.Row{ID: rowID(id)}, nil
	}
	if err != nil {
		return nil, ifThere(err)
	}
	if item.CallOf != nil || item.Type != events.Message && item.ParentItemID != "" { // the item is shown with its message
		if item, err = client.Read(a.Context(), a.Client, events.GetItem{ThreadID: e.ThreadID, ItemID: item.ParentItemID}); err != nil {
			return nil, ifThere(err)
		}
	}
	turns := c.turnsOf([]events.Item{*item}, viewerOf(a))
	if len(turns) == 0 {
		return nil, nil
	}
	return &page.Row{ID: turns[0].Row(), Template: "turn", Data: turns[0]}, nil
}

// Most returns liveRows, for the template.
func (p *itemPage) Most() int { return liveRows }

// ifThere returns err, or nil if it is a not_found: a later event tells the page.
func ifThere(err error) error {
	if events.IsNotFound(err) {
		return nil
	}
	return err
}

// rowID returns the id of the element of an item.
func rowID(item string) string { return "turn-" + item }

// followChunks sends the chunks of the current run, and then those of the following runs.
func followChunks(a *page.Ask, send func(page.Patch) error) error {
	execution := ""
	if a.Thread.Run != nil {
		execution = a.Thread.Run.ExecutionID
	}
	for a.Context().Err() == nil {
		last, err := followRun(a, execution, send)
		if err != nil || a.Context().Err() != nil {
			return nil // the panels show committed content without chunks, too
		}
		if execution = ""; last == "" {
			return nil
		}
	}
	return nil
}

// followRun sends the chunks of one run, and returns its id when it has ended.
func followRun(a *page.Ask, execution string, send func(page.Patch) error) (string, error) {
	ctx, stop := context.WithCancel(a.Context())
	defer stop()
	shown, committed := "", map[string]bool{}
	if execution != "" {
		steps, err := client.Read(ctx, a.Client, events.ListSteps{ThreadID: a.Thread.ID, ExecutionID: execution})
		if err != nil {
			return "", err
		}
		for _, s := range steps.Steps {
			committed[s.ID] = s.Status != events.StepRunning
		}
	}
	for c, err := range a.Client.Chunks(ctx, a.Thread.ID, execution) {
		if err != nil {
			if errors.As(err, new(*client.ChunkGapError)) {
				continue
			}
			return shown, err
		}
		if shown == "" {
			shown = c.ExecutionID
			if err := send(page.Patch{Panel: "stream", HTML: streamShell(shown), Digest: shown}); err != nil {
				return shown, err
			}
		}
		patch, ok := chunkPatch(c)
		if !ok || committed[c.StepID] {
			continue
		}
		if err := send(patch); err != nil {
			return shown, err
		}
	}
	if shown != "" {
		_ = send(page.Patch{Panel: "stream", Digest: shown + "-end"})
	}
	return shown, nil
}
