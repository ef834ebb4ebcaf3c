package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// damaged turns what could not be read into a finding, and the audit continues. It returns an
// error that says nothing about what is stored: the check was cancelled, or the server does
// not respond.
func (v *verifier) damaged(ctx context.Context, err error, place Finding) error {
	if unanswered(ctx, err) {
		return err
	}
	place.Detail = fmt.Sprintf("it cannot be read: %v", err)
	v.find(place)
	return nil
}

// unanswered reports whether an error is the lack of a response rather than a fault of what is
// stored.
func unanswered(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound) {
		return false
	}
	for _, silent := range []error{
		context.Canceled, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionClosed,
		nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrNoServers, nats.ErrStaleConnection,
	} {
		if errors.Is(err, silent) {
			return true
		}
	}
	return false
}

// hasStream reports whether a stream exists. A read of a missing one fails like one without
// responders.
func (v *verifier) hasStream(ctx context.Context, name string) (bool, error) {
	_, err := v.log.JetStream().Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, err
}
