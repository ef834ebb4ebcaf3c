package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// mostWaiting is how many commands wait for those before them; further frames are not read.
const mostWaiting = 64

// socket is a WebSocket on a thread.
type socket struct {
	*stream.Socket
	service *service
	caller  *edge.Caller
	thread  string

	state   *client.ThreadState // for emit; of the read loop's worker alone
	work    chan func()         // commands and emits, done in order
	watched map[string]bool     // of the read loop alone
}

// frame is a frame from a client.
type frame struct {
	Type    string         `json:"type"`
	What    []string       `json:"what"`
	From    *int64         `json:"from"`
	Log     string         `json:"log"`
	ID      jsontext.Value `json:"id"`
	Command string         `json:"command"`
	Name    string         `json:"name"`
	Data    jsontext.Value `json:"data"`
}

// socket serves a WebSocket on a thread.
func (s *service) socket(w http.ResponseWriter, req *http.Request, c *edge.Caller) error {
	if _, err := decodeParameters(req, nil, nil); err != nil {
		return err
	}
	thread, err := threadOf(req, c.Client)
	if err != nil {
		return err
	}
	conn, err := stream.Accept(w, req, c, maxBody)
	if err != nil {
		return err
	}
	defer conn.Close()
	k := &socket{Socket: conn, service: s, caller: c, thread: thread, work: make(chan func(), mostWaiting), watched: map[string]bool{}}
	ctx := conn.Context()
	k.Go(func() { k.doWork(ctx) })
	for raw := range conn.Messages(0) {
		if !k.receive(ctx, raw) {
			return nil
		}
	}
	return nil
}

// doWork does commands and emits in the order in which they came.
func (k *socket) doWork(ctx context.Context) {
	for {
		select {
		case do := <-k.work:
			do()
		case <-ctx.Done():
			return
		}
	}
}

// send sends a frame.
func (k *socket) send(v any) error {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	return k.Send(raw)
}

// errorFrame tells of a frame that was refused, and of the id that it had.
type errorFrame struct {
	Type    string         `json:"type"`
	ID      jsontext.Value `json:"id,omitzero"`
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Param   string         `json:"param"`
}

// receive handles a frame, and reports whether the socket stays open.
func (k *socket) receive(ctx context.Context, raw []byte) bool {
	var f frame
	err := k.caller.Decode(ctx, len(raw), func() error { return decodeFrame(raw, &f) })
	if err == nil {
		err = k.handle(ctx, f)
	}
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil:
		return k.Refuse(nil)
	}
	answer, err := json.Marshal(refusalOf(f.ID, err), json.Deterministic(true))
	return err == nil && k.Refuse(answer)
}

// refusalOf returns the frame that tells of an error.
func refusalOf(id jsontext.Value, err error) errorFrame {
	p, _ := edge.ProblemOf(err)
	return errorFrame{"error", id, p.Code, p.Message, p.Param}
}

// decodeFrame decodes a frame, which has the fields of its type and no others.
func decodeFrame(raw []byte, f *frame) error {
	if raw == nil {
		return events.Invalid("", "the frame is binary; send text")
	}
	o, err := decodeObject(raw)
	if err != nil {
		return err
	}
	if id := o["id"].Kind(); id == '"' || id == '0' {
		f.ID = o["id"]
	} else if o["id"] != nil {
		return events.Invalid("/id", "id must be a text or a number")
	}
	if json.Unmarshal(o["type"], &f.Type) != nil {
		return events.Invalid("/type", "type must be one of watch, command, emit")
	}
	var known []string
	switch f.Type {
	case "watch":
		known = []string{"type", "id", "what", "from", "log"}
	case "command":
		known = []string{"type", "id", "command", "data"}
	case "emit":
		known = []string{"type", "id", "name", "data"}
	default:
		return events.Invalid("/type", "there is no frame %.40q; it must be one of watch, command, emit", f.Type)
	}
	for name := range o {
		if !slices.Contains(known, name) {
			return events.Invalid("/"+escapePointer(name), "there is no such field; known are %s", strings.Join(known, ", "))
		}
	}
	if err := json.Unmarshal(raw, f); err != nil {
		var semantic *json.SemanticError
		path := ""
		if errors.As(err, &semantic) {
			path = string(semantic.JSONPointer)
		}
		return events.Invalid(path, "the value has the wrong type; see docs/http.md")
	}
	return nil
}

// handle handles a frame. An error is a refusal of the frame itself.
func (k *socket) handle(ctx context.Context, f frame) error {
	switch f.Type {
	case "watch":
		return k.watch(ctx, f)
	case "emit":
		if _, err := events.CheckLiveName(f.Name); err != nil {
			return events.Invalid("/name", "name must be a text of 1 to 128 characters")
		}
		return k.queue(ctx, func() { k.emit(ctx, f) })
	}
	if f.ID == nil {
		return events.Invalid("/id", "a command needs an id, which its reply has as well")
	}
	if f.Command == "" {
		return events.Invalid("/command", "command is missing; name one, such as message.add")
	}
	if _, known := events.LookupCommand(f.Command); !known { // the frame is a command, and gets its reply
		p, _ := edge.ProblemOf(unknown("command", f.Command, commandNames()))
		return k.queue(ctx, func() { _ = k.send(replyFrame{Type: "reply", ID: f.ID, Error: &p}) }) // the client may have gone
	}
	return k.queue(ctx, func() { k.command(ctx, f) })
}

// queue queues work, and waits while too much of it does.
func (k *socket) queue(ctx context.Context, do func()) error {
	select {
	case k.work <- do:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// replyFrame is the reply to a command, or its refusal.
type replyFrame struct {
	Type  string         `json:"type"`
	ID    jsontext.Value `json:"id"`
	Reply *events.Reply  `json:"reply,omitzero"`
	Error *edge.Problem  `json:"error,omitzero"`
}

// command executes a command on the socket's thread.
func (k *socket) command(ctx context.Context, f frame) {
	answer := replyFrame{Type: "reply", ID: f.ID}
	data := f.Data
	if data == nil {
		data = jsontext.Value("{}")
	}
	call := client.Request{Data: events.JSON(data)}
	if row, _ := events.LookupCommand(f.Command); !row.Tenant && f.Command != "thread.create" && f.Command != "thread.resolve" {
		call.ThreadID = k.thread
	}
	var err error
	if answer.Reply, err = k.caller.Client.Do(ctx, f.Command, call); err != nil {
		p, _ := edge.ProblemOf(err)
		answer.Error, answer.Reply = &p, nil
	}
	_ = k.send(answer) // the client may have gone
}

// emit emits a live event on the socket's thread.
func (k *socket) emit(ctx context.Context, f frame) {
	var err error
	if k.state == nil {
		k.state, err = k.caller.Client.Thread(ctx, k.thread)
	}
	if err == nil {
		data := f.Data
		if data == nil {
			data = jsontext.Value("null")
		}
		err = k.state.Emit(ctx, f.Name, data)
	}
	if err != nil {
		_ = k.send(refusalOf(f.ID, err)) // the client may have gone
	}
}
