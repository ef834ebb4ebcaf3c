package projections

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// Keys of a bucket that hold no document. No tenant begins with an underscore.
const (
	checkpointKey  = "_.checkpoint"
	deletionPrefix = "_.deletion." // then {tenant}.{thread}: the end of a thread that is not finished yet
)

// Headers of a marker of a removed document.
const (
	headerOperation = "KV-Operation"   // what key-value clients look at
	headerSeq       = events.HeaderSeq // the sequence in the log of the commit that removed it
)

// subjectOf gives the subject of a key of a bucket.
func (r *Runner) subjectOf(bucket, key string) string {
	return "$KV." + r.log.Config().Names.Bucket(bucket) + "." + key
}

// keyOf gives the key that a subject of a bucket stands for.
func (r *Runner) keyOf(bucket, subject string) string {
	return strings.TrimPrefix(subject, "$KV."+r.log.Config().Names.Bucket(bucket)+".")
}

// Checkpoint says how far a bucket shows the log. It is written after the
// documents that it speaks of, in the same stream.
type Checkpoint struct {
	Projection string `json:"projection"`
	Version    int    `json:"version"`     // of the fold that made the documents
	Seq        uint64 `json:"seq"`         // in the log; commits up to it are in the documents
	At         string `json:"at,omitzero"` // when the log stored that commit

	Broken    int64  `json:"broken,omitzero"`    // commits that could not be read and were left out
	BrokenSeq uint64 `json:"brokenSeq,omitzero"` // the last of them

	// Newer is the first message of the bucket that may show more of the log than
	// this checkpoint does, if it stands before it: after a crash, documents of a
	// batch may be there whose commits are being folded again. 0: there is none.
	Newer uint64 `json:"newer,omitzero"`

	// Epoch counts how often a runner began where something had been lost. What the
	// checkpoint of threads says of a bucket counts while both are of one epoch: if the
	// server loses the newest checkpoint of threads, an older one is there again, and
	// the bucket may hold other messages by then in place of those that it tells of.
	Epoch uint64 `json:"epoch,omitzero"`

	// Progress stands in the checkpoint of threads: the sequence up to which all
	// read models are stored. 0 while one of them is being made anew from nothing.
	Progress uint64 `json:"progress,omitzero"`
	// Ends stands there too: where in its bucket, by kind, the checkpoint of each stood
	// when that was so, and for threads the message before this one. What Progress
	// counts stands before that.
	Ends []uint64 `json:"ends,omitempty"`
}

// kept is a checkpoint and where in its bucket it stands.
type kept struct {
	*Checkpoint
	at uint64
}

// checkpoints are those of all buckets.
type checkpoints [documents.Kinds]kept

// readCheckpoints reads those of all buckets.
func readCheckpoints(ctx context.Context, log *eventlog.Log, models *documents.Models) (*checkpoints, error) {
	var all checkpoints
	for i, p := range models.List() {
		var err error
		if all[i].Checkpoint, all[i].at, err = readCheckpoint(ctx, log, p); err != nil {
			return nil, err
		}
	}
	return &all, nil
}

// whole reports whether the buckets hold all that the checkpoint of threads tells of.
// After a crash of the server one of them may not. That it ends where it did, or
// further on, says nothing: what was lost may have made room for other messages.
func (all *checkpoints) whole() bool {
	threads := all[documents.Threads]
	if threads.Checkpoint == nil || threads.Epoch == 0 || len(threads.Ends) != documents.Kinds {
		return false
	}
	for i, c := range all {
		if c.Checkpoint == nil || c.Epoch != threads.Epoch || c.at < threads.Ends[i] {
			return false
		}
	}
	return true
}

// readCheckpoint reads a bucket's checkpoint and its place in the bucket's
// stream. Nil if there is none, or none that can be read.
func readCheckpoint(ctx context.Context, log *eventlog.Log, p documents.Projection) (*Checkpoint, uint64, error) {
	m, ok, err := log.Bucket(p.Bucket).Newest(ctx, checkpointKey)
	if err != nil {
		return nil, 0, fmt.Errorf("the checkpoint of %s: %w", p.Name, err)
	}
	var c Checkpoint
	if !ok || json.Unmarshal(m.Data, &c) != nil || c.Projection != p.Name {
		return nil, 0, nil
	}
	return &c, m.Seq, nil
}

func (c Checkpoint) encode() []byte {
	b, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		panic(err) // numbers and texts of ours
	}
	return b
}

// Shown gives the sequence of the log up to which all read models are stored, as
// they say themselves. 0 while one of them is being made anew from nothing.
func Shown(ctx context.Context, log *eventlog.Log) (uint64, error) {
	c, _, err := readCheckpoint(ctx, log, documents.NewModels().Of(documents.Threads))
	if err != nil || c == nil {
		return 0, err
	}
	return c.Progress, nil
}

// Broken returns how many commits cannot be read and how many times a document was
// too large to be shown, at most of any read model, and the last commit concerned.
// They say so themselves.
func Broken(ctx context.Context, log *eventlog.Log) (count int64, seq uint64, err error) {
	all, err := readCheckpoints(ctx, log, documents.NewModels())
	if err != nil {
		return 0, 0, err
	}
	for _, c := range all {
		if c.Checkpoint != nil && c.Broken > 0 {
			count, seq = max(count, c.Broken), max(seq, c.BrokenSeq)
		}
	}
	return count, seq, nil
}
