package buckets

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/projections/documents"
)

// Keys of a bucket that hold no document. No tenant begins with an underscore.
const (
	CheckpointKey  = "_.checkpoint"
	IncarnationKey = "_.incarnation" // see [Incarnation]
	DeletionPrefix = "_.deletion."   // of the keys of notes, see [Deletion]
	FillerKey      = "_.filler"      // what a rewrite writes so that the server starts a new file; a killed one leaves it
)

// Checkpoint describes how far a bucket shows the log. It is written after the
// documents that it covers, in the same stream.
type Checkpoint struct {
	Projection string `json:"projection"`
	Version    int    `json:"version"`     // of the fold that made the documents
	Seq        uint64 `json:"seq"`         // in the log; commits up to it are in the documents
	At         string `json:"at,omitzero"` // when the log stored that commit

	Broken    int64  `json:"broken,omitzero"`    // commits that could not be read and were skipped
	BrokenSeq uint64 `json:"brokenSeq,omitzero"` // the last of them

	// Newer is the first message of the bucket that may show more of the log than
	// this checkpoint does, if it is before the checkpoint: after a crash, documents of
	// a batch may be there whose commits are being folded again. 0: there is none.
	Newer uint64 `json:"newer,omitzero"`

	// Epoch counts how often a runner started where something had been lost. What the
	// checkpoint of threads says of a bucket is valid while both have the same epoch: if
	// the server loses the newest checkpoint of threads, an older one is there again, and
	// the bucket may by then hold other messages than those that it describes.
	Epoch uint64 `json:"epoch,omitzero"`

	// Thaws says, in the checkpoint of threads, that the runner brings cold threads back, see
	// [Mark]. One of an older Skein does not, so no thread may become cold while it runs.
	Thaws bool `json:"thaws,omitzero"`

	// Removals says, in the checkpoint of threads, that there is a [Removal] of all that a
	// server that is killed may restore. One of an older Skein writes none.
	Removals bool `json:"removals,omitzero"`

	// Progress is in the checkpoint of threads only: the sequence up to which all
	// read models are stored. 0 while one of them is being filled from nothing.
	Progress uint64 `json:"progress,omitzero"`
	// Ends is there, too: by kind, the sequence in its bucket of each checkpoint at that
	// time, and for threads of the message before this one. What Progress covers is
	// before that.
	Ends []uint64 `json:"ends,omitempty"`
}

// Stored is a checkpoint and its sequence in its bucket.
type Stored struct {
	*Checkpoint // nil: there is none
	At          uint64
}

// Checkpoints are those of all buckets, by kind.
type Checkpoints [documents.Kinds]Stored

// ReadCheckpoints reads those of all buckets.
func ReadCheckpoints(ctx context.Context, log *eventlog.Log, models *documents.Models) (*Checkpoints, error) {
	var all Checkpoints
	for i, p := range models.List() {
		var err error
		if all[i], err = ReadCheckpoint(ctx, log, p); err != nil {
			return nil, err
		}
	}
	return &all, nil
}

// Whole reports whether the buckets hold all that the checkpoint of threads describes.
// After a crash of the server one of them may not. That a bucket has as many messages as
// it had, or more, proves nothing: what was lost may have made room for others.
func (all *Checkpoints) Whole() bool {
	threads := all[documents.Threads]
	if threads.Checkpoint == nil || threads.Epoch == 0 || len(threads.Ends) != documents.Kinds {
		return false
	}
	for i, c := range all {
		if c.Checkpoint == nil || c.Epoch != threads.Epoch || c.At < threads.Ends[i] {
			return false
		}
	}
	return true
}

// ReadCheckpoint reads a bucket's checkpoint. It returns none if there is none, or none
// that can be read.
func ReadCheckpoint(ctx context.Context, log *eventlog.Log, p documents.Projection) (Stored, error) {
	m, ok, err := log.Bucket(p.Bucket).Newest(ctx, CheckpointKey)
	if err != nil {
		return Stored{}, fmt.Errorf("the checkpoint of %s: %w", p.Name, err)
	}
	var c Checkpoint
	if !ok || json.Unmarshal(m.Data, &c) != nil || c.Projection != p.Name {
		return Stored{}, nil
	}
	return Stored{&c, m.Seq}, nil
}

// Encode returns the checkpoint as it is stored.
func (c Checkpoint) Encode() []byte {
	b, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		panic(err) // it has only numbers and texts of ours
	}
	return b
}
