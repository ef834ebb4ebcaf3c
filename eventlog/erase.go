package eventlog

import (
	"bytes"
	"context"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// EraseCommits erases a thread's commits before a sequence.
func (l *Log) EraseCommits(ctx context.Context, tenant, thread string, before uint64) error {
	return l.conn.Erase(ctx, l.cfg.Names.Stream(assets.LogStream), l.cfg.Names.Log(tenant, thread), before)
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
