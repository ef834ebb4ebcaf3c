package console

import (
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// conversation is the first tab of a thread.
func conversation() page.Page {
	return page.Page{
		Path: "/threads/{thread}", Name: "Conversation", In: page.Tabs, Template: "conversation",
		JSON: "/api/threads/{thread}/items{at}", CLI: "skein item list {thread}{at}",
		Panels: []page.Panel{{ID: "items", On: []string{"item.*", "message.*", "history.*"}, Load: loadItems}},
	}
}

func loadItems(a *page.Ask) (any, error) {
	return a.Client.ListItems(a.Context(), events.ListItems{ThreadID: a.Thread.ID, At: a.At, Order: "desc"})
}
