package assets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Derived reports whether a stream can be rebuilt from others. The log, the submitted
// commands, the archives and the contents of files cannot: what they held is lost with them.
func Derived(n events.Names, stream string) bool {
	return slices.Contains([]string{
		n.Stream(TimelineStream), n.Stream(ChunkStream), n.Stream(RunStream), n.Stream(TimerStream), objects.Stream(n.Bucket(SnapshotBucket)),
	}, stream) || strings.HasPrefix(stream, "KV_"+n.Bucket("thread_"))
}

// Kept lists the streams that are not derived, in the order in which a backup copies them. A
// command that is processed while the backup is made is in its copy of the log. What a commit
// refers to is stored before it, so it is in the copies of the contents and the archives.
func Kept(n events.Names) []string {
	return []string{n.Stream(CommandStream), n.Stream(LogStream), objects.Stream(n.Bucket(ArchiveBucket)), objects.Stream(n.Bucket(FileBucket))}
}

// States returns what their leaders say of streams, by name. A stream that does not exist is left out.
func States(ctx context.Context, conn *streams.Conn, names []string) (map[string]jetstream.StreamState, error) {
	out := map[string]jetstream.StreamState{}
	for _, name := range names {
		s, err := conn.JetStream().Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("stream %s: %w", name, err)
		}
		out[name] = s.CachedInfo().State
	}
	return out, nil
}

// DropDerived removes every derived stream, for a log that has lost something: the next Skein
// to start rebuilds them. It returns their names.
func DropDerived(ctx context.Context, conn *streams.Conn) ([]string, error) {
	var found []string
	names := conn.JetStream().StreamNames(ctx)
	for name := range names.Name() {
		if Derived(conn.Config().Names, name) {
			found = append(found, name)
		}
	}
	if err := names.Err(); err != nil {
		return nil, err
	}
	for _, name := range found {
		if err := conn.JetStream().DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, fmt.Errorf("removing the derived stream %s: %w", name, err)
		}
	}
	return found, nil
}
