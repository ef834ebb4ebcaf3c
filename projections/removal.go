package projections

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// removals records how far the notes of removed documents are complete, see [buckets.Removal]. It
// belongs to the goroutine of Run.
type removals struct {
	noted bool      // every removal that may not be on the disk yet has a note
	told  bool      // the checkpoint of threads says that noted is true
	upTo  uint64    // a sequence in the bucket of threads: the removals of notes up to it are complete
	since time.Time // they were completed before this time; zero: the server may have been restarted meanwhile
	own   uint64    // the sequence in the bucket of threads of the checkpoint that this runner found or wrote last
}

// noteRemovals writes notes of the threads that were deleted in this batch. It must be the first
// write of the batch, so that no marker of such a thread exists without its note.
func (s *session) noteRemovals(ctx context.Context) error {
	sh := s.shelves[documents.Threads]
	for _, note := range buckets.Removals(s.deletions) {
		if err := sh.fence.Send(ctx, sh.prefix+note.Key(), nil, note.Encode()); err != nil {
			return err
		}
	}
	return nil
}

// resumeRemovals continues with the notes that an earlier runner has left. If an older Skein,
// which writes no notes, has run since, its removals have to settle first.
func (s *session) resumeRemovals(threads buckets.Stored) {
	r := &s.removals
	r.told = threads.Checkpoint != nil && threads.Removals
	if r.since.IsZero() || !r.told && threads.At != r.own {
		r.noted, r.upTo, r.since = false, s.shelves[documents.Threads].fence.Last(), time.Now()
	}
	r.noted = r.noted || r.told
	r.own = threads.At
}

// settleRemovals removes the notes of removals that are certainly on the disk.
func (s *session) settleRemovals(ctx context.Context) error {
	r := &s.removals
	if s.purges.count > 0 { // documents that are still to be purged have a note, too
		r.since = time.Now()
	}
	if time.Since(r.since) < s.cfg.Settle {
		return nil
	}
	sh := s.shelves[documents.Threads]
	err := streams.Purge(ctx, sh.stream, jetstream.WithPurgeSubject(sh.prefix+buckets.RemovalPrefix+">"), jetstream.WithPurgeSequence(r.upTo+1))
	if err != nil {
		return fmt.Errorf("removing the notes of removed documents: %w", err)
	}
	r.noted, r.upTo, r.since = true, sh.fence.Last(), time.Now()
	return nil
}
