package client

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// errDenied reports that the server does not permit this user to publish on a subject.
var errDenied = errors.New("the server does not permit it")

// deniedPublish finds the subject in the server's message.
var deniedPublish = regexp.MustCompile(`(?i)permissions violation for publish to "([^"]+)"`)

// denials ends requests that the server does not permit. The server reports that as an
// asynchronous error of the connection; without this, requests would wait for their
// timeout.
type denials struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]map[*context.CancelCauseFunc]struct{}
}

func newDenials() *denials {
	return &denials{waiting: map[string]map[*context.CancelCauseFunc]struct{}{}}
}

// watch returns a context that ends when the server denies the subject. Call done when
// the request has finished.
func (d *denials) watch(ctx context.Context, subject string) (watched context.Context, done func()) {
	watched, cancel := context.WithCancelCause(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[subject] == nil {
		d.waiting[subject] = map[*context.CancelCauseFunc]struct{}{}
	}
	d.waiting[subject][&cancel] = struct{}{}
	return watched, func() {
		cancel(nil)
		d.mu.Lock()
		defer d.mu.Unlock()
		if delete(d.waiting[subject], &cancel); len(d.waiting[subject]) == 0 {
			delete(d.waiting, subject)
		}
	}
}

// handleError handles an asynchronous error of the connection.
func (d *denials) handleError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	found := deniedPublish.FindStringSubmatch(err.Error())
	if found == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for cancel := range d.waiting[found[1]] {
		(*cancel)(errDenied)
	}
}

// subscriptionError reports, as an error, whether the server denied a subscription on one of
// the subjects. Call it after a flush: by then the server has reported denials.
func subscriptionError(nc *nats.Conn, subjects ...string) error {
	err := nc.LastError()
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	for _, s := range subjects {
		if strings.Contains(err.Error(), `Subscription to "`+s+`"`) {
			return events.Errorf(events.Forbidden, "these credentials may not subscribe to %s: %w", s, err)
		}
	}
	return nil
}

// Guard decides what a client may send and receive. Every message of a client with a guard
// passes it. The errors are the caller's answer.
type Guard interface {
	// Command decides on a command, which it may change before it sends it with send. The reply is
	// nil where send returns none: of a command that is submitted, or that an upload follows.
	Command(ctx context.Context, subject string, r *events.Request, send func() (*events.Reply, error)) (*events.Reply, error)
	// Request decides on any other request. It sends it with send, perhaps with another body, and
	// returns the answer.
	Request(ctx context.Context, subject string, body []byte, send func(body []byte) ([]byte, error)) ([]byte, error)
	// Publish decides on a message that is not answered, or a piece of an upload.
	Publish(ctx context.Context, subject string) error
	// Subscribe decides on a subscription, whose subject may have wildcards.
	Subscribe(ctx context.Context, subject string) error
	// Receive reports whether the client is shown a message of a subscription. An error
	// ends the subscription.
	Receive(ctx context.Context, subject string) (bool, error)
	// Deliver is told the thread and the sequence in the log of an event of a timeline, before the client
	// is shown it.
	Deliver(thread string, seq int64)
}

// guarded sends a request through the guard, if there is one.
func (c *Client) guarded(ctx context.Context, subject string, body []byte, send func(body []byte) ([]byte, error)) ([]byte, error) {
	if c.opts.Guard == nil {
		return send(body)
	}
	return c.opts.Guard.Request(ctx, subject, body, send)
}

// guardedCommand is guarded for a command.
func (c *Client) guardedCommand(ctx context.Context, subject string, r *events.Request, send func() (*events.Reply, error)) (*events.Reply, error) {
	if c.opts.Guard == nil {
		return send()
	}
	return c.opts.Guard.Command(ctx, subject, r, send)
}

// publish publishes a message that the guard permits.
func (c *Client) publish(ctx context.Context, m *nats.Msg) error {
	if c.opts.Guard != nil {
		if err := c.opts.Guard.Publish(ctx, m.Subject); err != nil {
			return err
		}
	}
	return c.nc.PublishMsg(m)
}

// subscribe subscribes to what the guard permits, with a channel, or without one for
// Subscription.NextMsg.
func (c *Client) subscribe(ctx context.Context, subject string, to chan *nats.Msg) (*nats.Subscription, error) {
	if c.opts.Guard != nil {
		if err := c.opts.Guard.Subscribe(ctx, subject); err != nil {
			return nil, err
		}
	}
	if to == nil {
		return c.nc.SubscribeSync(subject)
	}
	return c.nc.ChanSubscribe(subject, to)
}

// receives reports whether the guard lets a message through.
func (c *Client) receives(ctx context.Context, subject string) (bool, error) {
	if c.opts.Guard == nil {
		return true, nil
	}
	return c.opts.Guard.Receive(ctx, subject)
}
