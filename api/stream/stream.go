package stream

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// HeaderLast is the header with which a reader resumes a stream: the last [Frame.ID] that it has.
const HeaderLast = "Last-Event-ID"

// Frame is a server-sent event. Empty fields but Data are left out.
type Frame struct {
	ID, Name string
	Data     []byte // a text; its lines become lines of data

	encoded []byte
}

// Encoded returns the frame with its bytes, for several streams to send.
func (f Frame) Encoded() Frame {
	f.encoded = f.Bytes()
	return f
}

// Bytes returns the frame as a stream has it.
func (f Frame) Bytes() []byte {
	if f.encoded != nil {
		return f.encoded
	}
	b := make([]byte, 0, len(f.ID)+len(f.Name)+len(f.Data)+32)
	if f.ID != "" {
		b = append(append(append(b, "id: "...), f.ID...), '\n')
	}
	if f.Name != "" {
		b = append(append(append(b, "event: "...), f.Name...), '\n')
	}
	for line := range bytes.SplitSeq(f.Data, []byte("\n")) {
		b = append(append(append(b, "data: "...), bytes.TrimSuffix(line, []byte("\r"))...), '\n')
	}
	return append(b, '\n')
}

// Protocol is how the streams of a protocol end. A field that is nil sends nothing.
type Protocol struct {
	Done    *Frame                    // the source has returned nil
	Failed  func(error) Frame         // the source has returned an error, and its reader is there
	Revoked func(*events.Error) Frame // the credential has ended
	Closing func(error) Frame         // the edge closes, and the stream goes on elsewhere
}

// Source writes the frames of a stream, in order, until the stream is complete: then it returns nil.
// It returns an error if it cannot continue, if ctx ends, or if out returns one.
type Source func(ctx context.Context, out *Writer) error

// Serve answers a request with the stream of a source. An error that source returns before the stream
// has begun is the answer, so Serve returns it for the handler to return. The answer to HEAD is complete
// when it has begun.
func Serve(w http.ResponseWriter, r *http.Request, p Protocol, source Source) error {
	ctx, out := r.Context(), &Writer{w: w}
	defer out.close()
	if r.Method == http.MethodHead {
		ctx, out.complete = context.WithCancel(ctx)
		defer out.complete()
	}
	err := source(ctx, out)
	var last *Frame
	switch {
	case out.complete != nil && out.began:
		return nil
	case ctx.Err() != nil:
		if revoked := edge.CredentialEnded(ctx); revoked != nil && p.Revoked != nil {
			f := p.Revoked(revoked)
			last = &f
		} else if closing := edge.Closing(ctx); closing != nil && p.Closing != nil {
			f := p.Closing(closing)
			last = &f
		}
	case err == nil:
		last = p.Done
	case !out.began:
		return err
	case p.Failed != nil:
		f := p.Failed(err)
		last = &f
	}
	if last == nil {
		return err
	}
	if unsent := out.Send(*last); err == nil {
		err = unsent
	}
	return err
}

// Writer writes the frames of a stream. It is safe for concurrent use.
type Writer struct {
	w        http.ResponseWriter
	complete func() // is called when the answer has begun, if that is all of it

	mu     sync.Mutex // guards what follows
	began  bool
	ping   *time.Timer
	every  time.Duration // between pings
	closed bool
	err    error // every later Send returns it
}

// Begin begins the answer, with the headers that it has already. Send calls it; a source that has
// nothing to send yet does, so that its reader knows that it follows.
func (s *Writer) Begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin()
}

// begin begins the answer. The caller holds mu.
func (s *Writer) begin() error {
	if s.began || s.err != nil {
		return s.err
	}
	if s.every, s.err = edge.BeginStream(s.w); s.err != nil {
		return s.err
	}
	s.began = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	s.ping = time.AfterFunc(s.every, s.sendPing)
	_ = s.flush() // sends the headers
	if s.complete != nil {
		s.complete()
	}
	return s.err
}

// Write writes a frame, which is sent at the latest by the next Send or Flush, or when the source
// returns. An error means that the reader has gone, or takes nothing: every later call returns it too.
func (s *Writer) Write(f Frame) error {
	b := f.Bytes()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return err
	}
	return s.write(b)
}

// Flush sends what was written.
func (s *Writer) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush()
}

// Send sends a frame at once.
func (s *Writer) Send(f Frame) error {
	if err := s.Write(f); err != nil {
		return err
	}
	return s.Flush()
}

// close ends the pings. The answer ends when its handler returns.
func (s *Writer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.ping != nil {
		s.ping.Stop()
	}
}

// sendPing sends a comment, whatever else was sent: its reader counts on one.
func (s *Writer) sendPing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return
	}
	if s.write([]byte(": ping\n\n")) == nil { // the next Send returns its error
		_ = s.flush()
	}
	s.ping.Reset(s.every)
}

// write writes bytes. The caller holds mu.
func (s *Writer) write(b []byte) error {
	if s.err == nil {
		_, s.err = s.w.Write(b) // the edge limits how long it takes
	}
	return s.err
}

// flush sends what was written. The caller holds mu.
func (s *Writer) flush() error {
	if s.err == nil {
		s.err = http.NewResponseController(s.w).Flush()
	}
	return s.err
}
