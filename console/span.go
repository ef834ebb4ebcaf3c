package console

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/chart"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// spanItems is how many of the last items that a model was shown are displayed.
const spanItems = 4

// span is the selected bar of a run, with its input and output.
type span struct {
	chart.Bar
	Took     string
	Error    string
	Note     string // a short note, such as who granted it
	Close    string // address of the run without it
	Timeline string // address of its event
	Works    string // address of the run on another thread that it waits for

	Input, Output     []spanItem
	Earlier           int64       // items of the input that are not in Input
	Arguments, Result events.JSON // of a call
}

// spanItem is an item of the thread, or the output of a step.
type spanItem struct {
	Speaker string
	Parts   []part
}

// loadSpan returns the bar that the address names; nil if it is not one of this run.
func (c *talk) loadSpan(a *page.Ask, r *chart.Run, now events.Time) (*span, error) {
	chosen := a.Query("span")
	for i := range r.Bars {
		if b := &r.Bars[i]; b.ID == chosen {
			b.Chosen = true
			s := &span{Bar: *b, Close: a.With("span", "") + "#" + r.ID}
			s.describe(a, now)
			return s, c.fillSpan(a, r, s)
		}
	}
	return nil, nil
}

// describe fills the fields that the bar itself contains.
func (s *span) describe(a *page.Ask, now events.Time) {
	end := s.Ended
	if end == 0 {
		end = max(now, s.Begun)
	}
	s.Took = chart.Duration(int64(end - s.Begun))
	version := strconv.FormatInt(s.Version, 10)
	s.Timeline = page.LinkThread(a.Thread.ID, "/timeline") + "?before=" + strconv.FormatInt(s.Version+50, 10) + "#v" + version
	if s.Note = s.Detail; s.Failed && s.Kind != chart.WaitBar {
		s.Note, s.Error = "", s.Detail
	}
	if s.Usage != (events.Usage{}) && s.Models == nil {
		s.Models = []events.Usage{s.Usage}
	}
}

// fillSpan reads the input and output of the bar.
func (c *talk) fillSpan(a *page.Ask, r *chart.Run, s *span) (err error) {
	switch s.Kind {
	case chart.RunBar:
		return c.fillRun(a, r, s)
	case chart.StepBar:
		s.Output, err = c.stepOutput(a, s.ID)
	case chart.ModelBar:
		if err = c.fillShown(a, s); err == nil {
			s.Output, err = c.stepOutput(a, s.Parent)
		}
	case chart.ToolBar, chart.WaitBar:
		err = fillCall(a, s)
	}
	return err
}

// fillRun adds the item that a run answers, and the items that it wrote.
func (c *talk) fillRun(a *page.Ask, r *chart.Run, s *span) error {
	x, err := client.Read(a.Context(), a.Client, events.GetExecution{ThreadID: a.Thread.ID, ExecutionID: r.ID, At: a.At})
	if err != nil {
		return missing(err)
	}
	if s.Input, err = c.items(a, x.TriggerItemID); err != nil {
		return err
	}
	wrote := []string{x.ReactionItemID}
	for _, later := range x.LaterItems {
		wrote = append(wrote, later.ItemID)
	}
	s.Output, err = c.items(a, wrote...)
	return err
}

// fillShown adds the last items that a model was shown.
func (c *talk) fillShown(a *page.Ask, s *span) (err error) {
	if s.Shown == nil {
		return nil
	}
	ids := s.Shown.Items
	last := ids[max(len(ids)-spanItems, 0):]
	s.Earlier = max(s.Shown.Count, int64(len(ids))) - int64(len(last))
	s.Input, err = c.items(a, last...)
	return err
}

// items returns items as a conversation shows them. Items that do not exist, or no longer exist,
// are left out.
func (c *talk) items(a *page.Ask, ids ...string) ([]spanItem, error) {
	var list []spanItem
	for _, id := range ids {
		i, err := client.Read(a.Context(), a.Client, events.GetItem{ThreadID: a.Thread.ID, ItemID: id, At: a.At})
		if err != nil {
			if err = missing(err); err != nil {
				return nil, err
			}
			continue
		}
		for _, t := range c.turnsOf([]events.Item{*i}, viewer{}) {
			list = append(list, spanItem{Speaker: t.Speaker, Parts: t.Parts})
		}
	}
	return list, nil
}

// stepOutput returns the output of a step.
func (c *talk) stepOutput(a *page.Ask, step string) ([]spanItem, error) {
	parts, err := stepParts(a, step)
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	return []spanItem{{Parts: c.partsOf("span-"+step, parts, nil, map[string]bool{})}}, nil
}

// fillCall adds the arguments and the result of a call.
func fillCall(a *page.Ask, s *span) error {
	if s.Thread != "" {
		_, err := client.Read(a.Context(), a.Client, events.GetThread{ThreadID: s.Thread})
		if err == nil {
			s.Works = page.LinkThread(s.Thread, "/run")
		} else if err = missing(err); err != nil {
			return err
		}
	}
	parts, err := stepParts(a, s.Parent)
	for _, p := range parts {
		if p.ToolCallID == s.Call && s.Call != "" && strings.HasPrefix(p.Type, events.ToolPart) {
			s.Arguments, s.Result = p.Input, p.Output
			if s.Error == "" {
				s.Error = p.ErrorText
			}
		}
	}
	return err
}

// stepParts returns the parts of a step, in their order.
func stepParts(a *page.Ask, step string) ([]rawPart, error) {
	if step == "" {
		return nil, nil
	}
	list, err := client.Read(a.Context(), a.Client, events.ListParts{ThreadID: a.Thread.ID, StepID: step, At: a.At})
	if err != nil {
		return nil, missing(err)
	}
	var parts []rawPart
	for _, p := range list.Parts {
		var raw rawPart
		if json.Unmarshal(p.Part, &raw) == nil { // a part of another form is not shown
			parts = append(parts, raw)
		}
	}
	return parts, nil
}

// missing returns nil if err says that something does not exist or that this reader may not see
// it: the page is shown without it. Otherwise it returns err.
func missing(err error) error {
	if code := events.AsError(err).Code; code == events.NotFound || code == events.Forbidden {
		return nil
	}
	return err
}
