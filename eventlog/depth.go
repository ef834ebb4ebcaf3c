package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Depth is how much a work queue holds.
type Depth struct {
	Waiting uint64 // messages that nobody has
	Taken   uint64 // messages that a receiver has and has not acknowledged
}

// RunsDepth returns what the queue of runs holds.
func (l *Log) RunsDepth(ctx context.Context) (Depth, error) {
	return l.depth(ctx, RunStream, runConsumer)
}

// DueDepth returns what is due.
func (l *Log) DueDepth(ctx context.Context) (Depth, error) {
	return l.depth(ctx, TimerStream, dueConsumer)
}

// SubmittedDepth returns how many submitted commands are not done.
func (l *Log) SubmittedDepth(ctx context.Context) (uint64, error) {
	stream, err := l.conn.JetStream().Stream(ctx, l.cfg.Names.Stream(CommandStream))
	if err != nil {
		return 0, fmt.Errorf("the submitted commands: %w", err)
	}
	return stream.CachedInfo().State.Msgs, nil
}

func (l *Log) depth(ctx context.Context, stream, consumer string) (Depth, error) {
	c, err := l.conn.JetStream().Consumer(ctx, l.cfg.Names.Stream(stream), consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) { // nobody has ever received here
		return Depth{}, nil
	}
	if err != nil {
		return Depth{}, fmt.Errorf("consumer %s of stream %s: %w", consumer, stream, err)
	}
	info := c.CachedInfo()
	return Depth{info.NumPending, uint64(max(info.NumAckPending, 0))}, nil
}
