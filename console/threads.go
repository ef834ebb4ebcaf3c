package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// Sizes of the list of threads.
const (
	threadsShown   = 50   // of a page of the list
	threadsScanned = 2000 // read for one page of a search in titles
)

// threads is the page with the list of threads.
func threads() page.Page {
	return page.Page{
		Path: "/threads", Name: "Threads", In: page.Navigation, Template: "threads", JSON: "/api/threads{query}", CLI: "skein thread list",
		Query: []string{"status", "agentId", "userId", "keyPrefix", "archived", "cursor"},
		Load:  loadFilter,
		Panels: []page.Panel{{
			ID: "thread-list", On: []string{"thread.*", "lifecycle.*", "profile.changed", "agent.assigned", "item.created", "queue.*", "approval.*", "execution.*"},
			Load: func(a *page.Ask) (any, error) { return listThreads(a) },
		}},
	}
}

// threadFilter holds the filters of the list.
type threadFilter struct {
	Search, Status, Agent, User, Prefix, Archived, Waiting, Cursor string
	Statuses                                                       []string
	Agents                                                         []string
	Narrowed                                                       bool // there is a filter
	MayWrite                                                       bool
}

func filterOf(a *page.Ask) threadFilter {
	f := threadFilter{
		Search: strings.TrimPrefix(strings.TrimSpace(a.Query("q")), "…"), // the short form of an id begins with it
		Status: a.Query("status"), Agent: a.Query("agentId"), User: a.Query("userId"),
		Prefix: a.Query("keyPrefix"), Archived: a.Query("archived"), Waiting: a.Query("waiting"), Cursor: a.Query("cursor"),
		Statuses: events.ThreadStatus("").Enum(), MayWrite: a.May(edge.Write),
	}
	f.Narrowed = cmp.Or(f.Search, f.Status, f.Agent, f.User, f.Prefix, f.Archived, f.Waiting) != ""
	return f
}

func loadFilter(a *page.Ask) (any, error) {
	f := filterOf(a)
	f.Agents, _ = a.Client.GetAgentNames(a.Context()) // a limited key may not list them; then the name must be typed
	return f, nil
}

// threadPage is a page of the list.
type threadPage struct {
	Threads  []events.Thread
	Next     string // the cursor of the next page
	Scanned  int    // of a search in titles: how many threads were examined, if there are more
	Filter   threadFilter
	MayWrite bool
}

func listThreads(a *page.Ask) (*threadPage, error) {
	f := filterOf(a)
	p := &threadPage{Filter: f, MayWrite: f.MayWrite}
	switch {
	case f.Waiting != "":
		return p, p.waiting(a)
	case f.Search != "":
		return p, p.search(a)
	default:
		list, err := client.Read(a.Context(), a.Client, f.query(f.Cursor, threadsShown))
		if err != nil {
			return nil, err
		}
		p.Threads, p.Next = list.Threads, list.NextCursor
		return p, nil
	}
}

func (f threadFilter) query(cursor string, limit int64) events.ListThreads {
	q := events.ListThreads{
		Status: events.ThreadStatus(f.Status), AgentID: f.Agent, UserID: f.User, KeyPrefix: f.Prefix, Cursor: cursor, Limit: &limit,
	}
	if f.Archived != "" {
		q.Archived = new(f.Archived == "true")
	}
	return q
}

