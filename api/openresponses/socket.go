package openresponses

import (
	"context"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/events"
)

// Limits of a socket.
const (
	socketLife  = time.Hour // after which the client connects again
	socketAhead = 8         // frames that may wait while a response is in flight
)

// socket is a connection on which responses are created one after another. Temporary
// responses can be continued on it until it is closed.
type socket struct {
	*stream.Socket
	caller *edge.Caller
	ctx    context.Context       //nolint:containedctx // of the connection
	kept   map[string]*temporary // the last temporary responses, by thread
	warm   map[string]warmed     // what requests with generate: false have sent, by response
}

// connect answers GET /v1/responses with a WebSocket.
func connect(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	conn, err := stream.Accept(w, r, c, edge.MaxBody)
	if err != nil {
		return err
	}
	defer conn.Close()
	s := &socket{Socket: conn, caller: c, ctx: conn.Context(), kept: map[string]*temporary{}, warm: map[string]warmed{}}
	s.serve(conn.Messages(socketAhead))
	for _, t := range s.kept {
		go t.discard(context.WithoutCancel(r.Context()))
	}
	return nil
}

// serve answers frames one after another.
func (s *socket) serve(frames <-chan []byte) {
	life := time.NewTimer(socketLife)
	defer life.Stop()
	for {
		select {
		case <-life.C:
			_ = s.send(failure(nil, &refusal{edge.Problem{
				Type: "invalid_request", Code: "websocket_connection_limit_reached", Message: "a connection lasts an hour; connect again",
			}, http.StatusBadRequest}))
			s.Finish(websocket.StatusNormalClosure, "connection limit reached")
			return
		case frame, ok := <-frames:
			if !ok || !s.frame(frame) {
				return
			}
		}
	}
}

// frame answers a frame. It reports whether the socket stays open.
func (s *socket) frame(frame []byte) bool {
	var d createRequest
	var err error
	busy := s.caller.Decode(s.ctx, len(frame), func() error {
		err = decode(frame, &d)
		return nil
	})
	if busy != nil {
		return s.ctx.Err() == nil && s.send(failure(nil, busy)) == nil
	}
	switch {
	case err != nil && d.Type == "response.create" && events.AsError(err).Details.Path != "": // a field of it has the wrong type
	case err != nil || len(frame) == 0:
		err = events.Invalid("", "a frame is a JSON object in a text frame")
	case d.Type != "response.create":
		err = events.Invalid("/type", "a frame here has the type response.create, and not %s", clipped(d.Type))
	}
	if err != nil {
		raw, err := encode(failure(d.StreamID, err))
		return err == nil && s.Refuse(raw)
	}
	s.Refuse(nil)
	if err := s.create(&d); err != nil {
		s.evict(d.PreviousResponseID)
		return s.ctx.Err() == nil && s.send(failure(d.StreamID, err)) == nil
	}
	return true
}

// create starts a response, and sends its events.
func (s *socket) create(d *createRequest) error {
	if err := s.caller.Decode(s.ctx, len(d.Input), d.check); err != nil {
		return err
	}
	if d.Background {
		return events.Invalid("/background", "a response on a WebSocket is not in the background; it continues anyway if the socket is closed")
	}
	if err := s.continueWarm(d); err != nil {
		return err
	}
	if err := s.caller.Awaits(true); err != nil {
		return err
	}
	b, err := begin(s.ctx, s.caller, d, "", func(thread string) bool { _, own := s.kept[thread]; return own })
	if err != nil {
		return err
	}
	defer b.live.Close()
	if t := b.temporary; t != nil {
		if before, own := s.kept[b.thread]; own {
			before.follow(t)
		} else {
			s.kept[b.thread] = t
			t.keep(s.ctx)
		}
	}
	delete(s.warm, d.PreviousResponseID)
	if !d.generates() {
		return s.warmUp(b)
	}
	x, err := b.execution(s.ctx)
	if err != nil {
		return err
	}
	_, err = follow(s.ctx, b.client, leg{x: x, n: b.leg, live: b.live}, wholeAttempts, sink{send: func(v streamEvent) error {
		v.StreamID = d.StreamID
		return s.send(v)
	}})
	return err
}

// evict forgets the temporary response that a request which failed has named.
func (s *socket) evict(id string) {
	delete(s.warm, id)
	l, err := legOf(s.ctx, s.caller.Client, id)
	if err != nil {
		return // it is gone, or was none
	}
	if t, own := s.kept[l.x.ThreadID]; own {
		delete(s.kept, l.x.ThreadID)
		go t.discard(context.WithoutCancel(s.ctx))
	}
}

// failure returns the frame for an error that leaves the socket open.
func failure(streamID events.JSON, err error) any {
	p, status := problemOf(err)
	return struct {
		Type     string       `json:"type"`
		Status   int          `json:"status"`
		Error    edge.Problem `json:"error"`
		StreamID events.JSON  `json:"stream_id,omitzero"`
	}{"error", status, p, streamID}
}

func (s *socket) send(v any) error {
	raw, err := encode(v)
	if err != nil {
		return err
	}
	return s.Send(raw)
}

func encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}
