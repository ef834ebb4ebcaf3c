package chat

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema/arguments"
)

// Routes adds /chat to an edge.
func Routes(e *edge.Edge) {
	e.Handle("POST /chat", post)
	e.Handle("GET /chat/{id}", get)
	e.Handle("GET /chat/{id}/stream", resume)
	e.Handle("POST /chat/{id}/stop", stop)
}

// post sends a message, answers calls or asks again, and streams the message that follows.
func post(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	body, err := edge.Body(r, maxBody)
	if err != nil {
		return err
	}
	req, err := readRequest(body)
	if err != nil {
		return err
	}
	if err := c.Awaits(true); err != nil {
		return err
	}
	h, err := open(r.Context(), c, req.ID)
	if err != nil {
		return err
	}
	h.once = onceOf(r, c, body)
	f, err := h.send(r.Context(), req)
	if err != nil {
		return refused(err)
	}
	return h.stream(w, r, f)
}

// refused returns a refusal of a command without the path in it, which the client has never
// seen: the field at fault is the agent, or the messages.
func refused(err error) error {
	e := *events.AsError(err)
	if e.Code == events.PayloadTooLarge && e.Details != nil && e.Details.Path == "" {
		e.Message = fmt.Sprintf("the message takes %d bytes as it is stored, without its files, and may take %d: divide it, or send its text as a file", e.Details.Size, e.Details.Limit)
		e.Details = &events.ErrorDetails{Path: "/messages", Size: e.Details.Size, Limit: e.Details.Limit}
		return &e
	}
	if e.Details == nil || !strings.HasPrefix(e.Details.Path, "/data/") {
		return err
	}
	details := *e.Details
	e.Message, e.Details = strings.TrimPrefix(e.Message, details.Path+": "), &details
	if strings.HasSuffix(details.Path, "/agentId") {
		details.Path = "/agent"
	} else {
		details.Path = "/messages"
	}
	details.Command = nil
	return &e
}

// resume streams the message that is being written, from its beginning.
func resume(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	h, err := open(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	f, err := h.resume(r.Context())
	if err != nil {
		return err
	}
	if f == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return h.stream(w, r, f)
}

// stop cancels the run that is active. The body may name the message that the client sees, so
// that a late request does not stop a later one.
func stop(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	if !c.May(edge.Write) { // also where nothing is active
		return events.Errorf(events.Forbidden, "the credential does not permit to %s", edge.Write)
	}
	var body struct {
		MessageID string `json:"messageId"`
	}
	if r.ContentLength != 0 {
		if err := json.UnmarshalRead(http.MaxBytesReader(w, r.Body, maxBody), &body); err != nil {
			return events.Errorf(events.InvalidRequest, "the body is empty, or {\"messageId\"}: %w", err)
		}
	}
	h, err := open(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	if h.thread == nil {
		return h.missing()
	}
	stopped, err := h.stop(r.Context(), body.MessageID)
	if err != nil {
		return err
	}
	edge.WriteJSON(w, http.StatusOK, struct {
		Stopped bool `json:"stopped"`
	}{stopped})
	return nil
}

// get answers with the messages of a chat. It holds one page of them at a time.
func get(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	h, err := open(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	if h.thread == nil {
		return h.missing()
	}
	before := []byte("[")
	write := func(raw []byte) error {
		w.Header().Set("Content-Type", "application/json")
		_, err := w.Write(raw)
		return err
	}
	err = h.list(r.Context(), func(m *Message) error {
		raw, err := json.Marshal(m)
		if err != nil {
			return err
		}
		raw = append(before, arguments.WithoutPrototype(raw)...)
		before = []byte(",")
		return write(raw)
	})
	switch {
	case err == nil && before[0] == '[':
		return write([]byte("[]"))
	case err == nil:
		return write([]byte("]"))
	case before[0] == ',':
		panic(http.ErrAbortHandler) // half a list must not look whole
	}
	return err
}
