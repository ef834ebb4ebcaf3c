package edge

import (
	"bytes"
	"net/http"
	"sync"
	"time"
)

// Times of a stream.
const (
	streamPing  = 15 * time.Second // between two comments
	streamStall = 30 * time.Second // a reader that takes nothing for so long is ended
)

// Event is a server-sent event. Empty fields but Data are left out.
type Event struct {
	ID, Name string
	Data     []byte // a text; its lines become lines of data
}

// Stream is an answer of server-sent events. It is safe for concurrent use.
type Stream struct {
	w      http.ResponseWriter
	ctrl   *http.ResponseController
	answer *response // nil in a handler that no edge called

	mu     sync.Mutex
	ping   *time.Timer
	every  time.Duration // between pings
	closed bool
	err    error
}

// NewStream begins an answer of server-sent events, with the headers that w has already.
// Close it.
func NewStream(w http.ResponseWriter) *Stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s := &Stream{w: w, ctrl: http.NewResponseController(w)}
	if answer, ok := responseOf(w); ok {
		s.answer = answer
		if s.err = answer.lasts(); s.err != nil { // the refusal is the answer, and every Send returns it
			h.Del("X-Accel-Buffering")
			WriteError(w, s.err)
			return s
		}
	}
	w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.write(nil) // sends the headers
	if s.every = streamPing; s.answer != nil {
		s.every = s.answer.edge.opts.Ping
	}
	s.ping = time.AfterFunc(s.every, s.sendPing)
	return s
}

// Frame returns an event as a stream has it, for several streams to send.
func (e Event) Frame() []byte {
	b := make([]byte, 0, len(e.ID)+len(e.Name)+len(e.Data)+32)
	if e.ID != "" {
		b = append(append(append(b, "id: "...), e.ID...), '\n')
	}
	if e.Name != "" {
		b = append(append(append(b, "event: "...), e.Name...), '\n')
	}
	for line := range bytes.SplitSeq(e.Data, []byte("\n")) {
		b = append(append(append(b, "data: "...), bytes.TrimSuffix(line, []byte("\r"))...), '\n')
	}
	return append(b, '\n')
}

// Send sends an event. An error means that the reader has gone, or takes nothing: every
// later call returns it too.
func (s *Stream) Send(e Event) error { return s.SendFrame(e.Frame()) }

// SendFrame sends an event that [Event.Frame] returned.
func (s *Stream) SendFrame(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(frame)
}

// Close ends the stream's pings. The answer ends when its handler returns.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.ping != nil {
		s.ping.Stop()
	}
}

// sendPing sends a comment, whatever else was sent: its reader counts on one.
func (s *Stream) sendPing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return
	}
	_ = s.write([]byte(": ping\n\n")) // the next event returns its error
	s.ping.Reset(s.every)
}

// write sends bytes at once. The caller holds mu.
func (s *Stream) write(b []byte) error {
	if s.err != nil {
		return s.err
	}
	if s.answer == nil {
		_ = s.ctrl.SetWriteDeadline(time.Now().Add(streamStall)) // a recorder in a test has none
	} // otherwise Write sets it
	if _, s.err = s.w.Write(b); s.err == nil {
		s.err = s.ctrl.Flush()
	}
	return s.err
}
