package mcp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"time"
)

// exchange is what is known of the HTTP requests of one call, for its error: the
// library tells it in words only.
type exchange struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	sent   bool // a server may have seen it
	status int  // of the last answer; 0: none
	after  time.Duration
	failed error // without an answer
	whole  bool  // the answer comes as one JSON value: if that breaks off, the library ends the session
}

type exchangeKey struct{}

// withExchange gives the context of a call, and what will be known of it. The
// context ends when the call cannot come to anything.
func withExchange(ctx context.Context) (context.Context, *exchange) {
	ctx, cancel := context.WithCancelCause(ctx)
	e := &exchange{ctx: ctx, cancel: cancel}
	return context.WithValue(ctx, exchangeKey{}, e), e
}

// of gives the exchange that a request belongs to. What the library sends when a
// call has ended, that it was cancelled and that the session is over, bears the
// call's values too but tells nothing of it: it gets an exchange of its own.
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

// doomed reports whether the session ends if this exchange came to nothing.
func (e *exchange) doomed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.whole
}

// web is the way to a server on HTTP: it adds the headers, bounds each answer
// and takes note. It follows no redirect, which would carry the headers away.
type web struct {
	base    http.RoundTripper
	headers http.Header
	most    int
}

func (w *web) client() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip makes one request.
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
		e.status, e.failed, e.after = answer.StatusCode, nil, 0
		e.whole = strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json")
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
			e.after = min(time.Duration(seconds)*time.Second, time.Hour)
		}
	})
	if err != nil { // nobody was told that the session is doomed if this breaks off, so it may not
		answer.Body.Close()
		return nil, err
	}
	answer.Body = &bounded{answer.Body, w.most, e, w.most}
	return answer, nil
}

// bounded is the body of an answer that may not be longer than most bytes.
type bounded struct {
	io.ReadCloser
	left     int
	exchange *exchange
	most     int
}

// tooLong says that a server answered with too much; it will the next time.
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
