package edge

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/skein-threads/skein/events"
)

// response is the answer to a request. It notes whether anything was written, and becomes
// a stream of its edge when one begins.
type response struct {
	http.ResponseWriter
	ctx    context.Context // of the request
	edge   *Edge
	end    context.CancelCauseFunc                    // of the request's context
	began  bool                                       // the answer has begun
	stream bool                                       // it has the place of a stream
	place  *admission                                 // nil before it is admitted
	leave  func()                                     // leaves the place for decoding a large body; nil: it had none
	left   atomic.Bool                                // the place was left
	rolled time.Time                                  // when the reader was last given time
	sent   int                                        // bytes that were not weighed yet
	paced  func(ctx context.Context, bytes int) error // waits until so many may be sent; nil: for nothing
}

// rollEvery is how often a reader that takes what is written gets more time.
const rollEvery = time.Second

// Unwrap returns the writer below, for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	w.began = w.began || status >= http.StatusOK
	w.roll()
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	w.began = true
	if err := w.weigh(len(b)); err != nil {
		return 0, err
	}
	w.roll()
	return w.ResponseWriter.Write(b)
}

// weigh waits until more bytes may be sent to those who ask as this one does.
func (w *response) weigh(n int) error {
	if w.paced == nil {
		return nil
	}
	if w.sent += n; w.sent < sentBytes {
		return nil
	}
	n, w.sent = w.sent, 0
	return w.paced(w.ctx, n)
}

// roll lets the reader take its time for what is written next, but not longer.
func (w *response) roll() {
	now, stall := time.Now(), w.edge.opts.Stall
	every := min(rollEvery, stall/10)
	if now.Sub(w.rolled) < every {
		return
	}
	w.rolled = now
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(now.Add(stall + every)) // a recorder in a test has none
}

// Flush sends what was written.
func (w *response) Flush() {
	w.began = true
	_ = http.NewResponseController(w.ResponseWriter).Flush() // the reader may have gone
}

// Hijack takes over the connection. The request is a stream from then on.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := w.lasts(); err != nil {
		return nil, nil, err
	}
	w.began = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Times of streams, by default.
const (
	streamPing  = 15 * time.Second // between two comments of server-sent events
	streamStall = 30 * time.Second // a reader that takes nothing for so long is cut off
	socketPing  = 20 * time.Second // between two pings of a WebSocket
)

// errCredentialEnded ends the requests of a credential.
var errCredentialEnded = events.Errorf(events.Unauthorized, "the credential was revoked, or has expired")

// CredentialEnded returns why the context of a request has ended, if that is because its credential
// has, and nil otherwise.
func CredentialEnded(ctx context.Context) *events.Error {
	if cause := context.Cause(ctx); errors.Is(cause, errCredentialEnded) {
		return errCredentialEnded
	}
	return nil
}

// Closing returns why the context of a request has ended, if that is because the edge closes, and nil
// otherwise.
func Closing(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errClosing) {
		return cause
	}
	return nil
}

// BeginStream notes that an answer becomes a stream, before its header is written, and returns how
// often it is pinged. The error is a refusal, if too many are open.
func BeginStream(w http.ResponseWriter) (ping time.Duration, err error) {
	answer, ok := responseOf(w)
	if !ok {
		return streamPing, nil
	}
	return answer.edge.opts.Ping, answer.lasts()
}

// endWith ends the request's context when the credential ends, until stop is called.
func (w *response) endWith(p Principal) (stop func()) {
	end := func() { w.end(errCredentialEnded) }
	unwatch := func() bool { return true }
	if p.Valid != nil {
		unwatch = context.AfterFunc(p.Valid, end)
	}
	if p.Expires.IsZero() {
		return func() { unwatch() }
	}
	expiry := time.AfterFunc(time.Until(p.Expires), end)
	return func() {
		unwatch()
		expiry.Stop()
	}
}

// lasts notes that the answer is a stream. The error is a refusal, if too many are open.
func (w *response) lasts() error {
	if err := w.reserve(); err != nil {
		return err
	}
	w.dropBody()
	_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Time{}) // a recorder in a test has none
	return nil
}

// reserve takes the place of a stream. The error is a refusal, if too many are open.
func (w *response) reserve() error {
	if w.stream {
		return nil
	}
	if w.place != nil {
		if err := w.place.streams(); err != nil {
			return err
		}
	}
	w.stream = true
	w.endWithEdge()
	return nil
}

// endWithEdge ends the request's context when the edge closes, which waits for the handler.
func (w *response) endWithEdge() {
	e := w.edge
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		w.end(errClosing)
		return
	}
	counted, listed := e.lasting[w]
	if !listed {
		e.ended.Add(1)
	}
	if e.lasting[w] = w.stream; w.stream && !counted {
		e.open++
		e.opts.Metrics.OpenStreams(e.open)
	}
}

// awaits is [Caller.Awaits].
func (w *response) awaits(p Principal, stream bool) error {
	if !p.May(Read) || !p.Follows() {
		return events.Errorf(events.Forbidden, "this request follows a run, which the credential does not permit: use one with the role subscriber that may read")
	}
	if stream {
		return w.reserve()
	}
	w.endWithEdge()
	return nil
}

// leaveBody notes that the request's body was decoded.
func (w *response) leaveBody() {
	if w.leave != nil {
		w.left.Store(true)
		w.leave()
	}
}

// dropBody notes that the request's body was used.
func (w *response) dropBody() {
	w.leaveBody()
	if w.place != nil {
		w.place.drop()
	}
}

// done notes that the handler has returned.
func (w *response) done() {
	e := w.edge
	w.leaveBody()
	if w.place != nil {
		w.place.release()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if counted, listed := e.lasting[w]; listed {
		delete(e.lasting, w)
		e.ended.Done()
		if counted {
			e.open--
			e.opts.Metrics.OpenStreams(e.open)
		}
	}
}

// responseOf returns the response that a writer is, or writes to. There is none in a
// handler that no edge called.
func responseOf(w http.ResponseWriter) (*response, bool) {
	for {
		switch is := w.(type) {
		case *response:
			return is, true
		case interface{ Unwrap() http.ResponseWriter }:
			w = is.Unwrap()
		default:
			return nil, false
		}
	}
}
