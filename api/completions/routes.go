package completions

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// The headers that name the thread and the run of an answer.
const (
	headerThread    = "Skein-Thread-Id"
	headerExecution = "Skein-Execution-Id"
)

const route = "/v1/chat/completions"

// tries is how often a chat that changes meanwhile is looked at again.
const tries = 8

// Routes adds the route of chat completions.
func Routes(e *edge.Edge) { e.Handle("POST "+route, openresponses.Refusals(create)) }

// create answers POST /v1/chat/completions.
func create(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	body, err := edge.Body(r, edge.MaxMessageBody)
	if err != nil {
		return err
	}
	d, err := readRequest(body)
	if err != nil {
		return err
	}
	if err := c.Awaits(d.Stream); err != nil {
		return err
	}
	run, err := d.begin(r, c, body)
	if err != nil {
		return err
	}
	defer run.Close()
	w.Header().Set(headerThread, run.Thread())
	w.Header().Set(headerExecution, run.Execution())
	if d.Stream {
		return d.stream(w, r, run)
	}
	a, err := run.Wait(r.Context())
	if err != nil {
		return err
	}
	if p, failed := failureOf(a); failed {
		edge.WriteJSON(w, statusOf(p), problem{p})
		return nil
	}
	m := messageOf(a.Output)
	reason, wait := finishOf(run, a, len(m.ToolCalls) > 0)
	out := d.completion(run, "chat.completion")
	out.Created = cmp.Or(a.Created, out.Created)
	out.Choices, out.Usage = []choice{{Message: m, FinishReason: &reason, Skein: wait}}, usageOf(a.Usage)
	edge.WriteJSON(w, http.StatusOK, out)
	return nil
}

// begin starts the run of a request, or joins the run of an earlier request.
func (d *request) begin(r *http.Request, c *edge.Caller, body []byte) (*openresponses.Run, error) {
	chat, err := chatOf(r)
	if err != nil {
		return nil, err
	}
	asked := openresponses.Asked{Sent: body, Scope: route + "\x00" + chat, Body: d.response(map[string]any{"store": false}), Input: d.input, Stop: d.stops}
	var history []said
	if chat != "" { // before anything is asked: the body is decoded then
		history = d.history()
		asked.Threads = func(ctx context.Context, now *client.Client) ([]string, error) {
			return threadsOf(ctx, now, chat, history)
		}
	}
	if err := asked.Check(r, c); err != nil {
		return nil, d.refused(err, 0)
	}
	for try := 1; ; try++ {
		run, err := d.beginOnce(r, c, asked, chat, history, try < tries)
		switch {
		case !events.HasCode(err, events.AlreadyExists, events.VersionConflict): // otherwise two requests began together
			return run, err
		case try == tries && (chat == "" || events.IsReusedID(err)):
			return nil, edge.ReusedKey(edge.HeaderKey)
		case try == tries && events.HasCode(err, events.AlreadyExists): // its thread is not for this caller
			return nil, events.Missing("chat", chat)
		case try == tries:
			return nil, err
		}
	}
}

// beginOnce starts the run of a request in the thread of its chat, or joins the run of an earlier
// request. A request with a name expects the thread as it was seen, if there is another try: it
// does what another one with its name does, which has seen more.
func (d *request) beginOnce(r *http.Request, c *edge.Caller, asked openresponses.Asked, chat string, history []said, expects bool) (*openresponses.Run, error) {
	var p place
	var now *client.Client
	if chat != "" {
		var err error
		if now, err = c.Client.UpToDate(r.Context()); err != nil {
			return nil, err
		}
		if p, err = locate(r.Context(), now, chat, history); err != nil {
			return nil, err
		}
	}
	// Now: a run that begins later was not seen in the chat, and this request does as that one does.
	if run, err := asked.Earlier(r, c); run != nil || err != nil {
		return run, err
	}
	if chat != "" {
		if p.thread == nil && len(c.Principal.Threads) > 0 { // it makes none
			return nil, events.Missing("chat", chat)
		}
		once := asked.Once(r, c)
		thread, err := p.settle(r.Context(), c, now, once)
		if err != nil {
			return nil, err
		}
		goesOn := map[string]any{}
		if thread != "" {
			goesOn["conversation"] = thread
		}
		if expects && once != "" && p.thread != nil && p.whole {
			asked.Version = &p.thread.Version
		}
		asked.Key, asked.Body, asked.Input = p.key, d.response(goesOn), d.input[p.next:]
	}
	run, err := asked.Begin(r, c)
	if err != nil {
		err = d.refused(err, p.next)
	}
	return run, err
}

