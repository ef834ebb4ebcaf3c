package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// damaged makes what could not be read a finding, and the audit goes on with the
// next. An error is returned where it says nothing of what is stored: the check
// was ended, or the server does not answer.
func (v *verifier) damaged(ctx context.Context, err error, place Finding) error {
	if unanswered(ctx, err) {
		return err
	}
	place.Detail = fmt.Sprintf("it cannot be read: %v", err)
	v.find(place)
	return nil
}

// unanswered reports whether an error says that nobody answered, rather than what
// is wrong with what is stored.
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

// hasStream reports whether a stream is there. A read of one that is not there
// ends as one that nobody answers.
func (v *verifier) hasStream(ctx context.Context, name string) (bool, error) {
	_, err := v.log.JetStream().Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, err
}
