package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/chart"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

// auditPage is the number of events with commands on the tab Audit, and auditFaults the number of
// faults.
const (
	auditPage   = 300
	auditFaults = 20
)

// audit is the tab that shows who changed what, and verifies the thread.
func audit() page.Page {
	return page.Page{
		Path: "/threads/{thread}/audit", Name: "Audit", In: page.Tabs, Template: "audit", Load: verifyThread,
		JSON: "/api/threads/{thread}/events?limit=1000", CLI: "skein audit verify {thread}",
		Panels: []page.Panel{{ID: "audit-commands", On: allEvents(), Load: loadCommands}},
	}
}

// commandData is the data of the panel.
type commandData struct {
	Commands []commandView
	Older    string // address of earlier commands
}

// commandView is a command that changed the thread.
type commandView struct {
	ID          string
	From, To    int64
	Time        events.Time
	Actor       string
	Execution   string
	TraceParent string
	Changes     []string // descriptions of its events
	More        int      // events that are not in Changes
}

// Next is the version after the command. The timeline up to it ends with the command.
func (c commandView) Next() int64 { return c.To + 1 }

func loadCommands(a *page.Ask) (any, error) {
	to := a.Shown()
	if before, err := strconv.ParseInt(a.Query("before"), 10, 64); err == nil && before > 1 && before <= to {
		to = before - 1
	}
	list, from, err := eventsBefore(a, to, nil, auditPage, auditPage, nil)
	if err != nil {
		return nil, err
	}
	d := &commandData{}
	if from > 1 {
		d.Older = a.With("before", strconv.FormatInt(from, 10))
	}
	d.Commands = commandsOf(list)
	return d, nil
}

// commandsOf returns the commands of events, the newest first.
func commandsOf(list []events.Event) []commandView {
	var commands []commandView
	for i := len(list) - 1; i >= 0; i-- {
		e := &list[i]
		if n := len(commands); n == 0 || commands[n-1].ID != e.CommandID {
			commands = append(commands, commandView{ID: e.CommandID, To: e.Version})
		}
		c := &commands[len(commands)-1]
		c.From, c.Time, c.Actor, c.Execution, c.TraceParent = e.Version, e.Time, e.Actor, e.Correlation, e.TraceParent
		if len(c.Changes) >= 8 {
			c.More++
			continue
		}
		c.Changes = append([]string{strings.TrimSpace(string(e.Type) + "  " + eventtext.Line(e))}, c.Changes...)
	}
	return commands
}

// verification is the result of verifying a thread.
type verification struct {
	Events int64
	Took   string
	Faults []string
}

// verifyThread reads the whole thread from the log and checks it, if the address asks for that. It
// checks that versions have no gaps, times do not go back, references exist, and the state
// machines allow every change of state.
func verifyThread(a *page.Ask) (any, error) {
	if a.Query("verify") == "" {
		return (*verification)(nil), nil
	}
	began, v := time.Now(), &verification{}
	check := events.NewTimelineChecker()
	for from := int64(1); from > 0 && from <= a.Last; {
		limit := int64(1000)
		got, err := client.Read(a.Context(), a.Client, events.ListEvents{ThreadID: a.Thread.ID, FromVersion: &from, Limit: &limit})
		if err != nil {
			return nil, err
		}
		for _, raw := range got.Events {
			v.Events++
			e, err := events.DecodeEvent(raw)
			if err == nil {
				err = check.Check(&e)
			}
			if err != nil && len(v.Faults) < auditFaults {
				v.Faults = append(v.Faults, fmt.Sprintf("%.500s", err))
			}
		}
		from = got.NextVersion
	}
	if v.Events == 0 {
		v.Faults = append(v.Faults, "the log has no event of it")
	}
	v.Took = chart.Duration(time.Since(began).Microseconds())
	return v, nil
}
