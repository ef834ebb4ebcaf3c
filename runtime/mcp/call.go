package mcp

import (
	"context"
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

// failure says how a request came to nothing.
type failure struct {
	text   string
	made   bool // the server may have done what was asked
	passes bool // it may go another time
	answer bool // the server has said so itself
	fresh  bool // it was not made because the session was over: another may do
	broken bool // and took the session with it
	after  time.Duration
}

const (
	maxTries  = 3               // of a request that was not made
	probeTime = 5 * time.Second // that a server gets to show that it lives
)

// request makes a request of a server, on a new session if the one at hand
// turned out to be over.
func request[T any](ctx context.Context, m *Manager, l *link, do func(context.Context, *mcp.ClientSession) (T, error)) (T, *failure) {
	for try := 1; ; try++ {
		s, err := m.acquire(ctx, l)
		if err != nil {
			return *new(T), &failure{text: err.Error(), passes: true}
		}
		out, f := once(ctx, s, do)
		switch { // before it is given back: the next request must not find it
		case f != nil && f.fresh:
			m.drop(s, errors.New("the server does not know it any more"))
		case f != nil && f.broken:
			m.drop(s, errors.New("an answer on it broke off"))
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

// once makes a request on a session. It returns when ctx or the session ends,
// whatever the library does.
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

// why finds out what an error of the library means.
func (s *session) why(ctx, inner context.Context, e *exchange, err error) *failure {
	sent, _, _, _ := e.seen()
	made := sent || s.process != nil // for a program, once looks closer
	cause, said := context.Cause(inner), s.answer(err)
	var long tooLong
	switch {
	case ctx.Err() != nil:
		return &failure{text: context.Cause(ctx).Error(), made: made, passes: true}
	case errors.As(cause, &long) && s.process == nil:
		s.note(long.Error())
		return &failure{text: noAnswer, made: true}
	case errors.As(cause, &long):
		return &failure{text: long.Error(), made: true}
	case said != nil:
		return &failure{text: s.safe(said.Message), answer: true}
	case errors.Is(cause, errClosed):
		return &failure{text: cause.Error(), made: made, passes: true}
	case s.process == nil:
		return s.webFailure(e)
	case !s.broke():
		return &failure{text: "its answer is not MCP", made: true}
	}
	broken := s.process.cause()
	return &failure{text: broken.Error(), made: true, passes: !errors.As(broken, &long)}
}

// broke reports whether the session is over; it waits a moment, since a call
// hears of it a little earlier.
func (s *session) broke() bool {
	if s.ctx == nil { // it was not even greeted
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

// noAnswer is all that is said of a server on HTTP that gives no answer of the
// protocol. Its URL is a tenant's: what it is, and what it says, must not be found
// out with the help of this process.
const noAnswer = "it cannot be reached, or does not answer as an MCP server does; the operator's log says more"

// webFailure tells the operator what is known of a request over HTTP that got no
// answer, and the caller whether it was made and may be made again.
func (s *session) webFailure(e *exchange) *failure {
	f := s.webDetail(e)
	if !f.fresh { // it is made again
		s.note(f.text)
	}
	f.text = noAnswer
	return f
}

// webDetail says what is known of a request over HTTP that got no answer.
func (s *session) webDetail(e *exchange) *failure {
	sent, code, after, err := e.seen()
	switch {
	case err != nil && !sent:
		return &failure{text: "it cannot be reached: " + s.reason(err), passes: true}
	case err != nil:
		return &failure{text: "the connection broke: " + s.reason(err), made: true, passes: true}
	case !sent: // the session was over before
		return &failure{text: "the session is over", passes: true, fresh: true}
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		return &failure{text: status(code), passes: true, after: after}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return &failure{text: status(code) + "; look at the variables that its headers name"}
	case code == http.StatusNotFound && s.client != nil && s.client.ID() != "":
		return &failure{text: "it has forgotten the session", passes: true, fresh: true}
	case code >= 300 && code < 400:
		return &failure{text: status(code) + "; redirects are not followed, so give the URL that it leads to"}
	case code >= 400 && code < 500:
		return &failure{text: status(code)}
	case code >= 500:
		return &failure{text: status(code), made: true, passes: true}
	}
	return &failure{text: "it broke off its answer, or the answer is not MCP", made: true, passes: true}
}

func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("it said HTTP %d %s", code, http.StatusText(code)))
}

// reason gives the words of an error of the network, without the URL, which may
// hold a secret.
func (s *session) reason(err error) string {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	return s.safe(err.Error())
}

// probe ends a program that has let a call run out of time and does not answer
// at all; one that answers may go on with what it does. While others use it
// they will find out themselves.
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

// answer gives what the server itself has said against a request, or nil. The
// library words errors of its own in the same form: those that no server sends,
// and an invalid request where a program wrote none that it can read.
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
