package buckets

import (
	"context"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/projections/documents"
)

// Positions returns, by projection, the sequence of the log that its documents show. It reads the
// checkpoints, so any process can call it.
func Positions(ctx context.Context, log *eventlog.Log) (map[string]uint64, error) {
	out := map[string]uint64{}
	all := uint64(0) // a bucket in which nothing changes keeps its old checkpoint
	for _, p := range documents.NewModels().List() {
		c, err := ReadCheckpoint(ctx, log, p)
		if err != nil {
			return nil, err
		}
		out[p.Name] = 0
		if c.Checkpoint != nil {
			out[p.Name] = c.Seq
			all = max(all, c.Progress)
		}
	}
	for name, seq := range out {
		out[name] = max(seq, all)
	}
	return out, nil
}

// Shown returns the sequence of the log up to which all read models are stored, according to the
// checkpoints. It returns 0 while one of them is being filled for the first time.
func Shown(ctx context.Context, log *eventlog.Log) (uint64, error) {
	c, err := ReadCheckpoint(ctx, log, documents.NewModels().Of(documents.Threads))
	if err != nil || c.Checkpoint == nil {
		return 0, err
	}
	return c.Progress, nil
}

// Broken returns how many commits could not be read plus how often a document was too large to be
// stored, and the last commit concerned. It reads the checkpoints, and returns the maximum over
// all read models.
func Broken(ctx context.Context, log *eventlog.Log) (count int64, seq uint64, err error) {
	all, err := ReadCheckpoints(ctx, log, documents.NewModels())
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
