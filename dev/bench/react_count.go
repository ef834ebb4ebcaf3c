package bench

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// Work is what a turn costs besides time: other work on the machine does not blur it.
type Work struct {
	Commits     float64 `json:"commits"`
	Timeline    float64 `json:"timeline"`  // messages
	Chunks      float64 `json:"chunks"`    // messages
	Documents   float64 `json:"documents"` // writes; fewer where several commits share one
	Queue       float64 `json:"queue"`     // messages of the queue of runs
	Allocations float64 `json:"allocations"`
	Kilobytes   float64 `json:"allocatedKilobytes"`
}

// work returns what all streams hold now, and what was allocated.
func (b *bench) work(ctx context.Context) (w Work, err error) {
	names := events.DefaultNames()
	bucket := "KV_" + names.Bucket("")
	list := b.log.JetStream().ListStreams(ctx)
	for s := range list.Info() {
		n := float64(s.State.LastSeq)
		switch name := s.Config.Name; {
		case name == names.Stream(assets.LogStream):
			w.Commits = n
		case name == names.Stream(assets.TimelineStream):
			w.Timeline = n
		case name == names.Stream(assets.ChunkStream):
			w.Chunks = n
		case name == names.Stream(assets.RunStream):
			w.Queue = n
		case strings.HasPrefix(name, bucket):
			w.Documents += n
		}
	}
	if err := list.Err(); err != nil {
		return w, fmt.Errorf("the streams could not be listed: %w", err)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	w.Allocations, w.Kilobytes = float64(memory.Mallocs), float64(memory.TotalAlloc)/1024
	return w, nil
}

// since returns the work since before, for each of n turns.
func (w Work) since(before Work, n int) Work {
	each := func(now, then float64) float64 { return (now - then) / float64(n) }
	return Work{
		Commits: each(w.Commits, before.Commits), Timeline: each(w.Timeline, before.Timeline), Chunks: each(w.Chunks, before.Chunks),
		Documents: each(w.Documents, before.Documents), Queue: each(w.Queue, before.Queue),
		Allocations: each(w.Allocations, before.Allocations), Kilobytes: each(w.Kilobytes, before.Kilobytes),
	}
}
