package console

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

// timelinePage is how many events the timeline shows at once, and timelineReach how many it
// examines for them.
const (
	timelinePage  = 50
	timelineReach = 5000
)

// timeline is the tab with every event of a thread.
func timeline() page.Page {
	return page.Page{
		Path: "/threads/{thread}/timeline", Name: "Timeline", In: page.Tabs, Template: "timeline",
		JSON: "/api/threads/{thread}/events?limit=1000", CLI: "skein tail {thread} --from start",
		Panels: []page.Panel{{ID: "timeline-events", On: allEvents(), Load: loadTimeline, Row: timelineRow}},
	}
}

// allEvents returns the patterns of all events of threads.
func allEvents() []string {
	var on []string
	for _, row := range events.Catalog() {
		if !row.Transient {
			entity, _, _ := strings.Cut(string(row.Type), ".")
			on = append(on, entity+".*")
		}
	}
	slices.Sort(on)
	return slices.Compact(on)
}

// timelineData is the data of the timeline.
type timelineData struct {
	Entries  []timelineEntry
	Entities []string
	Chosen   string // the selected entity; empty: all
	Older    string // address of earlier events
	Newest   string // address of the newest events, unless these are the newest
}

// timelineEntry is an event on the page.
type timelineEntry struct {
	*events.Event
	Entity string
	Says   string
	JSON   template.HTML

	// The versions of the event that caused it and of the events that it caused, if they are on
	// the page.
	Cause   int64
	Effects []int64
	// More is how many other events its command made.
	More int
}

func loadTimeline(a *page.Ask) (any, error) {
	d := &timelineData{Chosen: a.Query("type")}
	for _, on := range allEvents() {
		d.Entities = append(d.Entities, strings.TrimSuffix(on, ".*"))
	}
	to := a.Shown()
	if before, err := strconv.ParseInt(a.Query("before"), 10, 64); err == nil && before > 1 && before <= to {
		to, d.Newest = before-1, a.With("before", "")
	}
	list, from, err := eventsBefore(a, to, typesOf(d.Chosen), timelinePage, timelineReach, nil)
	if err != nil {
		return nil, err
	}
	if from > 1 {
		d.Older = a.With("before", strconv.FormatInt(from, 10))
	}
	d.Entries = entries(list)
	slices.Reverse(d.Entries)
	return d, nil
}

// Most returns liveRows, for the template.
func (d *timelineData) Most() int { return liveRows }

func typesOf(entity string) []string {
	if entity == "" {
		return nil
	}
	return []string{entity + ".*"}
}

// eventsBefore returns the newest events of these types up to a version, in their order: at most
// want of them, among at most reach examined. from is the first version examined. enough is called
// with the events found in each part, the newest part first, and can end the search; it may be
// nil.
func eventsBefore(a *page.Ask, to int64, types []string, want int, reach int64, enough func(found []events.Event) bool) (list []events.Event, from int64, err error) {
	from = to + 1
	lowest := max(to-reach, 0)
	for size := int64(want); from > lowest+1 && len(list) < want; size = min(2*size, 1000) {
		begin := max(from-size, lowest+1)
		window, err := eventsBetween(a, begin, from-1, types)
		if err != nil {
			return nil, 0, err
		}
		list, from = append(window, list...), begin
		if enough != nil && enough(window) {
			break
		}
	}
	if extra := len(list) - want; extra > 0 {
		list = list[extra:]
		from = list[0].Version
	}
	return list, from, nil
}

// eventsBetween returns the events of these types from one version to another.
func eventsBetween(a *page.Ask, from, to int64, types []string) (list []events.Event, err error) {
	return threadEvents(a, a.Thread.ID, from, to, types)
}

// threadEvents returns the events of a thread from one version to another, of these types.
func threadEvents(a *page.Ask, thread string, from, to int64, types []string) (list []events.Event, err error) {
	for from > 0 && from <= to {
		limit := min(to-from+1, 1000)
		got, err := client.Read(a.Context(), a.Client, events.ListEvents{ThreadID: thread, FromVersion: &from, ToVersion: &to, Types: types, Limit: &limit})
		if err != nil {
			return nil, err
		}
		for _, raw := range got.Events {
			e, err := events.DecodeEvent(raw)
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
		from = got.NextVersion
	}
	return list, nil
}

// entries returns the events' entries on the page, with the links between them.
func entries(list []events.Event) []timelineEntry {
	links, byCommand := newLinks(), map[string]int{}
	for i := range list {
		byCommand[list[i].CommandID]++
	}
	out := make([]timelineEntry, len(list))
	for i := range list {
		e := &list[i]
		out[i] = entryOf(e)
		out[i].More = byCommand[e.CommandID] - 1
		if cause, ok := links.cause(i, e); ok {
			out[i].Cause = list[cause].Version
			out[cause].Effects = append(out[cause].Effects, e.Version)
		}
	}
	return out
}

func entryOf(e *events.Event) timelineEntry {
	name, _, _ := strings.Cut(string(e.Type), ".")
	return timelineEntry{Event: e, Entity: name, Says: eventtext.Line(e), JSON: page.ShowJSON(e.Raw())}
}

// timelineRow adds an event while the page is open at its newest ones.
func timelineRow(a *page.Ask, e client.Event) (*page.Row, error) {
	chosen := a.Query("type")
	entry := entryOf(&e.Event)
	if a.Query("before") != "" || cmp.Or(chosen, entry.Entity) != entry.Entity {
		return nil, nil
	}
	return &page.Row{ID: "v" + strconv.FormatInt(e.Version, 10), Template: "timeline-event", Data: entry}, nil
}
