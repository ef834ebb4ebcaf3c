package telemetry

import (
	"context"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
)

// Bucket holds the position of the export, without its prefix.
const Bucket = "thread_telemetry"

// resume reads the position of the export: every run that ended up to it was sent or dropped. The
// first time it is the end of the log.
func resume(ctx context.Context, log *eventlog.Log) (*eventlog.Position, error) {
	if err := assets.EnsureBucket(ctx, log.Streams(), Bucket); err != nil {
		return nil, err
	}
	p, err := eventlog.OpenPosition(ctx, log, Bucket, "telemetry")
	if err != nil {
		return nil, err
	}
	return p, p.Save(ctx, p.Seq())
}
