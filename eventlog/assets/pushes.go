package assets

import (
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// PushBucket is the bucket of where the updates of runs are sent, without its prefix. It holds
// credentials of clients.
const PushBucket = "pushes"

// PushStream returns the name of its stream.
func PushStream(n events.Names) string { return streams.BucketStream(n.Bucket(PushBucket)) }
