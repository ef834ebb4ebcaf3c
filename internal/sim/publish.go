package sim

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// future is the acknowledgement of a message that was published without waiting
// for it.
type future struct {
	jetstream.PubAckFuture
	ok  chan *jetstream.PubAck
	err chan error
}

func (f *future) Ok() <-chan *jetstream.PubAck { return f.ok }
func (f *future) Err() <-chan error            { return f.err }

// PublishMsgAsync publishes a message whose conditions are in its headers: its
// options cannot be looked into.
func (j *jet) PublishMsgAsync(m *nats.Msg, opts ...jetstream.PublishOpt) (jetstream.PubAckFuture, error) {
	if len(opts) > 0 {
		return nil, errors.New("sim: options of a publish are not simulated; write headers")
	}
	f := &future{ok: make(chan *jetstream.PubAck, 1), err: make(chan error, 1)}
	frame := j.conn.publishing(copied(m))
	answer, err := j.conn.begin(frame)
	if err != nil {
		return nil, err
	}
	j.conn.run.under.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), ackTimeout)
		defer cancel()
		a, err := j.conn.await(ctx, answer)
		if err != nil {
			f.err <- jetstream.ErrAsyncPublishTimeout
			return
		}
		var ack struct {
			Seq   uint64              `json:"seq"`
			Error *jetstream.APIError `json:"error"`
		}
		switch err := json.Unmarshal(a.(*nats.Msg).Data, &ack); {
		case err != nil:
			f.err <- err
		case ack.Error != nil:
			f.err <- ack.Error
		default:
			f.ok <- &jetstream.PubAck{Sequence: ack.Seq}
		}
	})
	return f, nil
}
