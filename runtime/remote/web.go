package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/egress"
)

// Endpoint is a URL behind which a reactor or a tool answers. URL and Client are required, and Keys
// unless it is unsigned.
type Endpoint struct {
	URL      string
	Keys     []Key        // every request is signed with each
	Unsigned bool         // it has other means to know the sender
	Client   *http.Client // see NewClient
}

// NewClient returns what requests are sent with, by way of a transport, which it
// changes: it follows no redirect, and leaves answers as they are sent.
func NewClient(way *http.Transport) *http.Client {
	way.DisableCompression = true // buffers streams, and hides how large an answer is
	way.MaxResponseHeaderBytes = 64 << 10
	// A server that closes an idle connection while a request is on its way leaves it
	// unknown whether the request was received. Node closes after 5 s.
	way.IdleConnTimeout = 3 * time.Second
	return &http.Client{Transport: way, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// maxRefusal bounds what is read of an answer that refuses the request.
const maxRefusal = 64 << 10

// web calls an endpoint.
type web struct {
	Endpoint
	callee
}

func newWeb(e Endpoint, opts []Option) (web, error) {
	s, err := with(opts)
	if err != nil {
		return web{}, err
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return web{}, errors.New("the URL of an endpoint is not an http or https address")
	}
	if len(e.Keys) == 0 && !e.Unsigned || e.Client == nil {
		return web{}, errors.New("an endpoint needs a key to sign its requests with, and a client to send them")
	}
	return web{e, callee{u.Scheme + "://" + u.Host + u.EscapedPath(), s}}, nil
}

// webReactor is a reactor behind a URL.
type webReactor struct{ web }

// HTTPReactor returns the reactor that answers behind a URL. The error says what is
// wrong with the endpoint or an option.
func HTTPReactor(e Endpoint, opts ...Option) (runtime.Reactor, error) {
	w, err := newWeb(e, opts)
	if err != nil {
		return nil, err
	}
	return &webReactor{w}, nil
}

func (r *webReactor) React(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
	p := r.protocol(int64(r.maxBytes))
	body, err := r.written(&reactorRequest{*in, p})
	var shown *runtime.Shown
	if most := streamOf * p.MaxBytes; err == nil && int64(len(body)) > most {
		var items []events.Item
		body, items, err = r.fitted(in, p, most)
		shown = shownIn(items)
	}
	if err != nil {
		return nil, err
	}
	stream := &streamed{out: out}
	result, err := r.post(ctx, in.StepID, body, stream.chunk)
	if err != nil {
		return nil, stream.brokeOff(err)
	}
	reaction, err := r.reaction(result, shown)
	return reaction, stream.brokeOff(err)
}

// webTool is a tool behind a URL.
type webTool struct {
	web
	spec runtime.ToolSpec
}

// HTTPTool returns the tool that answers behind a URL. The error says what is wrong
// with the endpoint or an option.
func HTTPTool(e Endpoint, spec runtime.ToolSpec, opts ...Option) (runtime.Tool, error) {
	w, err := newWeb(e, opts)
	if err != nil {
		return nil, err
	}
	return &webTool{w, spec}, nil
}

func (t *webTool) Spec() runtime.ToolSpec { return t.spec }

func (t *webTool) Call(ctx context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
	body, err := t.written(requestOf(in, t.protocol(int64(t.maxBytes))))
	if err != nil {
		return runtime.ToolResult{}, err
	}
	result, err := t.post(ctx, callID(in.Key), body, nil)
	if err != nil {
		return runtime.ToolResult{}, err
	}
	return t.result(result)
}

// callID returns a name for an idempotency key that a header can have: a part of the key is the
// model's.
func callID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "call-" + hex.EncodeToString(sum[:16])
}

// post sends a request, passes chunks on, and returns the body of the result. However
// it returns, the connection of an answer that is not complete is closed. The id is that of the
// work, which repeated requests have in common.
func (w *web) post(ctx context.Context, id string, body []byte, chunk func(runtime.Chunk)) ([]byte, error) {
	waiting, end := context.WithCancelCause(ctx)
	defer end(nil)
	silence := time.AfterFunc(w.dead, func() { end(errSilent) })
	defer silence.Stop()
	response, sent, err := w.send(waiting, "application/json", http.Header{
		"Accept": {"application/json, application/x-ndjson, text/event-stream"}, IDHeader: {id},
	}, body)
	if err != nil {
		return nil, w.unanswered(ctx, context.Cause(waiting), err, sent)
	}
	defer response.Body.Close()
	silence.Reset(w.dead)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, w.refused(response)
	}
	a := &answer{from: &w.callee, most: int64(w.maxBytes), chunk: chunk}
	result, err := w.read(response, a, func() { silence.Reset(w.dead) })
	if cause := context.Cause(waiting); err != nil && cause != nil && !a.over {
		return nil, w.ended(cause)
	}
	return result, err
}

