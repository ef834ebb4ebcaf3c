package mcp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/skein-threads/skein/internal/retry"
)

// exchange records the HTTP requests of one call, for its error: the library reports
// them only as text.
type exchange struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	sent   bool // a server may have received it
	status int  // of the last answer; 0: none
	after  time.Duration
	failed error // without an answer
	whole  bool  // the answer is one JSON value: if it is incomplete, the library ends the session
}

type exchangeKey struct{}

// withExchange returns the context of a call, and the record of its requests. The
// context ends when the call cannot succeed any more.
func withExchange(ctx context.Context) (context.Context, *exchange) {
	ctx, cancel := context.WithCancelCause(ctx)
	e := &exchange{ctx: ctx, cancel: cancel}
	return context.WithValue(ctx, exchangeKey{}, e), e
}

// of returns the exchange of a request. Messages that the library sends after the end
// of a call, for its cancellation and the end of the session, carry the call's values
// too but are not part of it: they have an exchange of their own.
func of(r *http.Request) *exchange {
	e, _ := r.Context().Value(exchangeKey{}).(*exchange)
	if e == nil || e.ctx.Err() != nil || r.Method == http.MethodDelete {
		return &exchange{ctx: r.Context(), cancel: func(error) {}}
	}
	return e
}

func (e *exchange) note(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

func (e *exchange) seen() (sent bool, status int, after time.Duration, failed error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sent, e.status, e.after, e.failed
}

// doomed reports whether the session ends if this exchange fails.
func (e *exchange) doomed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.whole
}

// web is the HTTP transport to a server: it adds the headers, limits each answer and
// records the exchange. It follows no redirect, which would leak the headers.
type web struct {
	base    http.RoundTripper
	headers http.Header
	most    int
}

func (w *web) client() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip sends one request.
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	e := of(r)
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaders: func() { e.note(func() { e.sent = true }) }})
	r = r.Clone(ctx)
	for name, values := range w.headers {
		r.Header[name] = values
	}
	answer, err := w.base.RoundTrip(r)
	if err != nil {
		e.note(func() { e.failed = err })
		return nil, err
	}
	e.note(func() {
		if err = e.ctx.Err(); err != nil {
			return
		}
		e.status, e.failed = answer.StatusCode, nil
		e.whole = strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json")
		e.after = retry.After(answer.Header, time.Now())
	})
	if err != nil { // the caller does not know that the session ends if this is incomplete, so it is refused
		answer.Body.Close()
		return nil, err
	}
	answer.Body = &bounded{answer.Body, w.most, e, w.most}
	return answer, nil
}

// bounded is the body of an answer with a limit of most bytes.
type bounded struct {
	io.ReadCloser
	left     int
	exchange *exchange
	most     int
}

// tooLong reports that a server's answer exceeds the limit; a retry would, too.
type tooLong struct{ most int }

func (e tooLong) Error() string {
	return fmt.Sprintf("it answered with more than %d bytes", e.most)
}

func (b *bounded) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into[:min(len(into), b.left+1)])
	if n > b.left {
		err := tooLong{b.most}
		b.exchange.cancel(err)
		return 0, err
	}
	b.left -= n
	return n, err
}
