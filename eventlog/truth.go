package eventlog

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Derived reports whether a stream can be made again from others: with those of the
// log, the submitted commands, the archive and the contents of files lost, nothing
// brings back what they held.
func (c Config) Derived(stream string) bool {
	n := c.WithDefaults().Names
	return slices.Contains([]string{
		n.Stream(TimelineStream), n.Stream(ChunkStream), n.Stream(RunStream), n.Stream(TimerStream), "OBJ_" + n.Bucket(SnapshotBucket),
	}, stream) || strings.HasPrefix(stream, "KV_"+n.Bucket("thread_"))
}

// Kept lists the streams that are not derived, in the order in which a backup copies
// them. A
// command that is done while the backup is made is in its copy of the log; what a
// commit refers to is stored before it, so it is in the copy of the contents, and of
// the archives.
func (c Config) Kept() []string {
	n := c.WithDefaults().Names
	return []string{n.Stream(CommandStream), n.Stream(LogStream), "OBJ_" + n.Bucket(ArchiveBucket), "OBJ_" + n.Bucket(FileBucket)}
}

// Reached returns the last sequence of each stream that is not derived, from its
// leader.
func (l *Log) Reached(ctx context.Context) (map[string]uint64, error) {
	out := map[string]uint64{}
	for _, name := range l.cfg.Kept() {
		last, ok, err := l.conn.Ends(ctx, name)
		if err != nil {
			return nil, err
		}
		if ok {
			out[name] = last
		}
	}
	return out, nil
}

// Purges reports whether a commit's body erases what its aggregate had before.
func Purges(body []byte) bool {
	if !bytes.Contains(body, []byte(events.LifecycleDeletedType)) {
		return false
	}
	var batch []struct {
		Type events.Type `json:"type"`
		Data struct {
			Purge bool `json:"purge"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &batch) != nil {
		return false
	}
	for _, e := range batch {
		if e.Type == events.LifecycleDeletedType && e.Data.Purge {
			return true
		}
	}
	return false
}
