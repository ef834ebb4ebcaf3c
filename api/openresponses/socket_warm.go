package openresponses

import (
	"net/http"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// warmed is what a request with generate: false has sent: a thread with its input, which the
// next response on the socket continues. There is no run, so that no one else can find it.
type warmed struct {
	thread string
	stored bool
}

// mostWarm bounds how many of them a socket remembers.
const mostWarm = 64

// continueWarm sets the thread of a request that continues what was warmed up on this socket.
// It refuses to warm up too many.
func (s *socket) continueWarm(d *createRequest) error {
	w, ok := s.warm[d.PreviousResponseID]
	switch {
	case !d.generates() && len(s.warm) >= mostWarm:
		return &refusal{edge.Problem{
			Type: "invalid_request", Code: "too_many_warmups", Param: "generate",
			Message: "this connection has warmed up many responses and continued none; continue one, or connect again",
		}, http.StatusBadRequest}
	case !ok:
		return nil
	case w.stored != d.stored():
		return events.Invalid("/store", "response %s was warmed up with store: %v; continue it with the same", clipped(d.PreviousResponseID), w.stored)
	}
	d.warmed = w.thread
	return nil
}

// warmUp remembers what a request with generate: false has sent, and answers it with a response
// without output.
func (s *socket) warmUp(b *begun) error {
	s.warm[b.id] = warmed{b.thread, !b.echo.Temporary}
	r := newResource(b.id, b.echo, b.settings, b.request.Model)
	r.CreatedAt = time.Now().Unix()
	done := *r
	done.Status, done.CompletedAt = completedStatus, &r.CreatedAt
	for n, v := range []streamEvent{
		{Type: "response.created", Response: r}, {Type: "response.in_progress", Response: r}, {Type: "response.completed", Response: &done},
	} {
		v.SequenceNumber, v.StreamID = int64(n), b.request.StreamID
		if err := s.send(v); err != nil {
			return err
		}
	}
	return nil
}
