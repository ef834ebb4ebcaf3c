package server

import (
	"context"
	"time"
)

// PingsSlowly reports whether a server waits longer than a limit between two pings of its clients.
func PingsSlowly(ctx context.Context, url string, limit time.Duration) (bool, error) {
	return (&Server{url: url}).pingsSlowly(ctx, limit)
}
