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
	FillerKey      = "_.filler"      // written by a rewrite to make the server start a new file; left behind if the rewrite is killed
)

// Checkpoint describes how far a bucket shows the log. It is written after the
// documents that it covers, in the same stream.
type Checkpoint struct {
	Projection string `json:"projection"`
	Version    int    `json:"version"`     // the version of the fold that made the documents
	Seq        uint64 `json:"seq"`         // in the log; commits up to it are in the documents
	At         string `json:"at,omitzero"` // when the log stored that commit

	Broken    int64  `json:"broken,omitzero"`    // commits that could not be read and were skipped
	BrokenSeq uint64 `json:"brokenSeq,omitzero"` // the sequence of the last of them

	// Newer is the first message before the checkpoint that may show more of the log than the
	// checkpoint does. After a crash, the bucket may have documents of a batch that is being
	// folded again. 0: there is no such message.
	Newer uint64 `json:"newer,omitzero"`

	// Epoch counts how often a runner has started after something was lost. What the checkpoint of
	// threads says of a bucket is valid only while both have the same epoch: if the server loses
	// the newest checkpoint of threads, an older one comes back, which may describe messages that
	// the bucket no longer has.
	Epoch uint64 `json:"epoch,omitzero"`

	// Thaws says, in the checkpoint of threads, that the runner can thaw cold threads, see [Mark].
	// While the runner of an older Skein runs, which cannot, no thread may become cold.
	Thaws bool `json:"thaws,omitzero"`

	// Removals says, in the checkpoint of threads, that there is a [Removal] for every document
	// that a killed server may restore. An older Skein writes no removals.
	Removals bool `json:"removals,omitzero"`

	// Progress is the sequence up to which all read models are stored; 0 while one of them is
	// being filled for the first time. It is set in the checkpoint of threads only.
	Progress uint64 `json:"progress,omitzero"`
	// Ends has, by kind, the sequence of each bucket's checkpoint at that time and, for threads,
	// of the message before this one. All that Progress covers is before Ends. It is set in the
	// checkpoint of threads only.
	Ends []uint64 `json:"ends,omitempty"`
}

// Stored is a checkpoint and its sequence in its bucket.
type Stored struct {
	*Checkpoint // nil: there is none
	At          uint64
}

// Checkpoints are the checkpoints of all buckets, by kind.
type Checkpoints [documents.Kinds]Stored

// ReadCheckpoints reads the checkpoints of all buckets.
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

// Whole reports whether the buckets hold all that the checkpoint of threads describes. After a
// crash of the server a bucket may have lost messages. Its number of messages proves nothing,
// because others may have been written since.
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

// ReadCheckpoint reads a bucket's checkpoint. It returns an empty Stored if the bucket has none,
// or if it cannot be read.
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
		panic(err) // cannot fail: it only has numbers and valid texts
	}
	return b
}
