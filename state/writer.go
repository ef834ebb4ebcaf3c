package state

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"

	"github.com/skein-threads/skein/events"
)

// responseWriter saves the state before the header of a response is written. If that fails, it
// writes an error instead of the handler's response.
type responseWriter struct {
	inner  http.ResponseWriter
	r      *http.Request
	s      *scope
	told   bool
	before http.Header // the response's header before the handler ran

	mu      sync.Mutex // guards the rest
	started bool
	failed  error
}

func newResponseWriter(w http.ResponseWriter, r *http.Request, s *scope, told bool) *responseWriter {
	return &responseWriter{inner: w, r: r, s: s, told: told, before: w.Header().Clone()}
}

// start saves the state and completes the header, once. If that fails, start writes an error
// response, and every later call returns the error.
func (w *responseWriter) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return w.failed
	}
	w.started = true
	ctx := context.WithoutCancel(w.r.Context()) // the client bounds it
	if w.failed = w.s.session.Thread.saveLast(ctx); w.failed != nil {
		w.refuse(ctx, w.failed)
		return w.failed
	}
	if w.told {
		w.s.app.tell(w.inner.Header(), w.r, w.s.session.Thread.ID)
	}
	return nil
}

// refuse writes an error response that says that the state was not saved, and drops the writes.
func (w *responseWriter) refuse(ctx context.Context, err error) {
	keys := w.s.session.Thread.drop()
	w.s.fail(ctx, "the state of the thread was not saved", err, "keys", keys)
	h := w.inner.Header()
	clear(h)
	maps.Copy(h, w.before)
	e := events.Errorf(events.Unavailable, "the state of the thread may not have been saved; try again")
	status := http.StatusServiceUnavailable
	switch {
	case events.IsNotFound(err):
		status, e = http.StatusGone, events.Errorf(events.NotFound, "the thread was deleted; send no %s for a new one", ThreadHeader)
		if w.told {
			w.s.app.setCookie(h, w.r, "", -1)
		}
	default:
		if refusal := (*events.Error)(nil); errors.As(err, &refusal) && !unsure(err) {
			status, e = refusal.Code.Status(), events.Errorf(refusal.Code, "the state of the thread was not saved: %s", refusal.Message)
		}
		if w.told { // with the thread's id the client can try again
			w.s.app.tell(h, w.r, w.s.session.Thread.ID)
		}
	}
	writeError(w.inner, status, e)
}

// finish saves unsaved writes when the handler has returned.
func (w *responseWriter) finish() {
	w.mu.Lock()
	started := w.started
	w.mu.Unlock()
	if !started {
		_ = w.start() // start writes the error response
		return
	}
	w.s.save(w.r.Context())
}

func (w *responseWriter) Header() http.Header { return w.inner.Header() }

func (w *responseWriter) WriteHeader(status int) {
	informs := status >= 100 && status < 200 && status != http.StatusSwitchingProtocols
	if informs || w.start() == nil {
		w.inner.WriteHeader(status)
	}
}

func (w *responseWriter) Write(p []byte) (int, error) {
	if err := w.start(); err != nil {
		return 0, err
	}
	return w.inner.Write(p)
}

// ReadFrom implements io.ReaderFrom, so that files are sent by the kernel.
func (w *responseWriter) ReadFrom(r io.Reader) (int64, error) {
	if err := w.start(); err != nil {
		return 0, err
	}
	return io.Copy(w.inner, r)
}

// Flush implements http.Flusher.
func (w *responseWriter) Flush() { _ = w.FlushError() }

// FlushError is what http.ResponseController calls.
func (w *responseWriter) FlushError() error {
	if err := w.start(); err != nil {
		return err
	}
	return http.NewResponseController(w.inner).Flush()
}

// Hijack implements http.Hijacker. The response is then the handler's own, without the id of
// the thread unless Header is written first.
func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := w.start(); err != nil {
		return nil, nil, err
	}
	return http.NewResponseController(w.inner).Hijack()
}

// Unwrap is for http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.inner }
