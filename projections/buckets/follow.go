package buckets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/retry"
)

// KeepFollowing calls follow again and again until ctx ends. A reconnect ends the context of
// follow, and follow is called again at once. After any other error KeepFollowing calls warn with
// it, and pauses.
func KeepFollowing(ctx context.Context, conn *streams.Conn, follow func(context.Context) error, warn func(error)) {
	connects, stop := conn.Connects()
	defer stop()
	for ctx.Err() == nil {
		err := streams.UntilReconnect(ctx, connects, follow)
		if ctx.Err() == nil && !errors.Is(err, streams.ErrReconnected) {
			warn(err)
			retry.Sleep(ctx, 250*time.Millisecond)
		}
	}
}

// Follow calls see with each message of a stream, and with new ones as they arrive, until ctx
// ends. last says that no more messages are waiting. It calls loaded, if it is not nil, once after
// the initial messages.
func Follow(ctx context.Context, stream jetstream.Stream, from jetstream.OrderedConsumerConfig, loaded func(), see func(m jetstream.Msg, last bool)) error {
	consumer, err := stream.OrderedConsumer(ctx, from)
	if err != nil {
		return fmt.Errorf("following a bucket: %w", err)
	}
	msgs, err := consumer.Messages(append(streams.Beat(), jetstream.PullMaxMessages(1024))...)
	if err != nil {
		return fmt.Errorf("following a bucket: %w", err)
	}
	defer msgs.Stop()
	waiting := loaded != nil
	if waiting && consumer.CachedInfo().NumPending == 0 {
		waiting = false
		loaded()
	}
	for {
		m, err := msgs.Next(jetstream.NextContext(ctx))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return fmt.Errorf("following a bucket: %w", err)
		case err != nil:
			// The consumer recovers by itself; a pause keeps this loop from spinning.
			retry.Sleep(ctx, 100*time.Millisecond)
			continue
		}
		meta, err := m.Metadata()
		last := err != nil || meta.NumPending == 0
		see(m, last)
		if waiting && last {
			waiting = false
			loaded()
		}
	}
}
