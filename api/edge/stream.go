package edge

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Times of a stream.
const (
	streamPing  = 15 * time.Second // a comment is sent if nothing else was
	streamStall = 30 * time.Second // a reader that takes nothing for so long is ended
)

// Event is a server-sent event. Empty fields but Data are left out.
type Event struct {
	ID, Name string
	Data     []byte // a text; its lines become lines of data
}

// Stream is an answer of server-sent events. It is safe for concurrent use.
type Stream struct {
	w    http.ResponseWriter
	ctrl *http.ResponseController
	done chan struct{}

	mu      sync.Mutex
	pending sync.WaitGroup
	sent    bool // since the last ping
	err     error
}

// NewStream begins an answer of server-sent events, with the headers that w has already.
// Close it.
func NewStream(w http.ResponseWriter) *Stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s := &Stream{w: w, ctrl: http.NewResponseController(w), done: make(chan struct{})}
	if answer, ok := responseOf(w); ok {
		if s.err = answer.lasts(); s.err != nil { // the refusal is the answer, and every Send returns it
			h.Del("X-Accel-Buffering")
			WriteError(w, s.err)
			return s
		}
	}
	w.WriteHeader(http.StatusOK)
	s.pending.Go(s.ping)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.write(nil) // sends the headers
	return s
}

// Send sends an event. An error means that the reader has gone, or takes nothing: every
// later call returns it too.
func (s *Stream) Send(e Event) error {
	var b bytes.Buffer
	if e.ID != "" {
		b.WriteString("id: " + e.ID + "\n")
	}
	if e.Name != "" {
		b.WriteString("event: " + e.Name + "\n")
	}
	for line := range strings.SplitSeq(string(e.Data), "\n") {
		b.WriteString("data: " + strings.TrimSuffix(line, "\r") + "\n")
	}
	b.WriteByte('\n')
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
	return s.write(b.Bytes())
}

// Close ends the stream's pings. The answer ends when its handler returns.
func (s *Stream) Close() {
	close(s.done)
	s.pending.Wait()
}

func (s *Stream) ping() {
	tick := time.NewTicker(streamPing)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		s.mu.Lock()
		if !s.sent {
			_ = s.write([]byte(": ping\n\n")) // the next event returns its error
		}
		s.sent = false
		s.mu.Unlock()
	}
}

// write sends bytes at once. The caller holds mu.
func (s *Stream) write(b []byte) error {
	if s.err != nil {
		return s.err
	}
	_ = s.ctrl.SetWriteDeadline(time.Now().Add(streamStall)) // a recorder in a test has none
	if _, s.err = s.w.Write(b); s.err == nil {
		s.err = s.ctrl.Flush()
	}
	return s.err
}
