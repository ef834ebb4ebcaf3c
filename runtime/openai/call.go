package openai

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runtime"
)

// Reasons for which this process ends a call.
var (
	errIdle     = errors.New("silence")
	errTimeout  = errors.New("timeout")
	errTooLarge = errors.New("too large")
)

// call is one request, with its limits.
type call struct {
	config Config
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer
	stop   context.CancelFunc
}

func (r *Reactor) call(parent context.Context) *call {
	c := &call{config: r.config, parent: parent}
	timed, stop := context.WithTimeoutCause(parent, r.config.Timeout, errTimeout)
	c.stop = stop
	c.ctx, c.cancel = context.WithCancelCause(timed)
	c.idle = time.AfterFunc(r.config.Idle, func() { c.cancel(errIdle) })
	return c
}

func (c *call) end() {
	c.idle.Stop()
	c.cancel(nil)
	c.stop()
}

// guard is middleware between the client and the endpoint: an answer that is not an
// event stream ends here, and a stream is read with limits.
func (c *call) guard(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer func() { _ = res.Body.Close() }()
		return nil, c.status(res)
	}
	if kind := res.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "text/event-stream" {
			_ = res.Body.Close()
			return nil, &failure{text: fmt.Sprintf("the model's endpoint answered with %s, not with an event stream; is it a Responses endpoint?", kind)}
		}
	}
	res.Body = &boundedBody{ReadCloser: res.Body, call: c, left: c.config.MaxBytes}
	return res, nil
}

// boundedBody limits a body, and notes each read.
type boundedBody struct {
	io.ReadCloser
	call *call
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.call.ctx.Err() == nil {
		b.call.idle.Reset(b.call.config.Idle)
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// failure is an error that the endpoint reported. Its text is unchanged.
type failure struct {
	text  string
	retry bool
	after time.Duration
	long  bool // the conversation is too long for the model
	broke bool // an answer had begun, and what was streamed of it is kept
	code  events.FailureCode
}

// tooLong is the code of an endpoint for a conversation that is too long.
const tooLong = "context_length_exceeded"

// tooLongError reports that a conversation is too long for its model.
type tooLongError struct{ error }

func (f *failure) Error() string { return f.text }

// excerptBytes is how much of an answer with another status is read.
const excerptBytes = 8 << 10

// status reads an answer whose status is not 200.
func (c *call) status(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, excerptBytes)) // what was read is enough
	text := "the model's endpoint answered " + strconv.Itoa(res.StatusCode)
	if name := http.StatusText(res.StatusCode); name != "" {
		text += " " + name
	}
	if said := problemText(body); said != "" {
		text += ": " + said
	}
	code, _ := readProblem(body)
	f := &failure{
		text:  text,
		code:  cmp.Or(failureCode(code), statusCode(res.StatusCode)),
		retry: res.StatusCode == http.StatusRequestTimeout || res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500,
		after: retry.After(res.Header, time.Now()),
		long:  res.StatusCode == http.StatusRequestEntityTooLarge || bytes.Contains(body, []byte(`"`+tooLong+`"`)),
	}
	if f.code == events.FailedQuota { // no pause brings it back
		f.retry = false
	}
	return f
}

// statusCode returns why an endpoint refuses with a status, empty if that does not say.
func statusCode(status int) events.FailureCode {
	switch status {
	case http.StatusTooManyRequests:
		return events.FailedRateLimit
	case http.StatusPaymentRequired:
		return events.FailedQuota
	case http.StatusUnauthorized, http.StatusForbidden:
		return events.FailedKey
	}
	return ""
}

// told returns the error for an endpoint's failure.
func (c *call) told(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{text: err.Error()}
	}
	out := errors.New(c.clean(f.text))
	if f.long {
		return &tooLongError{out}
	}
	if f.code != "" {
		out = &runtime.FailureError{Code: f.code, Err: out}
	}
	if f.retry {
		out = &runtime.RetryError{After: f.after, Err: out}
	}
	if f.broke {
		out = &runtime.BrokenOffError{Err: out}
	}
	return out
}

// broken returns the error for a stream without its end.
func (c *call) broken(err error) error {
	if c.parent.Err() != nil {
		return context.Cause(c.parent)
	}
	var (
		f        *failure
		said     *ssestream.StreamError
		syntax   interface{ Timeout() bool }
		location *url.Error
		text     string
	)
	switch cause := context.Cause(c.ctx); {
	case errors.As(err, &f):
		return c.told(f)
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("the model's answer has more than %d bytes; the rest was not read", c.config.MaxBytes)
	case errors.Is(cause, errIdle): // it may still be at work, and is paid: nothing says that another call is faster
		return &runtime.BrokenOffError{Err: fmt.Errorf("nothing came from the model's endpoint for %s (--model-idle)", c.config.Idle)}
	case errors.Is(cause, errTimeout):
		return &runtime.BrokenOffError{Err: fmt.Errorf("the model did not answer within %s (--model-timeout)", c.config.Timeout)}
	case errors.As(err, &said):
		return c.told(eventFailure(bytes.TrimSpace(said.Event.Data)))
	case err == nil:
		text = "the model's answer broke off: its stream ended without response.completed"
	case errors.As(err, &location): // its own text contains the URL
		c.log(location.Err)
		text = "no connection to the model's endpoint; the operator's log says why"
	case errors.Is(err, io.ErrUnexpectedEOF):
		text = "the model's answer broke off: unexpected EOF"
	case errors.As(err, &syntax): // of the connection: its text contains addresses
		c.log(err)
		text = "the model's answer broke off; the operator's log says why"
	default: // an event that is no JSON
		return c.told(unreadable(err.Error()))
	}
	return &runtime.BrokenOffError{Err: &runtime.RetryError{Err: errors.New(text)}}
}

// log reports a connection's failure to the operator: it names addresses.
func (c *call) log(err error) {
	c.config.Logger.Warn().Str("detail", c.clean(err.Error())).Msg("cannot use a model's endpoint")
}
