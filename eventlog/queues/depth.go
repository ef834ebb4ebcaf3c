package queues

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Depth counts the messages of a work queue.
type Depth struct {
	Waiting uint64 // messages that no receiver has
	Taken   uint64 // messages that a receiver has and has not acknowledged
}

func depth(ctx context.Context, conn *streams.Conn, stream, consumer string) (Depth, error) {
	c, err := conn.JetStream().Consumer(ctx, stream, consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) { // no process has ever received here
		return Depth{}, nil
	}
	if err != nil {
		return Depth{}, fmt.Errorf("consumer %s of stream %s: %w", consumer, stream, err)
	}
	info := c.CachedInfo()
	return Depth{info.NumPending, uint64(max(info.NumAckPending, 0))}, nil
}
