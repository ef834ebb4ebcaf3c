package console

import (
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/chart"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// Limits of the tab Run.
const (
	runPage   = 8      // runs
	runReach  = 20_000 // events examined to find them
	runWindow = 3000   // of these, events of runs
	childRuns = 8      // runs on other threads that are drawn in a run
	childSpan = 2000   // events of each
	runTrail  = 100    // events after the last change of a run that may belong to it
)

// run is the tab with the waterfalls of a thread's executions.
func run(c *talk, prices chart.Prices) page.Page {
	return page.Page{
		Path: "/threads/{thread}/run", Name: "Run", In: page.Tabs, Template: "run",
		JSON: "/api/threads/{thread}/executions{at}", CLI: "skein tail {thread} --from start --type 'run.*'",
		Panels: []page.Panel{{ID: "runs", On: runEvents(), Load: func(a *page.Ask) (any, error) { return loadRuns(a, c, prices) }}},
	}
}

// runEvents returns the patterns of the events that waterfalls are made from.
func runEvents() []string {
	return []string{"execution.*", "step.*", "run.*", "approval.*", "trace.*", "agent.*", string(events.ThreadFinishedType)}
}

// runData is the data of the tab.
type runData struct {
	Runs  []runView
	Older string // address of earlier runs
}

// runView is one run.
type runView struct {
	*chart.Run
	Status  string
	Took    string
	Lasts   bool
	Steps   int
	Calls   int
	Waited  string // total time of waits for people, workers and other threads
	Tokens  string
	Cost    string // of the tokens, if the prices of all models are known
	Chart   template.HTML
	RetryAt string // address of the failed run that it retries
	Above   string // address of the run on another thread that waits for it
	Span    *span  // the selected bar, if it is one of this run
}

func loadRuns(a *page.Ask, c *talk, prices chart.Prices) (any, error) {
	to := a.Shown()
	if before, err := strconv.ParseInt(a.Query("before"), 10, 64); err == nil && before > 1 && before <= to {
		to = before - 1
	}
	list, from, err := runsBefore(a, to)
	if err != nil {
		return nil, err
	}
	runs := chart.Fold(list)
	d := &runData{}
	if extra := len(runs) - runPage; extra > 0 {
		runs = runs[extra:]
		from = runs[0].Bars[0].Version
	}
	if from > 1 {
		d.Older = a.With("before", strconv.FormatInt(from, 10), "span", "")
	}
	slices.Reverse(runs)
	now := nowOf(a)
	nested := 0
	for _, r := range runs {
		v := viewOf(a, r, now)
		if v.Span, err = c.loadSpan(a, r, now); err != nil {
			return nil, err
		}
		if err := nestChildren(a, r, &nested); err != nil {
			return nil, err
		}
		v.draw(now, prices)
		d.Runs = append(d.Runs, v)
	}
	return d, nil
}

// runsBefore returns the events of the newest runs up to a version, and the first version
// examined. It skips versions at which, according to the thread's executions, nothing ran.
func runsBefore(a *page.Ask, to int64) (list []events.Event, from int64, err error) {
	newest, err := client.Read(a.Context(), a.Client, events.ListExecutions{ThreadID: a.Thread.ID, At: a.At, Order: "desc", Limit: new(int64(runPage + 1))})
	if err != nil || len(newest.Executions) == 0 {
		return nil, 1, err
	}
	last := int64(0)
	for _, x := range newest.Executions {
		last = max(last, x.Version)
	}
	missing, all := len(newest.Executions), len(newest.Executions) <= runPage
	if to < last { // an earlier page, with other runs
		missing, all = runPage+1, false
	}
	list, from, err = eventsBefore(a, min(to, last+runTrail), runEvents(), runWindow, runReach, func(found []events.Event) bool {
		for _, e := range found {
			if e.Type == events.ExecutionCreatedType {
				missing--
			}
		}
		return missing <= 0
	})
	if all && missing <= 0 {
		from = 1
	}
	return list, from, err
}

// nowOf returns the end of bars that have not ended: now, or the time of the version that the page
// shows.
func nowOf(a *page.Ask) events.Time {
	if !a.Live() {
		at := a.Thread.UpdatedAt
		if at == "" {
			at = a.Thread.CreatedAt
		}
		if t, err := events.ParseTime(at); err == nil {
			return t
		}
	}
	return events.TimeOf(time.Now())
}

// nestChildren puts the runs on other threads that a run waits for below its waits.
func nestChildren(a *page.Ask, r *chart.Run, nested *int) error {
	for i := range r.Bars {
		b := &r.Bars[i]
		if b.Thread == "" || *nested >= childRuns {
			continue
		}
		*nested++
		list, err := threadEvents(a, b.Thread, 1, childSpan, runEvents())
		if err != nil {
			if err = missing(err); err != nil {
				return err
			}
			continue
		}
		for _, child := range chart.Fold(list) {
			if child.Parent == nil || child.Parent.ExecutionID != r.ID || child.Parent.CallID != b.Call {
				continue
			}
			parent := b.ID
			for k, below := range child.Bars {
				below.Href = page.LinkThread(child.Thread, "/run") + "?" + url.Values{"span": {below.ID}}.Encode() + "#" + chart.ChosenID
				if below.ID = child.ID + " " + below.ID; k == 0 {
					below.Parent = parent
				} else {
					below.Parent = child.ID + " " + below.Parent
				}
				r.Bars = append(r.Bars, below)
			}
			b = &r.Bars[i] // inserting has moved the bars
		}
	}
	return nil
}

// viewOf counts a run's own steps, calls and tokens, and links its bars.
func viewOf(a *page.Ask, r *chart.Run, now events.Time) runView {
	end := r.Ended()
	if end == 0 {
		end = max(now, r.Begun())
	}
	v := runView{Run: r, Status: string(r.Status), Took: chart.Duration(int64(end - r.Begun())), Lasts: r.Ended() == 0}
	var waited int64
	for i := range r.Bars {
		b := &r.Bars[i]
		b.Href = a.With("span", b.ID) + "#" + chart.ChosenID
		switch b.Kind {
		case chart.StepBar:
			v.Steps++
		case chart.ToolBar:
			v.Calls++
		case chart.WaitBar:
			if till := b.Ended; till > 0 {
				waited += int64(till - b.Begun)
			} else {
				waited += int64(max(now-b.Begun, 0))
			}
		}
	}
	if waited > 0 {
		v.Waited = chart.Duration(waited)
	}
	if u := r.Usage; u.InputTokens+u.OutputTokens > 0 {
		v.Tokens = chart.Count(u.InputTokens) + " in, " + chart.Count(u.OutputTokens) + " out"
	}
	if r.RetryOf != "" {
		v.RetryAt = "#" + r.RetryOf
	}
	if r.Parent != nil {
		v.Above = page.LinkThread(r.Parent.ThreadID, "/run") + "#" + r.Parent.ExecutionID
	}
	return v
}

// draw draws the run, with the runs that it waited for.
func (v *runView) draw(now events.Time, prices chart.Prices) {
	if v.Ended() != 0 {
		now = v.Ended()
	}
	w := chart.Waterfall{ID: "w-" + v.ID, Title: "Execution " + page.Short(v.ID), Bars: v.Bars, Left: v.Left, Now: now}
	if !prices.None() {
		v.Cost = prices.Cost(v.Bars[0].Models...)
		w.Cost = func(b *chart.Bar) string {
			if b.Kind == chart.RunBar {
				return prices.Cost(b.Models...)
			}
			return prices.Cost(b.Usage)
		}
	}
	v.Chart = w.HTML()
}
