package assets

import (
	"context"

	"github.com/skein-threads/skein/eventlog/streams"
)

// CheckFormat returns a *[format.NewerError] if a newer Skein has stored the log. What else may be
// wrong with the log is for those who read it.
func CheckFormat(ctx context.Context, conn *streams.Conn) error {
	stream, err := conn.JetStream().Stream(ctx, conn.Config().Names.Stream(LogStream))
	if err != nil {
		return nil
	}
	return streams.CheckFormat("the log", stream.CachedInfo().Config.Metadata)
}
