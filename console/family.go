package console

import (
	"cmp"
	"strings"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/chart"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// maxFamily is how many threads of a family are read.
const maxFamily = 60

// family is the tab with the threads that a thread is related to.
func family() page.Page {
	return page.Page{
		Path: "/threads/{thread}/family", Name: "Family", In: page.Tabs, Template: "family",
		JSON: "/api/threads/{thread}/relationships{at}", CLI: "skein thread tree {thread}",
		Panels: []page.Panel{{
			ID: "family-tree", Load: loadFamily,
			On: []string{"relationship.*", "subthread.*", "thread.*", "profile.*", string(events.RunSuspendedType), string(events.RunParkedType)},
		}},
	}
}

// relatives collects a family.
type relatives struct {
	ask   *page.Ask
	chart chart.Family
	known map[string]bool
	next  []string           // threads to read the relatives of
	drawn map[[3]string]bool // the relations drawn so far, by their ends and kind
}

func loadFamily(a *page.Ask) (any, error) {
	f := &relatives{
		ask: a, known: map[string]bool{}, drawn: map[[3]string]bool{},
		chart: chart.Family{ID: "family", Title: "Family of " + nameOf(a.Thread)},
	}
	if err := f.add(a.Thread.ID); err != nil {
		return nil, err
	}
	for len(f.next) > 0 {
		id := f.next[0]
		f.next = f.next[1:]
		if err := f.relate(id); err != nil {
			return nil, err
		}
	}
	if len(f.chart.Nodes) < 2 {
		f.chart.Nodes = nil
	}
	return f.chart.HTML(), nil
}

// add adds a thread, if the principal may see it and there is room.
func (f *relatives) add(id string) error {
	if f.known[id] {
		return nil
	}
	if len(f.chart.Nodes) >= maxFamily {
		f.known[id] = true
		f.chart.Left++
		return nil
	}
	t, err := f.ask.Thread, error(nil)
	if id != f.ask.Thread.ID {
		t, err = client.Read(f.ask.Context(), f.ask.Client, events.GetThread{ThreadID: id})
	}
	if code := events.AsError(err).Code; code == events.NotFound || code == events.Forbidden {
		return nil // the thread is deleted, not created yet, or of another user
	} else if err != nil {
		return err
	}
	f.known[id] = true
	detail := strings.TrimSpace(t.AgentID + " " + page.Short(id))
	f.chart.Nodes = append(f.chart.Nodes, chart.Node{
		ID: id, Title: nameOf(t), Detail: detail, Status: string(t.Status),
		Href: page.LinkThread(id, "/family"), Here: id == f.ask.Thread.ID,
	})
	f.next = append(f.next, id)
	if t.MainThreadID != "" {
		return f.link(t.MainThreadID, id, "subagent", "")
	}
	return nil
}

// link adds a relation, and the threads at its ends.
func (f *relatives) link(from, to, kind, detail string) error {
	r := chart.Relation{From: from, To: to, Kind: kind, Detail: detail}
	key := [3]string{from, to, kind}
	if f.drawn[key] {
		return nil
	}
	f.drawn[key] = true
	f.chart.Relations = append(f.chart.Relations, r)
	if err := f.add(from); err != nil {
		return err
	}
	return f.add(to)
}

// relate adds the relatives of a thread. For the thread of the page, it adds those at the version
// that the page shows.
func (f *relatives) relate(id string) error {
	q := events.ListRelationships{ThreadID: id}
	if id == f.ask.Thread.ID {
		q.At = f.ask.At
	}
	list, err := client.Read(f.ask.Context(), f.ask.Client, q)
	if err != nil {
		return err
	}
	for _, r := range list.Relationships {
		from, to := id, r.ThreadID
		if r.Role == events.ChildRole {
			from, to = to, from
		}
		if err := f.link(from, to, string(r.Type), r.Comment); err != nil {
			return err
		}
	}
	if id != f.ask.Thread.ID {
		return nil
	}
	return f.subagents()
}

// subagents adds the threads on which agents work, or worked, for runs of the thread.
func (f *relatives) subagents() error {
	list, _, err := runsBefore(f.ask, f.ask.Shown())
	if err != nil {
		return err
	}
	for _, r := range chart.Fold(list) {
		for _, b := range r.Bars {
			if b.Thread == "" {
				continue
			}
			if err := f.link(f.ask.Thread.ID, b.Thread, "subagent", "call "+b.Call); err != nil {
				return err
			}
		}
	}
	return nil
}

// nameOf returns the display name of a thread.
func nameOf(t *events.Thread) string {
	key := ""
	if t.Key != nil {
		key = *t.Key
	}
	return cmp.Or(t.Title, key, t.AgentID, "Untitled thread")
}
