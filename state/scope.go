package state

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
)

// SessionScope is one request of a thread.
type SessionScope struct {
	ID     string  // sess_ and 32 hexadecimal digits
	State  *Memory // values that last until the session has completed; at most 1 MiB of JSON
	Thread *ThreadScope
	App    AppState // of Options.Setup

	mu        sync.Mutex // guards the rest
	listeners []func(context.Context, string, *SessionScope) error
	over      bool
}

// scope is the value in a context: a session, from the beginning of its request to the end of its
// background work.
type scope struct {
	app     *App
	session *SessionScope
	request *Memory
	logger  *slog.Logger

	answered chan struct{} // closed when the handler has returned and the response has left
	closed   chan struct{} // closed when nothing of the session is in progress

	mu   sync.Mutex // guards open
	open int        // the handler and the background work that are in progress
}

type scopeKey struct{}

// newScope returns the scope of a new session. The handler holds it open, and is already counted
// in the tasks.
func newScope(a *App, thread, user string) *scope {
	id := newSessionID()
	s := &scope{app: a, request: newMemory(id, 0), open: 1, answered: make(chan struct{}), closed: make(chan struct{})}
	s.session = &SessionScope{ID: id, State: newMemory(id, events.MaxStateBytes), Thread: newThread(a, thread, user, id), App: a.state}
	s.session.Thread.last = s.isLast
	s.logger = a.opts.Logger.With("sessionId", s.session.ID, "threadId", thread)
	return s
}

// with returns a context that carries the scope.
func (s *scope) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// scopeOf returns the scope of a request's context. It panics if there is none.
func scopeOf(ctx context.Context) *scope {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok {
		panic("state: this context belongs to no request; serve the handler through state.Middleware, and pass the context of its request on")
	}
	return s
}

// Thread returns the thread of a request. Like all functions of a request's context, it panics
// if the context does not come from Middleware.
func Thread(ctx context.Context) *ThreadScope { return scopeOf(ctx).session.Thread }

// Session returns the session of a request.
func Session(ctx context.Context) *SessionScope { return scopeOf(ctx).session }

// Request returns the values of a request: any Go values, which are dropped when the request and
// its background work have ended.
func Request(ctx context.Context) *Memory { return scopeOf(ctx).request }

// Logger returns a logger whose lines name the session and the thread.
func Logger(ctx context.Context) *slog.Logger { return scopeOf(ctx).logger }

// hold keeps the session open for more work. It reports false if the session has ended.
func (s *scope) hold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == 0 {
		return false
	}
	s.open++
	s.app.tasks.begin()
	return true
}

// over reports whether the session has ended.
func (s *scope) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open == 0
}

// release ends what hold began. The last one completes the session.
func (s *scope) release(ctx context.Context) {
	defer s.app.tasks.end()
	s.mu.Lock()
	s.open--
	last := s.open == 0
	s.mu.Unlock()
	if last {
		s.complete(ctx)
	}
}

// isLast reports whether the work that calls it is the last of the session.
func (s *scope) isLast() bool {
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	return open <= 1 && !s.session.hasListeners()
}

// complete ends a session after its handler and background work. The session's listeners do not
// delay the response.
func (s *scope) complete(ctx context.Context) {
	listeners := s.session.listening()
	if len(listeners) == 0 {
		s.close(ctx)
		return
	}
	s.app.tasks.begin()
	go func() {
		defer s.app.tasks.end()
		ctx, cancel := s.app.detach(ctx)
		defer cancel()
		for _, f := range listeners {
			err := protect(ctx, func(ctx context.Context) error { return f(s.with(ctx), "completed", s.session) })
			if err != nil {
				s.fail(ctx, "a listener to the end of the session failed", err)
			}
		}
		s.session.dropListeners()
		s.close(ctx)
	}()
}

// close saves unsaved writes, and ends the use of the session's state.
func (s *scope) close(ctx context.Context) {
	s.save(ctx)
	renew, completed := s.session.Thread.end()
	if renew || !completed {
		s.afterwards(ctx, renew, completed)
	}
	s.session.State.end()
	s.request.end()
	close(s.closed)
}

// afterwards renews the life of the state after a request that only read it. It also sends
// session.complete if the last save did not carry it. The response does not wait for it.
func (s *scope) afterwards(ctx context.Context, renew, completed bool) {
	s.app.tasks.begin()
	go func() {
		defer s.app.tasks.end()
		ctx := context.WithoutCancel(ctx)
		if renew {
			if err := s.session.Thread.Touch(ctx); err != nil {
				s.logger.WarnContext(ctx, "the end of the thread's state was not moved", "error", err)
			}
		}
		if completed {
			return
		}
		_, err := s.app.opts.Client.Send(ctx, s.session.Thread.ID, events.CompleteSession{SessionID: s.session.ID})
		if err != nil && !events.IsNotFound(err) {
			s.logger.WarnContext(ctx, "the end of the session was not recorded", "error", err)
		}
	}()
}

// save saves the thread's state when no caller is left to receive the error. If that fails, the
// writes are dropped, so that the failure is reported once.
func (s *scope) save(ctx context.Context) {
	ctx = context.WithoutCancel(ctx) // the client bounds the time
	if err := s.session.Thread.saveLast(ctx); err != nil {
		s.fail(ctx, "the state of the thread was not saved", err, "keys", s.session.Thread.drop())
	}
}

// maxRecord bounds the text of a record on the thread.
const maxRecord = 65_536

// fail logs an error that no response shows in full, and records it on the thread.
func (s *scope) fail(ctx context.Context, what string, err error, fields ...any) {
	fields = append(fields, "error", err)
	if p := (*PanicError)(nil); errors.As(err, &p) {
		fields = append(fields, "stack", string(p.Stack))
	}
	s.logger.ErrorContext(ctx, what, fields...)
	var e *events.Error
	if errors.As(err, &e) && (e.Retry() || events.IsUnreadable(e)) {
		return // recording the error would fail, too
	}
	text := what + ": " + err.Error()
	line := events.RecordTrace{Kind: events.TraceLog, SessionID: s.session.ID, Level: events.LogError, Name: "state", Text: excerpt.Head(text, maxRecord), Data: sessionData(s.session.ID)}
	_, failed := s.app.opts.Client.Send(context.WithoutCancel(ctx), s.session.Thread.ID, line)
	if failed != nil && !events.IsNotFound(failed) { // a thread without state has no log
		s.logger.ErrorContext(ctx, "the error above was not recorded on the thread", "error", failed)
	}
}
