package stream

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/skein-threads/skein/api/edge"
)

// mostRefused is how many messages in a row may be malformed; then a socket is closed.
const mostRefused = 10

// Socket is a WebSocket. Send may be called concurrently.
type Socket struct {
	conn    *websocket.Conn
	caller  *edge.Caller
	request context.Context //nolint:containedctx // it lives as long as the request
	ctx     context.Context //nolint:containedctx // ends when the client has gone, or the request ends
	end     context.CancelFunc
	running sync.WaitGroup
	refused int // malformed messages in a row
}

// Accept answers a handshake with a WebSocket, which takes messages of some bytes. Close it. It does
// not look at the origin: the edge did, with the origins that it allows and the host that a proxy tells.
//
// The error is the answer of the handler: a refusal, or none if the answer was sent.
func Accept(w http.ResponseWriter, r *http.Request, c *edge.Caller, mostBytes int64) (*Socket, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return nil, edge.UpgradeRequired(w, r)
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(mostBytes)
	s := &Socket{conn: conn, caller: c, request: r.Context()}
	s.ctx, s.end = context.WithCancel(r.Context())
	s.Go(s.keepAlive)
	s.Go(s.closeAtEnd)
	return s, nil
}

// Context returns a context that ends with the socket.
func (s *Socket) Context() context.Context { return s.ctx }

// Go runs work that ends with the socket's context. Close waits for it.
func (s *Socket) Go(work func()) { s.running.Go(work) }

// End ends the socket's context, and so the socket.
func (s *Socket) End() { s.end() }

// Close ends the socket and waits for its work.
func (s *Socket) Close() {
	s.end()
	s.running.Wait()
}

// Messages returns what the client sends; nil is a binary message, which no protocol here has. So many
// messages are read ahead while earlier ones are handled. The channel is closed when the socket ends.
func (s *Socket) Messages(ahead int) <-chan []byte {
	messages := make(chan []byte, ahead)
	s.Go(func() {
		defer close(messages)
		defer s.end()
		for {
			kind, text, err := s.conn.Read(context.WithoutCancel(s.ctx)) // it ends with the connection
			if err != nil {
				return
			}
			if kind != websocket.MessageText {
				text = nil
			}
			select {
			case messages <- text:
			case <-s.ctx.Done():
				return
			}
		}
	})
	return messages
}

// Send sends a text, at the pace of the caller's tenant. A client that takes nothing is cut off.
func (s *Socket) Send(text []byte) error {
	if err := s.caller.Weigh(s.ctx, len(text)); err != nil {
		return err
	}
	// A write that is interrupted would break the connection, before it is closed properly.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.caller.Stall)
	defer cancel()
	err := s.conn.Write(ctx, websocket.MessageText, text)
	if err != nil {
		s.end()
	}
	return err
}

// Refuse answers a malformed message, and reports whether the socket stays open: it ends with too many
// in a row. Call it for each message in turn, with nil for one that is well formed.
func (s *Socket) Refuse(answer []byte) bool {
	if answer == nil {
		s.refused = 0
		return true
	}
	if s.Send(answer) != nil {
		return false
	}
	if s.refused++; s.refused < mostRefused {
		return true
	}
	s.Finish(websocket.StatusPolicyViolation, "too many malformed frames")
	return false
}

// Finish closes the socket with a handshake that says why.
func (s *Socket) Finish(status websocket.StatusCode, reason string) {
	_ = s.conn.Close(status, reason) // the client may have gone
}

// closeAtEnd closes the connection at the end: with a handshake if the request has ended, and at once
// if the client has gone or takes nothing.
func (s *Socket) closeAtEnd() {
	<-s.ctx.Done()
	if s.request.Err() != nil {
		if edge.CredentialEnded(s.request) != nil {
			s.Finish(websocket.StatusPolicyViolation, "the credentials have ended")
		} else {
			s.Finish(websocket.StatusGoingAway, "resume with another socket")
		}
	}
	_ = s.conn.CloseNow()
}

// keepAlive pings the client, and ends the socket if it no longer answers.
func (s *Socket) keepAlive() {
	tick := time.NewTicker(s.caller.SocketPing)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
		// A ping that is interrupted would break the connection, before closeAtEnd closes it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.caller.Stall)
		err := s.conn.Ping(ctx)
		cancel()
		if err != nil {
			s.end()
			return
		}
	}
}
