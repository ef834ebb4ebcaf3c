package openresponses

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/api/runstream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runview"
)

// leg is the part of a run that one response shows. The response ends where the run waits for
// people: the response to their answers shows the next leg of the same run.
type leg struct {
	x *events.Execution
	n int // its place among the legs of the run, from 0

	live   *runstream.Live   // follows its run from the beginning on; nil: queries tell of it
	record *runstream.Record // of the run, when the leg has ended; nil: queries tell

	withdrawn bool // the run was removed from its queue before it began
}

// pause returns where the leg ends, nil if it goes on to the end of the run.
func (l leg) pause() *runview.Pause { return l.pauseAt(l.n) }

// before returns where the leg before this one has ended, nil if it is the first.
func (l leg) before() *runview.Pause { return l.pauseAt(l.n - 1) }

func (l leg) pauseAt(n int) *runview.Pause {
	if list := runview.Pauses(l.x); n >= 0 && n < len(list) {
		return &list[n]
	}
	return nil
}

// waits reports whether the leg has ended because its run waits, or has waited, for people.
func (l leg) waits() bool {
	p := l.pause()
	return p != nil && (p.Answered() || runview.AwaitsPeople(l.x))
}

// over reports whether the leg has ended.
func (l leg) over() bool { return l.x.Finished || l.waits() }

// id returns the id of the leg's response.
func (l leg) id() string {
	id := "resp_" + strings.TrimPrefix(l.x.ID, events.ExecutionPrefix)
	if l.n > 0 {
		id += "_" + strconv.Itoa(l.n)
	}
	return id
}

// legOf returns what the response with that id shows.
func legOf(ctx context.Context, c *client.Client, id string) (leg, error) {
	x, err := execution(ctx, c, id)
	if !events.IsNotFound(err) {
		return leg{x: x}, err
	}
	at := strings.LastIndexByte(id, '_')
	n, wrong := strconv.Atoi(id[at+1:])
	if wrong != nil || n < 1 || strconv.Itoa(n) != id[at+1:] {
		return leg{}, noResponse(id)
	}
	if x, err = execution(ctx, c, id[:at]); events.IsNotFound(err) {
		return leg{}, noResponse(id)
	} else if err != nil {
		return leg{}, err
	}
	l := leg{x: x, n: n}
	if before := l.before(); before == nil || !before.Answered() {
		return leg{}, noResponse(id)
	}
	return l, nil
}

// awaitLeg blocks until a leg of a run has ended. The run may wait in a queue before.
func awaitLeg(ctx context.Context, c *client.Client, q events.GetExecution, n int) (leg, error) {
	return leg{x: &events.Execution{ThreadID: q.ThreadID, ID: q.ExecutionID}, n: n}.ended(ctx, c)
}

// ended blocks until the leg has ended, and returns it then. Its run may wait in a queue before.
func (l leg) ended(ctx context.Context, c *client.Client) (leg, error) {
	if l.live != nil {
		at := l
		record, err := l.live.Record(ctx, l.x, func(r *runstream.Record) bool {
			at.x = r.Execution
			return at.over()
		})
		if at.record = record; err == nil || ctx.Err() != nil {
			return at, err
		}
	}
	q, n := events.GetExecution{ThreadID: l.x.ThreadID, ExecutionID: l.x.ID}, l.n
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var at leg
	var wrong error
	asked := n > 0
	x, err := c.WatchExecution(watching, l.x, func(w client.Waiting) {
		asked = asked || len(w.Approvals) > 0
		if watching.Err() != nil || w.Queued || !asked {
			return
		}
		if at, wrong = legNow(watching, c, q, n); wrong != nil || at.over() {
			stop()
		}
	})
	if err == nil {
		return leg{x: x, n: n}, nil
	}
	if watching.Err() != nil && ctx.Err() == nil {
		return at, wrong
	}
	return leg{}, err
}

// legNow returns a leg of a run as of now.
func legNow(ctx context.Context, c *client.Client, q events.GetExecution, n int) (leg, error) {
	upToDate, err := c.UpToDate(ctx)
	if err != nil {
		return leg{}, err
	}
	x, err := client.Read(ctx, upToDate, q)
	return leg{x: x, n: n}, err
}

// spans returns the steps of each leg of a run up to one, in order. A step belongs to the leg that
// ends after it.
func (l leg) spans(ctx context.Context, c *client.Client) ([][]string, error) {
	steps, err := l.steps(ctx, c)
	if err != nil {
		return nil, err
	}
	spans, from := make([][]string, l.n+1), 0
	for n := range spans {
		to := len(steps)
		if p := l.pauseAt(n); p != nil {
			to = slices.Index(steps, p.StepID) + 1
		}
		spans[n], from = steps[from:max(from, to)], max(from, to)
	}
	return spans, nil
}

