package projections

import (
	"context"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/projections/documents"
)

// Positions returns, by projection, the sequence of the log that its documents
// show, as the checkpoints say, so that any process may ask.
func Positions(ctx context.Context, log *eventlog.Log) (map[string]uint64, error) {
	out := map[string]uint64{}
	all := uint64(0) // a bucket in which nothing changes keeps its old checkpoint
	for _, p := range documents.NewModels().List() {
		c, _, err := readCheckpoint(ctx, log, p)
		if err != nil {
			return nil, err
		}
		out[p.Name] = 0
		if c != nil {
			out[p.Name] = c.Seq
			all = max(all, c.Progress)
		}
	}
	for name, seq := range out {
		out[name] = max(seq, all)
	}
	return out, nil
}