// completion returns an answer without what the run has said.
func (d *request) completion(run *openresponses.Run, object string) completion {
	return completion{
		ID: "chatcmpl-" + strings.TrimPrefix(run.Execution(), events.ExecutionPrefix), Object: object, Created: time.Now().Unix(), Model: d.Model, Choices: []choice{},
	}
}

// stream answers with chunks. The first has the role, and the last a finish_reason; after it comes the
// usage, if the request asks for it.
func (d *request) stream(w http.ResponseWriter, r *http.Request, run *openresponses.Run) error {
	failed := func(err error) stream.Frame {
		p, _ := edge.ProblemOf(err)
		if failed := (*runError)(nil); errors.As(err, &failed) {
			p = failed.Problem
		}
		f, _ := frame(problem{p}) // it is made of texts
		return f
	}
	protocol := stream.Protocol{
		Done: &stream.Frame{Data: []byte("[DONE]")}, Failed: failed, Closing: failed, // some clients take a stream that just ends for a whole answer
		Revoked: func(e *events.Error) stream.Frame { return failed(e) },
	}
	return stream.Serve(w, r, protocol, func(ctx context.Context, out *stream.Writer) error { return d.write(ctx, out, run) })
}

// write writes the chunks of a run's answer.
func (d *request) write(ctx context.Context, out *stream.Writer, run *openresponses.Run) error {
	send := func(c completion) error {
		f, err := frame(c)
		if err != nil {
			return err
		}
		return out.Send(f)
	}
	chunk := d.completion(run, "chat.completion.chunk")
	say := func(one choice) error {
		next := chunk
		next.Choices = []choice{one}
		return send(next)
	}
	if err := say(choice{Delta: &delta{Role: events.Assistant}}); err != nil {
		return err
	}
	a, err := run.Follow(ctx, func(shown openresponses.Shown) error { return say(choice{Delta: deltaOf(shown)}) })
	if err != nil {
		return err
	}
	if p, failed := failureOf(a); failed {
		return &runError{p}
	}
	calls := callsOf(a.Output)
	for _, d := range calls {
		if err := say(choice{Delta: d}); err != nil {
			return err
		}
	}
	reason, wait := finishOf(run, a, len(calls) > 0)
	if err := say(choice{Delta: &delta{}, FinishReason: &reason, Skein: wait}); err != nil || !d.StreamOptions.IncludeUsage {
		return err
	}
	last := chunk
	last.Usage = usageOf(a.Usage)
	return send(last)
}

func frame(v any) (stream.Frame, error) {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return stream.Frame{Data: raw}, err
}

// runError is why a run has failed, in mid-stream.
type runError struct{ edge.Problem }

func (e *runError) Error() string { return e.Message }

// problem is an error as OpenAI's clients expect it.
type problem struct {
	Error edge.Problem `json:"error"`
}

const cancelledCode = "cancelled"

// failureOf returns why a run has failed, or was cancelled.
func failureOf(a *openresponses.Answer) (edge.Problem, bool) {
	switch {
	case a.Failure != nil:
		return *a.Failure, true
	case a.Status == openresponses.Cancelled:
		return edge.Problem{Type: "server_error", Code: cancelledCode, Message: "the run was cancelled"}, true
	case a.Status == openresponses.Failed:
		return edge.Problem{Type: "server_error", Code: "server_error", Message: "the run failed"}, true
	}
	return edge.Problem{}, false
}

// statusOf returns the status of an answer that tells a failure.
func statusOf(p edge.Problem) int {
	switch {
	case p.Code == cancelledCode: // clients repeat what fails with 5xx
		return http.StatusBadRequest
	case p.Type == "too_many_requests":
		return http.StatusTooManyRequests
	case p.Type == "invalid_request":
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}
