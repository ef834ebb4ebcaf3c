package console

import (
	"strings"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// tenantEffects is the page with the scheduled effects of all threads.
func tenantEffects() page.Page {
	return page.Page{
		Path: "/effects", Name: "Effects", In: page.Navigation, Template: "tenant-effects", JSON: "/api/effects{query}", CLI: "skein effect list",
		Query:  []string{"only", "name", "cursor"},
		Load:   func(a *page.Ask) (any, error) { return choices{a.Query("only"), events.EffectView("").Enum()}, nil },
		Panels: []page.Panel{{ID: "effect-list", On: []string{"effect.*", "lifecycle.*"}, Load: listEffects}},
	}
}

// effects is the tab with the scheduled effects of a thread.
func effects() page.Page {
	return page.Page{
		Path: "/threads/{thread}/effects", Name: "Effects", In: page.Tabs, Template: "effects", JSON: "/api/threads/{thread}/effects{at}", CLI: "skein effect list {thread}",
		Panels: []page.Panel{{ID: "effect-list", On: []string{"effect.*"}, Load: listEffects}},
	}
}

// effectPage is a page of scheduled effects, the earliest first.
type effectPage struct {
	Effects  []effect
	Titles   map[string]string // of the effects' threads, if OfTenant
	Next     string            // the address of the next page
	OfTenant bool              // it lists the effects of all threads
	Narrowed bool              // there is a filter
	MayWrite bool
}

// effect is a scheduled effect, as it is shown.
type effect struct {
	events.ScheduledEffect
	Late bool // it is due, but not running
}

// Repeats says how an effect is repeated; empty: it is not.
func (e effect) Repeats() string {
	switch {
	case e.Cron != "":
		return "cron " + e.Cron
	case e.EveryMs > 0:
		return "every " + (time.Duration(e.EveryMs) * time.Millisecond).String()
	}
	return ""
}

// listEffects loads the effects of the thread, or of the tenant if the page has no thread.
func listEffects(a *page.Ask) (any, error) {
	q := events.ListEffects{At: a.At, Name: a.Query("name"), Only: events.EffectView(a.Query("only")), Cursor: a.Query("cursor")}
	if a.Thread != nil {
		q.ThreadID = a.Thread.ID
	}
	list, err := client.Read(a.Context(), a.Client, q)
	if err != nil {
		return nil, err
	}
	p := &effectPage{MayWrite: a.May(edge.Write) && a.Live(), OfTenant: a.Thread == nil, Narrowed: q.Only != "" || q.Name != ""}
	for _, e := range list.Effects {
		p.Effects = append(p.Effects, effect{e, a.Live() && e.Late(time.Now())})
	}
	if p.OfTenant {
		p.Titles = titles(a, p.Effects, func(e *effect) string { return e.ThreadID })
	}
	if list.NextCursor != "" {
		p.Next = a.With("cursor", list.NextCursor)
	}
	return p, nil
}

func effectActions() []page.Action {
	return []page.Action{{Path: "/threads/{thread}/effects/cancel", Do: func(a *page.Ask) (string, error) {
		_, err := a.Client.Send(a.Context(), a.Thread.ID, events.CancelEffect{EffectID: strings.TrimSpace(a.Form("effectId")), Reason: "cancelled in the console"})
		return a.Back(a.ThreadLink("/effects")), err
	}}}
}
