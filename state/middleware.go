package state

import (
	"context"
	"errors"
	"net/http"

	"github.com/skein-threads/skein/events"
)

// Middleware returns a function that serves requests to a handler with the state of their
// threads: see Thread, Session, Request, WaitUntil, KV and Logger. A request that comes through
// it twice, of the same App, has one state.
func Middleware(a *App) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s, ok := r.Context().Value(scopeKey{}).(*scope); ok && s.app == a {
				next.ServeHTTP(w, r)
				return
			}
			a.serve(next, w, r)
		})
	}
}

// serve serves one request.
func (a *App) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if !a.tasks.beginRequest() {
		writeError(w, http.StatusServiceUnavailable, events.Errorf(events.Unavailable, "the application shuts down; try again"))
		return
	}
	var s *scope
	defer func() {
		if s == nil {
			a.tasks.end()
		} else {
			close(s.answered)
			s.release(r.Context())
		}
	}()
	id, told, err := a.identify(r)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	user := ""
	if a.opts.User != nil {
		user = a.opts.User(r)
	}
	s = newScope(a, id, user)
	writer := newResponseWriter(w, r, s, told)
	returned := false
	defer func() {
		if !returned { // a panic: the handler's incomplete writes are not saved
			s.abandon(r.Context())
		}
	}()
	next.ServeHTTP(writer, r.WithContext(s.with(r.Context())))
	returned = true
	writer.finish()
}

// abandon drops the writes of a handler that panicked.
func (s *scope) abandon(ctx context.Context) {
	if keys := s.session.Thread.drop(); len(keys) > 0 {
		s.logger.WarnContext(ctx, "the handler panicked, and its writes to the state are not saved", "keys", keys)
	}
}

// refuse answers a request without a known thread.
func (a *App) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *events.Error
	if errors.As(err, &refusal) {
		writeError(w, refusal.Code.Status(), refusal)
		return
	}
	a.opts.Logger.ErrorContext(r.Context(), "the thread of a request is not known", "error", err)
	writeError(w, http.StatusInternalServerError, events.Errorf(events.Unavailable, "the thread of the request is not known"))
}

// writeError answers with an error: the status, and {"error": {"code", "message"}}.
func writeError(w http.ResponseWriter, status int, e *events.Error) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(events.EncodeError(&events.Error{Code: e.Code, Message: e.Message}))
}
