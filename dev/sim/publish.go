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
		return nil, errOptions
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
		if ack, err := ackOf(a.(*nats.Msg)); err != nil {
			f.err <- err
		} else {
			f.ok <- ack
		}
	})
	return f, nil
}

// PublishMsg publishes a message whose conditions are in its headers, and waits for
// the acknowledgement.
func (j *jet) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if len(opts) > 0 {
		return nil, errOptions
	}
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	answer, err := j.conn.RequestMsgWithContext(ctx, m)
	if err != nil {
		return nil, err
	}
	return ackOf(answer)
}

var errOptions = errors.New("sim: options of a publish are not simulated; write headers")

// ackOf reads the stream's answer to a publish.
func ackOf(m *nats.Msg) (*jetstream.PubAck, error) {
	var ack struct {
		Seq   uint64              `json:"seq"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return nil, err
	}
	if ack.Error != nil {
		return nil, ack.Error
	}
	return &jetstream.PubAck{Sequence: ack.Seq}, nil
}