// send sends a signed request, a GET if there is no body. It reports whether a server may have received it.
func (w *web) send(ctx context.Context, kind string, headers http.Header, body []byte) (response *http.Response, sent bool, err error) {
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, w.URL, bytes.NewReader(body))
	if err != nil {
		return nil, false, w.wrong("cannot be requested: %w", err)
	}
	// No Idempotency-Key: with one, the transport itself would repeat a request that may
	// have been received.
	request.Header = headers
	if body != nil {
		request.Header.Set("Content-Type", kind)
	}
	request.Header.Set("User-Agent", "Skein")
	if len(w.Keys) > 0 {
		Sign(request.Header, time.Now(), body, w.Keys)
	}
	response, err = w.Client.Do(request)
	return response, wrote.Load(), err
}

// Notify sends a body to the endpoint, signed unless the endpoint is unsigned, with headers of its
// own, of which Webhook-Id is signed as Standard Webhooks has it, and returns when the endpoint has
// accepted it with a status of success. It waits as long as the option Timing
// says that a process may be silent. The error is a *runtime.RetryError if another attempt
// may succeed.
func (e Endpoint) Notify(ctx context.Context, kind string, headers http.Header, body []byte, opts ...Option) error {
	w, err := newWeb(e, opts)
	if err != nil {
		return err
	}
	return w.exchange(ctx, kind, headers, body, func(answer io.Reader) error {
		_, _ = io.Copy(io.Discard, io.LimitReader(answer, maxRefusal)) // so that the connection can be used again
		return nil
	})
}

// Exchange sends what Notify sends, or a GET if body is nil, and returns the body of the answer, of at
// most as many bytes as the option MaxBytes says.
func (e Endpoint) Exchange(ctx context.Context, kind string, headers http.Header, body []byte, opts ...Option) (answer []byte, err error) {
	w, err := newWeb(e, opts)
	if err != nil {
		return nil, err
	}
	err = w.exchange(ctx, kind, headers, body, func(from io.Reader) error {
		if answer, err = io.ReadAll(io.LimitReader(from, int64(w.maxBytes)+1)); err != nil {
			return w.brokeOff()
		}
		if len(answer) > w.maxBytes {
			return w.wrong("is too large: more than %d bytes", w.maxBytes)
		}
		return nil
	})
	return answer, err
}

// exchange sends a request, and has the body of a successful answer read.
func (w *web) exchange(ctx context.Context, kind string, headers http.Header, body []byte, read func(io.Reader) error) error {
	waiting, cancel := context.WithTimeoutCause(ctx, w.dead, errSilent)
	defer cancel()
	response, sent, err := w.send(waiting, kind, headers.Clone(), body)
	if err != nil {
		return w.unanswered(ctx, context.Cause(waiting), err, sent)
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return w.refused(response)
	}
	return read(response.Body)
}

// unanswered returns the error of a request without an answer.
func (w *web) unanswered(ctx context.Context, cause, err error, sent bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var denied *egress.DeniedError
	switch {
	case errors.As(err, &denied): // the definition's author must not learn which address it was
		w.logger.Warn().Str("endpoint", w.address).Str("error", denied.Error()).Msg("an endpoint is not allowed")
		return errors.New(w.address + ": this server does not connect to that address (--egress-allow)")
	case sent && errors.Is(cause, errSilent):
		return w.ended(cause)
	case sent:
		return w.retry("the connection broke before an answer; the call may have been made")
	}
	w.logger.Warn().Str("endpoint", w.address).Err(withoutURL(err)).Msg("an endpoint cannot be reached")
	return w.notMade("it cannot be reached; the call was not made")
}

// withoutURL returns an error of the client without the URL, whose query may hold more
// than a log should.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// refused returns the error of an answer with a status other than success.
func (w *web) refused(response *http.Response) error {
	status := response.StatusCode
	said := w.reason(response)
	switch {
	case status >= 300 && status < 400:
		return w.wrong("redirects (status %d), which is not followed", status)
	case status == http.StatusTooManyRequests, status == http.StatusTooEarly:
		return &runtime.RetryError{NotMade: true, After: retry.After(response.Header, time.Now()), Err: w.wrong("has status %d%s; the call was not made", status, said)}
	case status == http.StatusRequestTimeout, status >= 500:
		return &runtime.RetryError{After: retry.After(response.Header, time.Now()), Err: w.wrong("has status %d%s; the call may have been made", status, said)}
	}
	return w.wrong("has status %d%s", status, said)
}

// reason returns what the body of a refusal says: the text of an error message, or of a
// JSON object's error or message, or the beginning of the body itself.
func (w *web) reason(response *http.Response) string {
	raw, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // what there is explains enough
	text := string(raw)
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	var body struct {
		Message string `json:"message"`
		Error   any    `json:"error"`
	}
	if json.Unmarshal(raw, &body) == nil {
		text = body.Message
		switch e := body.Error.(type) {
		case string:
			text = e
		case map[string]any:
			text, _ = e["message"].(string)
		}
	} else if kind == "text/html" {
		return ""
	}
	if text = clip(text); text == "" {
		return ""
	}
	return ": " + text
}