// steps returns the ids of the run's steps, in order.
func (l leg) steps(ctx context.Context, c *client.Client) ([]string, error) {
	if l.record != nil {
		return l.record.Steps, nil
	}
	list, err := client.Read(ctx, c.WithMinSeq(l.x.Seq), events.ListSteps{ThreadID: l.x.ThreadID, ExecutionID: l.x.ID})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, s := range list.Steps {
		ids = append(ids, s.ID)
	}
	return ids, nil
}

// parts returns the parts of a step of the run.
func (l leg) parts(ctx context.Context, c *client.Client, step string) ([]events.JSON, error) {
	if l.record != nil {
		return l.record.Parts(step), nil
	}
	list, err := client.Read(ctx, c, events.ListParts{ThreadID: l.x.ThreadID, StepID: step})
	if err != nil {
		return nil, err
	}
	var parts []events.JSON
	for _, p := range list.Parts {
		if p.Part != nil {
			parts = append(parts, p.Part)
		}
	}
	return parts, nil
}

// output returns the items of a leg that has ended, and how those of the run are numbered
// before it.
func (l leg) output(ctx context.Context, c *client.Client, showServer bool) (list []transform.Item, before numbering, err error) {
	c = c.WithMinSeq(l.x.Seq) // every read model shows its end
	spans, err := l.spans(ctx, c)
	if err != nil {
		return nil, before, err
	}
	number := numberingOf(l.x.ReactionItemID)
	for n, steps := range spans {
		before, list = number, []transform.Item{}
		at := leg{x: l.x, n: n, record: l.record}
		if p := at.before(); p != nil { // what has come of the calls that it asked about
			parts, err := l.callParts(ctx, c, p)
			if err != nil {
				return nil, before, err
			}
			list = number.pieces(l.x, parts, at.shows(showServer))
		}
		for _, step := range steps {
			parts, err := l.parts(ctx, c, step)
			if err != nil {
				return nil, before, err
			}
			list = append(list, number.pieces(l.x, parts, at.shows(showServer))...)
		}
		for i := range list {
			at.link(&list[i])
		}
	}
	if l.waits() {
		asked, err := l.requests(ctx, c)
		return append(list, asked...), before, err
	}
	return list, before, nil
}

// link notes in a call that was approved to which request that was.
func (l leg) link(o *transform.Item) {
	if l.before() == nil || o.Type != serverCallItem {
		return
	}
	number := numberingOf(l.x.ReactionItemID)
	for _, a := range l.before().Calls {
		if number.call("mcp_", a.CallID) == o.ID {
			o.Rest["approval_request_id"] = events.Quote(number.call(requestPrefix, a.CallID))
		}
	}
}

// requests returns the items at the end of a leg that waits for people: requests to approve calls,
// and questions. A question is a call, and the caller sends its output.
func (l leg) requests(ctx context.Context, c *client.Client) ([]transform.Item, error) {
	p := l.pause()
	parts, err := l.callParts(ctx, c.WithMinSeq(l.x.Seq), p)
	if err != nil {
		return nil, err
	}
	number := numberingOf(l.x.ReactionItemID)
	var list []transform.Item
	for _, a := range p.Calls {
		said := "{}"
		for _, raw := range parts {
			var part struct {
				Input events.JSON `json:"input"`
			}
			if _ = decode(raw, &part); callOfPart(raw) == a.CallID && part.Input != nil { // it is JSON
				said = events.TextOf(part.Input)
			}
		}
		if a.Reason == events.ApprovalQuestion {
			list = append(list, transform.Item{Type: callItem, ID: number.call("fc_", a.CallID), CallID: a.CallID, Name: a.Name, Arguments: &said, Status: completedStatus})
			continue
		}
		list = append(list, transform.Item{
			Type: requestItem, ID: number.call(requestPrefix, a.CallID), Name: a.Name, Arguments: &said,
			Rest: map[string]events.JSON{"server_label": events.Quote(serverLabel)},
		})
	}
	return list, nil
}

// requestPrefix begins the ids of requests for approvals.
const requestPrefix = "mcpr_"

// shows returns which calls that the server makes the leg shows: those that people have approved,
// and others where the request asked for them. What a call comes to that it ends with, the next leg
// shows.
func (l leg) shows(all bool) func(call string) bool {
	before, after := l.before(), l.pause()
	return func(call string) bool {
		if before.Asks(call) {
			return !before.Questions(call)
		}
		return all && !after.Asks(call)
	}
}

// callParts returns the parts of the calls that a pause asks about.
func (l leg) callParts(ctx context.Context, c *client.Client, p *runview.Pause) ([]events.JSON, error) {
	all, err := l.parts(ctx, c, p.StepID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(raw events.JSON) bool { return !p.Asks(callOfPart(raw)) }), nil
}

// callOfPart returns the call that a part is of, empty if it is of none.
func callOfPart(raw events.JSON) string {
	var part struct {
		CallID events.JSON `json:"toolCallId"`
	}
	_ = decode(raw, &part) // it is JSON
	return textOf(part.CallID)
}
