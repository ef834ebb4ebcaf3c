package serve

import (
	"context"
	"time"

	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/internal/metrics"
	"github.com/skein-threads/skein/projections/buckets"
)

// lags queries how far the timeline and the read models lag behind the log. What is
// derived is queried first: it cannot be ahead of the log then.
func (s *Server) lags(ctx context.Context) (metrics.Lags, error) {
	log := s.reading.log
	shown, err := timeline.Of(log).LastSeq(ctx)
	if err != nil {
		return metrics.Lags{}, err
	}
	positions, err := buckets.Positions(ctx, log)
	if err != nil {
		return metrics.Lags{}, err
	}
	last, err := log.LastSeq(ctx)
	if err != nil {
		return metrics.Lags{}, err
	}
	stored := map[uint64]float64{} // seconds since the first commit after a sequence was stored
	lag := func(seq uint64) (metrics.Lag, error) {
		if seq >= last {
			return metrics.Lag{Seq: seq}, nil
		}
		seconds, ok := stored[seq]
		if !ok {
			at, err := log.StoredAt(ctx, seq+1)
			if err != nil {
				return metrics.Lag{}, err
			}
			if !at.IsZero() {
				seconds = max(time.Since(at).Seconds(), 0)
			}
			stored[seq] = seconds
		}
		return metrics.Lag{Seq: seq, Commits: last - seq, Seconds: seconds}, nil
	}
	out := metrics.Lags{Log: last, Projections: map[string]metrics.Lag{}}
	if out.Timeline, err = lag(shown); err != nil {
		return metrics.Lags{}, err
	}
	for name, seq := range positions {
		if out.Projections[name], err = lag(seq); err != nil {
			return metrics.Lags{}, err
		}
	}
	return out, nil
}
