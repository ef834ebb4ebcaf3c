package rest

import (
	"context"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// begun is the answer to a command that began a run: its reply, and the ids of the run.
type begun struct {
	ThreadID       string `json:"threadId"`
	ExecutionID    string `json:"executionId,omitzero"`
	ReactionItemID string `json:"reactionItemId,omitzero"`
	QueuedID       string `json:"queuedId,omitzero"`

	Version int64             `json:"version"`
	Seq     int64             `json:"seq"`
	Events  []events.EventRef `json:"events"`
	Result  *events.Result    `json:"result,omitzero"`
}

func begunOf(r *events.Reply) begun {
	result := resultOf(r)
	return begun{
		ThreadID: r.ThreadID, ExecutionID: result.ExecutionID, ReactionItemID: result.ReactionItemID, QueuedID: result.QueuedID,
		Version: r.Version, Seq: r.Seq, Events: r.Events, Result: r.Result,
	}
}

// react starts a run, and follows it if the caller accepts a stream.
func (s *service) react(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	row := Row{Method: req.Method, Path: "{thread}", Command: "thread.react"}
	body, err := readObject(req)
	if err != nil {
		return err
	}
	return s.start(w, req, c, row, body)
}

// enqueue queues a call of a tool, or a message.
func (s *service) enqueue(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	row := Row{Method: req.Method, Path: "{thread}", Command: "tool.queue"}
	body, err := readObject(req)
	if err != nil {
		return err
	}
	_, text := body["text"]
	_, item := body["item"]
	if _, tool := body["name"]; !tool && (text || item) {
		row.Command = "thread.react"
		if body["policy"] == nil {
			body["policy"] = jsontext.Value(`"` + events.Enqueue + `"`)
		}
	}
	return s.start(w, req, c, row, body)
}

// start executes a command that begins a run.
func (s *service) start(w http.ResponseWriter, req *http.Request, c *edge.Caller, row Row, body object) error {
	from, _, err := position(req, nil)
	if err != nil {
		return err
	}
	call, err := row.call(req, body)
	if err != nil {
		return err
	}
	if acceptsStream(req) {
		if err := c.Awaits(true); err != nil {
			return err
		}
	}
	reply, err := c.Client.Do(req.Context(), row.Command, call)
	if err != nil {
		return refusal(w, req, unwrapped(err, "/data"))
	}
	answer := begunOf(reply)
	if !acceptsStream(req) || answer.ExecutionID == "" {
		writeReply(w, http.StatusAccepted, reply, answer)
		return nil
	}
	w.Header().Set(headerSeq, strconv.FormatInt(reply.Seq, 10))
	return followRun(w, req, c, reply, from)
}

// acceptsStream reports whether a request accepts server-sent events.
func acceptsStream(req *http.Request) bool {
	for _, accept := range req.Header.Values("Accept") {
		for one := range strings.SplitSeq(accept, ",") {
			if kind, parameters, err := mime.ParseMediaType(one); err == nil && kind == "text/event-stream" && parameters["q"] != "0" {
				return true
			}
		}
	}
	return false
}

// protocol is how a stream of a run ends: with the error that an answer would be, or with nothing.
func protocol() stream.Protocol {
	return stream.Protocol{Failed: func(err error) stream.Frame {
		problem, _ := edge.ProblemOf(err)
		f, _ := jsonFrame("", "error", struct { // it is made of texts
			Error edge.Problem `json:"error"`
		}{problem})
		return f
	}}
}

// followRun answers with a run's chunks from an index, and in the end its execution.
func followRun(w http.ResponseWriter, req *http.Request, c *edge.Caller, reply *events.Reply, from int64) error {
	return stream.Serve(w, req, protocol(), func(ctx context.Context, out *stream.Writer) error {
		ctx, cancel := context.WithCancel(ctx)
		answer := begunOf(reply)
		run := waitForRun(ctx, c.Client, reply)
		defer func() {
			cancel()
			<-run.ended
		}()
		if err := sendJSON(out, "", "started", answer); err != nil {
			return err
		}
		select {
		case <-run.begun:
		case <-run.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
		if run.missing() {
			return run.err
		}
		if err := sendChunks(out, chunksFrom(ctx, c, answer.ThreadID, answer.ExecutionID, from)); err != nil {
			return err
		}
		select {
		case <-run.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
		if run.err != nil {
			return run.err
		}
		return sendJSON(out, "", "done", run.execution)
	})
}

// run is a run that is waited for. execution and err are set when ended is closed.
type run struct {
	begun, ended chan struct{}
	execution    *events.Execution
	err          error
}

// missing reports whether the run ended with an error.
func (r *run) missing() bool {
	select {
	case <-r.ended:
		return r.err != nil
	default:
		return false
	}
}

// waitForRun waits for the begin of a run, whose message may be queued, and for its end.
func waitForRun(ctx context.Context, c *client.Client, reply *events.Reply) *run {
	r := &run{begun: make(chan struct{}), ended: make(chan struct{})}
	q := events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: resultOf(reply).ExecutionID, Fresh: events.Fresh{MinSeq: &reply.Seq}}
	begin := sync.OnceFunc(func() { close(r.begun) })
	go func() {
		defer close(r.ended)
		r.execution, r.err = c.WatchRun(ctx, q, func(now client.Waiting) {
			if !now.Queued {
				begin()
			}
		})
	}()
	return r
}

// sendJSON sends a value as an event.
func sendJSON(out *stream.Writer, id, name string, v any) error {
	f, err := jsonFrame(id, name, v)
	if err != nil {
		return err
	}
	return out.Send(f)
}

// jsonFrame returns a value as an event.
func jsonFrame(id, name string, v any) (stream.Frame, error) {
	data, err := json.Marshal(v, json.Deterministic(true))
	return stream.Frame{ID: id, Name: name, Data: data}, err
}
