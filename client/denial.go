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