// search finds a thread by its id or its key, and threads by a part of their titles, keys or ids,
// ignoring case.
func (p *threadPage) search(a *page.Ask) error {
	seen := map[string]bool{}
	add := func(t events.Thread) {
		if !seen[t.ID] {
			seen[t.ID] = true
			p.Threads = append(p.Threads, t)
		}
	}
	if p.Filter.Cursor == "" {
		for _, ref := range []string{p.Filter.Search, "key:" + p.Filter.Search} {
			if t, err := client.Read(a.Context(), a.Client, events.GetThread{ThreadID: ref}); err == nil { // otherwise it is no id or key
				add(*t)
			}
		}
	}
	wanted, cursor := strings.ToLower(p.Filter.Search), p.Filter.Cursor
	for scanned := 0; ; {
		list, err := client.Read(a.Context(), a.Client, p.Filter.query(cursor, 500))
		if err != nil {
			return err
		}
		for _, t := range list.Threads {
			if named(t, wanted) {
				add(t)
			}
		}
		cursor, scanned = list.NextCursor, scanned+len(list.Threads)
		if cursor == "" {
			return nil
		}
		if scanned >= threadsScanned || len(p.Threads) >= threadsShown {
			p.Next, p.Scanned = cursor, scanned
			return nil
		}
	}
}

// named reports whether the title, the key or the id of a thread contains part, which must be in
// lower case.
func named(t events.Thread, part string) bool {
	return strings.Contains(strings.ToLower(t.Title), part) || strings.Contains(strings.ToLower(t.ID), part) ||
		t.Key != nil && strings.Contains(strings.ToLower(*t.Key), part)
}

// waiting lists the threads that wait for an approval.
func (p *threadPage) waiting(a *page.Ask) error {
	list, next, err := readApprovals(a, events.ListApprovals{AgentID: p.Filter.Agent, Cursor: p.Filter.Cursor})
	if err != nil {
		return err
	}
	p.Next = next
	var ids []string
	for _, one := range list {
		ids = append(ids, one.ThreadID)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		t, err := client.Read(a.Context(), a.Client, events.GetThread{ThreadID: id})
		if events.IsNotFound(err) { // deleted meanwhile
			continue
		}
		if err != nil {
			return err
		}
		p.Threads = append(p.Threads, *t)
	}
	slices.SortFunc(p.Threads, func(a, b events.Thread) int { return strings.Compare(b.UpdatedAt, a.UpdatedAt) })
	return nil
}

// threadActions are the changes of threads as a whole.
func threadActions() []page.Action {
	return []page.Action{
		{Path: "/threads", Do: createThread},
		{Path: "/threads/bulk", Do: changeThreads},
	}
}

func createThread(a *page.Ask) (string, error) {
	reply, err := a.Client.Send(a.Context(), "", events.CreateThread{
		Title: strings.TrimSpace(a.Form("title")), Key: strings.TrimSpace(a.Form("key")), AgentID: strings.TrimSpace(a.Form("agentId")),
	})
	if err != nil {
		return "", err
	}
	return page.LinkThread(reply.ThreadID, ""), nil
}

// changeThreads archives, restores or deletes the selected threads.
func changeThreads(a *page.Ask) (string, error) {
	var change func(id string) error
	switch a.Form("do") {
	case "archive", "restore":
		archived := a.Form("do") == "archive"
		change = func(id string) error {
			_, err := a.Client.Send(a.Context(), id, events.UpdateThread{Archived: &archived})
			return err
		}
	case "delete":
		change = func(id string) error {
			_, err := a.Client.Send(a.Context(), id, events.DeleteThread{})
			return err
		}
	default:
		return "", events.Invalid("/do", "do is %.40q; it takes archive, restore or delete", a.Form("do"))
	}
	chosen := a.Request.PostForm["thread"]
	if len(chosen) == 0 {
		return "", events.Invalid("/thread", "no thread is selected; tick those that are meant")
	}
	for _, id := range chosen {
		if err := change(id); err != nil && !events.IsNotFound(err) { // another window was faster
			return "", err
		}
	}
	return a.Back(page.Root + "/threads"), nil
}

// NextAddress returns the address of the next page of the list.
func (p *threadPage) NextAddress() string {
	q := url.Values{}
	f := p.Filter
	for name, value := range map[string]string{"q": f.Search, "status": f.Status, "agentId": f.Agent, "userId": f.User, "keyPrefix": f.Prefix, "archived": f.Archived, "waiting": f.Waiting, "cursor": p.Next} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return page.Root + "/threads?" + q.Encode()
}
