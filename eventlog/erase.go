package eventlog

import (
	"bytes"
	"context"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// EraseCommits erases a thread's commits before a sequence.
func (l *Log) EraseCommits(ctx context.Context, tenant, thread string, before uint64) error {
	return l.conn.Erase(ctx, l.cfg.Names.Stream(assets.LogStream), l.cfg.Names.Log(tenant, thread), before)
}

// EraseTimeline erases a thread's events from the timeline, up to those of the
// commit with its tombstone, which must be there or have expired.
func (l *Log) EraseTimeline(ctx context.Context, tenant, thread string, tombstone *events.Commit) error {
	n := l.cfg.Names
	name := n.Stream(assets.TimelineStream)
	last, err := l.conn.Direct(ctx, name, streams.GetRequest{Multi: []string{n.Timeline(tenant, thread, events.LifecycleDeletedType)}})
	if err != nil {
		return err
	}
	before := uint64(0)
	if len(last) > 0 {
		before = last[0].Seq - uint64(len(tombstone.Events)-1) // they stand side by side, the relay is the only writer
	}
	return l.conn.Erase(ctx, name, n.Timeline(tenant, thread, ">"), before)
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
