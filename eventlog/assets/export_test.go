package assets

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
)

// StreamsFor returns the streams that are no buckets, as Ensure would create them.
func StreamsFor(conn *streams.Conn, ages Ages) []streams.Asset {
	return settingsFor(conn).streams(ages)
}

// WidenTimeline adds a subject to those that the timeline's stream takes.
func WidenTimeline(ctx context.Context, conn *streams.Conn, config jetstream.StreamConfig, subject string) error {
	return widenTimeline(ctx, conn, config, subject)
}
