package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

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
	config   Config
	protocol Protocol
	parent   context.Context
	ctx      context.Context
	cancel   context.CancelCauseFunc
	idle     *time.Timer
	stop     context.CancelFunc
}

func (r *Reactor) call(parent context.Context) *call {
	c := &call{config: r.config, protocol: r.protocol, parent: parent}
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

// ask sends a request, and has decode read the answer into out.
func (c *call) ask(request []byte, out *Output, decode Decoder) error {
	body, err := c.open(request)
	if err != nil {
		return c.broken(err)
	}
	defer func() { _ = body.Close() }() // the rest of the stream is not needed
	stream := newEventReader(body, c.config.MaxBytes)
	for stream.next() {
		last, err := decode(stream.event)
		if err != nil {
			return c.failed(err)
		}
		if last {
			break
		}
	}
	if !out.ended {
		return c.broken(stream.err())
	}
	return nil
}

// open sends the request, and returns the stream of events that answers it.
func (c *call) open(request []byte) (io.ReadCloser, error) {
	body, kind, err := c.send(c.protocol.Path, eventStream, request)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != eventStream {
			_ = body.Close()
			return nil, &Failure{Text: fmt.Sprintf("the model's endpoint answered with %s, not with an event stream; is it a %s endpoint?", kind, c.protocol.Name), BrokeOff: true}
		}
	}
	return &boundedBody{ReadCloser: body, call: c, left: c.config.MaxBytes}, nil
}

// send sends a request, and returns the answer and its type.
func (c *call) send(path, accept string, request []byte) (body io.ReadCloser, kind string, err error) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, strings.TrimSuffix(c.config.BaseURL, "/")+path, bytes.NewReader(request))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Skein")
	c.protocol.Authorize(req.Header, c.config.APIKey)
	res, err := c.config.HTTPClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	if res.StatusCode != http.StatusOK {
		defer func() { _ = res.Body.Close() }()
		return nil, "", c.status(res)
	}
	return res.Body, res.Header.Get("Content-Type"), nil
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

// failed returns the error for what a decoder has returned: the answer had begun.
func (c *call) failed(err error) error {
	err = c.told(err)
	var later *runtime.RetryError
	var broke *runtime.BrokenOffError
	if errors.As(err, &later) && !errors.As(err, &broke) {
		return &runtime.BrokenOffError{Err: err}
	}
	return err
}

// broken returns the error for a stream without its end.
func (c *call) broken(err error) error {
	if c.parent.Err() != nil {
		return context.Cause(c.parent)
	}
	var (
		f          *Failure
		connection interface{ Timeout() bool }
		location   *url.Error
		text       string
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
	case err == nil:
		text = "the model's answer broke off: its stream ended without " + c.protocol.LastName
	case errors.As(err, &location): // its own text contains the URL
		c.log(location.Err)
		text = "no connection to the model's endpoint; the operator's log says why"
	case errors.Is(err, io.ErrUnexpectedEOF):
		text = "the model's answer broke off: unexpected EOF"
	case errors.As(err, &connection): // its text contains addresses
		c.log(err)
		text = "the model's answer broke off; the operator's log says why"
	default: // the body is not what HTTP says
		return c.told(Unreadable(err.Error()))
	}
	return &runtime.BrokenOffError{Err: &runtime.RetryError{Err: errors.New(text)}}
}

// log reports a connection's failure to the operator: it names addresses.
func (c *call) log(err error) {
	c.config.Logger.Warn().Str("detail", c.clean(err.Error())).Msg("cannot use a model's endpoint")
}
