package agui

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// The headers that name the thread and the run of an answer.
const (
	headerThread    = "Skein-Thread-Id"
	headerExecution = "Skein-Execution-Id"
)

// Routes adds /agui to an edge.
func Routes(e *edge.Edge) {
	e.Handle("POST /agui/{agent}", openresponses.Refusals(run))
	e.Handle("GET /agui/info", info)
	e.Handle("POST /agui/agent/{agent}/run", openresponses.Refusals(run))
	e.Handle("POST /agui/agent/{agent}/connect", connect)
	e.Handle("POST /agui/agent/{agent}/stop/{threadId}", stop)
}

// run answers a request to run an agent with the events of the run.
func run(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	in, err := readInput(r)
	if err != nil {
		return err
	}
	if err := c.Awaits(true); err != nil {
		return err
	}
	f, err := begin(r, c, r.PathValue("agent"), in)
	if err != nil {
		return err
	}
	w.Header().Set(headerThread, f.thread)
	w.Header().Set(headerExecution, f.execution)
	return serve(w, r, func(ctx context.Context, send func(...event) error) error { return f.stream(ctx, in, send) })
}

// serve answers with events. One that cannot go on ends with an error.
func serve(w http.ResponseWriter, r *http.Request, source func(ctx context.Context, send func(...event) error) error) error {
	failed := func(err error) stream.Frame {
		p, _ := edge.ProblemOf(err)
		f, _ := event{Type: runError, Message: p.Message, Code: p.Code}.frame() // it is made of texts
		return f
	}
	protocol := stream.Protocol{Failed: failed, Closing: failed, Revoked: func(e *events.Error) stream.Frame { return failed(e) }}
	return stream.Serve(w, r, protocol, func(ctx context.Context, out *stream.Writer) error {
		return source(ctx, func(list ...event) error {
			for _, e := range list {
				f, err := e.frame()
				if err != nil {
					return err
				}
				if err := out.Write(f); err != nil {
					return err
				}
			}
			return out.Flush()
		})
	})
}

// connect answers with the messages of a thread, and then with what is live.
func connect(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	in, err := readInput(r)
	if err != nil {
		return err
	}
	t, err := open(r.Context(), c, in.ThreadID)
	if err != nil {
		return err
	}
	thread := t.latest()
	x, err := t.active(r.Context(), thread)
	if err != nil {
		return err
	}
	list, state := []message{}, []event(nil)
	if thread != nil {
		w.Header().Set(headerThread, thread.ID)
		if list, err = t.messages(r.Context(), thread.ID); err != nil {
			return err
		}
		if state, err = stateOf(r.Context(), t.now, events.GetContext{ThreadID: thread.ID}, ""); err != nil {
			return err
		}
	}
	waits := x != nil && runview.AwaitsPeople(x)
	if x != nil && !waits { // what it writes comes live
		list = slices.DeleteFunc(list, func(m message) bool { return slices.Contains(x.Items(), m.item) })
	}
	return serve(w, r, func(ctx context.Context, send func(...event) error) error {
		err := send(append([]event{in.started(), {Type: messagesSnapshot, Messages: &list}}, state...)...)
		if err != nil {
			return err
		}
		if waits {
			return send(paused(in, x))
		}
		if err := send(event{Type: runFinished, ThreadID: in.ThreadID, RunID: in.RunID, Outcome: &outcome{Type: "success"}}); err != nil || x == nil {
			return err
		}
		f, err := t.follow(ctx, x)
		if err != nil {
			return err
		}
		live := input{ThreadID: in.ThreadID, RunID: settingsOf(x.Settings).RunID, ProtocolVersion: in.ProtocolVersion}
		if live.RunID == "" { // it was not begun here
			live.RunID = x.ID
		}
		return f.stream(ctx, &live, send)
	})
}

// stop cancels the run that is active. The body may name the run that the client sees, so that a late
// request does not stop a later one.
func stop(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	if !c.May(edge.Write) { // also where nothing is active
		return events.Errorf(events.Forbidden, "the credential does not permit to %s", edge.Write)
	}
	var body struct {
		RunID string `json:"runId"`
	}
	raw, err := edge.Body(r, edge.MaxMessageBody)
	if err != nil {
		return err
	}
	if len(raw) > 0 && json.Unmarshal(raw, &body) != nil {
		return events.Invalid("", "the body is empty, or {\"runId\"}")
	}
	in := input{ThreadID: r.PathValue("threadId"), RunID: body.RunID}
	if err := checkThread("/threadId", in.ThreadID); err != nil {
		return err
	}
	t, err := open(r.Context(), c, in.ThreadID)
	if err != nil {
		return err
	}
	stopped := false
	for _, b := range t.branches {
		x, err := t.active(r.Context(), b)
		if err != nil {
			return err
		}
		if x == nil || body.RunID == "" && b != t.latest() {
			continue
		}
		if is, err := t.shows(r.Context(), x, body.RunID); err != nil || !is {
			if err != nil {
				return err
			}
			continue
		}
		_, err = t.now.Send(r.Context(), b.ID, events.CancelRun{ExecutionID: x.ID, Reason: "stopped by its client"})
		if err != nil && !events.HasCode(err, events.NotFound, events.IllegalTransition) {
			return err
		}
		stopped = stopped || err == nil
	}
	if !stopped && body.RunID != "" {
		if stopped, err = t.unqueue(r.Context(), numberOf(c, in.ThreadID, body.RunID)); err != nil {
			return err
		}
	}
	edge.WriteJSON(w, http.StatusOK, struct {
		Stopped bool `json:"stopped"`
	}{stopped})
	return nil
}

// unqueue removes a run of this protocol that has not begun, and reports whether there was one.
func (t *conversation) unqueue(ctx context.Context, number string) (bool, error) {
	run := once{number: number}
	for _, b := range t.branches {
		list, err := t.now.ListQueue(ctx, events.ListQueue{ThreadID: b.ID})
		if err != nil {
			return false, err
		}
		for _, q := range list.Queued {
			if q.ExecutionID != run.execution() {
				continue
			}
			_, err := t.now.Send(ctx, b.ID, events.RemoveQueued{QueuedID: q.ID})
			if events.IsNotFound(err) { // it has begun
				return false, nil
			}
			return err == nil, err
		}
	}
	return false, nil
}

// shows reports whether a run of the protocol is, or has resumed, an execution; any is if it is not named.
func (t *conversation) shows(ctx context.Context, x *events.Execution, run string) (bool, error) {
	if run == "" || run == x.ID || settingsOf(x.Settings).RunID == run {
		return true, nil
	}
	f, err := t.follow(ctx, x)
	if err != nil {
		return false, err
	}
	resumed := once{number: numberOf(t.caller, t.id, run)}
	types := []string{string(events.ApprovalGrantedType), string(events.ApprovalDeniedType), string(events.ApprovalResolvedType)}
	for from := f.from; from > 0; {
		page, err := client.Read(ctx, t.now, events.ListEvents{ThreadID: x.ThreadID, FromVersion: &from, Types: types})
		if err != nil {
			return false, err
		}
		for _, raw := range page.Events {
			if e, err := events.DecodeEvent(raw); err == nil && e.CommandID == resumed.command() {
				return true, nil
			}
		}
		from = page.NextVersion
	}
	return false, nil
}
