package mcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// failure is the failure of a request.
type failure struct {
	text   string
	made   bool // the server may have executed the request
	passes bool // a retry may succeed
	down   bool // the server cannot be reached, or says that it cannot serve now
	answer bool // the server's own answer
	fresh  bool // not sent because the session was over: another session may work
	broken bool // and ended the session
	after  time.Duration
}

const (
	maxTries  = 3               // of a request that was not sent
	probeTime = 5 * time.Second // how long a server may take to answer a ping
)

// request sends a request to a server, on a new session if the current one turned out
// to be over.
func request[T any](ctx context.Context, m *Manager, l *link, do func(context.Context, *mcp.ClientSession) (T, error)) (T, *failure) {
	for try := 1; ; try++ {
		s, err := m.acquire(ctx, l)
		if err != nil {
			return *new(T), noSession(err)
		}
		out, f := once(ctx, s, do)
		switch { // before release: the next request must not get it
		case f != nil && f.fresh:
			m.drop(s, errors.New("the server has forgotten it"))
		case f != nil && f.broken:
			m.drop(s, errors.New("an answer on it was incomplete"))
		}
		m.release(s, f == nil || f.answer)
		if f != nil && f.fresh && try < maxTries {
			continue
		}
		if f != nil && f.made && s.process != nil && ctx.Err() != nil {
			m.probe(s)
		}
		return out, f
	}
}

// noSession returns the failure of a request for which there is no session.
func noSession(err error) *failure {
	var start *startError
	return &failure{text: err.Error(), passes: true, down: !errors.As(err, &start) || start.down}
}

// once sends a request on a session. It returns when ctx or the session ends, whatever
// the library does.
func once[T any](ctx context.Context, s *session, do func(context.Context, *mcp.ClientSession) (T, error)) (T, *failure) {
	inner, e := withExchange(ctx)
	defer e.cancel(nil)
	defer context.AfterFunc(s.ctx, func() { e.cancel(context.Cause(s.ctx)) })()
	var before uint64
	if s.process != nil {
		before = s.process.writes.Load()
	}
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do(inner, s.client)
		done <- outcome{value, err}
	}()
	var got outcome
	select {
	case got = <-done:
	case <-inner.Done():
		got.err = context.Cause(inner)
	}
	if got.err == nil {
		return got.value, nil
	}
	f := s.why(ctx, inner, e, got.err)
	f.broken = f.made && e.doomed()
	if s.process != nil {
		f.made = f.made && s.process.writes.Load() != before
		f.fresh = !f.made && !f.answer && ctx.Err() == nil
	}
	return got.value, f
}

// why interprets an error of the library.
func (s *session) why(ctx, inner context.Context, e *exchange, err error) *failure {
	sent, _, _, _ := e.seen()
	made := sent || s.process != nil // for a program, once checks further
	cause, said := context.Cause(inner), s.answer(err)
	var long tooLong
	switch {
	case ctx.Err() != nil:
		return &failure{text: context.Cause(ctx).Error(), made: made, passes: true, down: true}
	case errors.As(cause, &long) && s.process == nil:
		s.note(long.Error())
		return &failure{text: noAnswer, made: true}
	case errors.As(cause, &long):
		return &failure{text: long.Error(), made: true}
	case said != nil:
		return &failure{text: s.safe(said.Message), answer: true}
	case errors.Is(cause, errClosed):
		return &failure{text: cause.Error(), made: made, passes: true, down: true}
	case s.process == nil:
		return s.webFailure(e)
	case !s.broke():
		return &failure{text: "its answer is not MCP", made: true}
	}
	broken := s.process.cause()
	return &failure{text: broken.Error(), made: true, passes: !errors.As(broken, &long)}
}

// broke reports whether the session is over; it waits a moment, because a call may
// learn of it a little earlier.
func (s *session) broke() bool {
	if s.ctx == nil { // the handshake failed
		return true
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// noAnswer is the whole message about a server on HTTP without an answer of the
// protocol. A tenant chose its URL: callers must not be able to probe networks through
// this process.
const noAnswer = "it cannot be reached, or does not answer as an MCP server does; the operator's log says more"

// webFailure logs the details of a request over HTTP without an answer for the
// operator, and returns to the caller whether it was sent and may be repeated.
func (s *session) webFailure(e *exchange) *failure {
	f := s.webDetail(e)
	if !f.fresh { // it is retried
		s.note(f.text)
	}
	f.text = noAnswer
	return f
}

// webDetail returns the details of a request over HTTP without an answer.
func (s *session) webDetail(e *exchange) *failure {
	sent, code, after, err := e.seen()
	switch {
	case err != nil && !sent:
		return &failure{text: "it cannot be reached: " + s.reason(err), passes: true, down: !refused(err)}
	case err != nil:
		return &failure{text: "the connection broke: " + s.reason(err), made: true, passes: true, down: true}
	case !sent: // the session was over before
		return &failure{text: "the session is over", passes: true, fresh: true}
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		return &failure{text: status(code), passes: true, down: true, after: after}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return &failure{text: status(code) + "; look at the variables that its headers name"}
	case code == http.StatusNotFound && s.client != nil && s.client.ID() != "":
		return &failure{text: "it has forgotten the session", passes: true, fresh: true}
	case code >= 300 && code < 400:
		return &failure{text: status(code) + "; redirects are not followed, so give the URL that it leads to"}
	case code >= 400 && code < 500:
		return &failure{text: status(code)}
	case code >= 500:
		return &failure{text: status(code), made: true, passes: true, down: true}
	}
	return &failure{text: "its answer was incomplete, or is not MCP", made: true, passes: true}
}

// refused reports whether a server answers without being one that can be trusted. An address that
// is not allowed looks as if nobody answered: a tenant must not learn what a name resolves to.
func refused(err error) bool {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &record)
}

func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("it answered HTTP %d %s", code, http.StatusText(code)))
}

// reason returns the text of a network error without the URL, which may contain a
// secret.
func (s *session) reason(err error) string {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	return s.safe(err.Error())
}

// probe ends a program that let a call time out and does not answer a ping either; one
// that answers may continue. While others use it, they find out themselves.
func (m *Manager) probe(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || s.ending || s.users > 0 {
		return
	}
	s.users++
	m.running.Go(func() {
		ctx, cancel := context.WithTimeout(m.ctx, probeTime)
		defer cancel()
		_, f := once(ctx, s, func(ctx context.Context, client *mcp.ClientSession) (struct{}, error) {
			return struct{}{}, client.Ping(ctx, nil)
		})
		m.release(s, false)
		if f != nil && ctx.Err() != nil {
			m.drop(s, errBroken)
		}
	})
}

// answer returns the server's own error in reply to a request, or nil. The library uses
// the same form for errors of its own: those that no server sends, and an invalid
// request where a program wrote something unreadable.
func (s *session) answer(err error) *jsonrpc.Error {
	const clientClosing, serverClosing, rejected = -32003, -32004, -32005
	var said *jsonrpc.Error
	if !errors.As(err, &said) {
		return nil
	}
	switch said.Code {
	case clientClosing, serverClosing, rejected:
		return nil
	case jsonrpc.CodeInvalidRequest:
		if s.process != nil && s.broke() {
			return nil
		}
	}
	return said
}

func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
