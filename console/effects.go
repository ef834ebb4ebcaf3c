package console

import (
	"strings"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// effects is the tab with what is scheduled on a thread.
func effects() page.Page {
	return page.Page{
		Path: "/threads/{thread}/effects", Name: "Effects", In: page.Tabs, Template: "effects", JSON: "/api/threads/{thread}/effects{at}", CLI: "skein effect list {thread}",
		Panels: []page.Panel{{ID: "effect-list", On: []string{"effect.*"}, Load: listEffects}},
	}
}

// effectPage is what is scheduled, the earliest first.
type effectPage struct {
	Effects  []effect
	MayWrite bool
}

// effect is a scheduled effect, as it is shown.
type effect struct {
	events.ScheduledEffect
	Late bool // it is due, and does not run
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

func listEffects(a *page.Ask) (any, error) {
	list, err := a.Client.ListEffects(a.Context(), events.ListEffects{ThreadID: a.Thread.ID, At: a.At})
	if err != nil {
		return nil, err
	}
	p := &effectPage{MayWrite: a.May(edge.Write) && a.Live()}
	now := time.Now().UnixMicro()
	for _, e := range list.Effects {
		p.Effects = append(p.Effects, effect{e, a.Live() && !e.Running && e.ScheduledAt < now-time.Minute.Microseconds()})
	}
	return p, nil
}

func effectActions() []page.Action {
	return []page.Action{{Path: "/threads/{thread}/effects/cancel", Do: func(a *page.Ask) (string, error) {
		_, err := a.Client.CancelEffect(a.Context(), a.Thread.ID, events.CancelEffect{EffectID: strings.TrimSpace(a.Form("effectId")), Reason: "cancelled in the console"})
		return a.ThreadLink("/effects"), err
	}}}
}
