package projections

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// shelf is one bucket as the runner has it.
type shelf struct {
	documents.Projection
	fence  *eventlog.Fence
	stream jetstream.Stream

	position uint64 // in the log: what its checkpoint said; commits up to it are not folded again
	seen     uint64 // the newest commit that a document shows: what was made up to it may be there
	newer    uint64 // the first message in the bucket that may be newer than position
	stored   uint64 // what the checkpoint in the bucket says now
	version  int    // of the fold that made its documents

	broken    int64
	brokenSeq uint64
	touched   bool // the batch wrote to it
}

// session is the runner between two beginnings. It belongs to one goroutine.
type session struct {
	*Runner
	beside  context.Context // for work that goes on beside the loop
	shelves [documents.Kinds]*shelf
	cache   *cache

	tombs      map[documents.Place]uint64 // documents that were removed after the checkpoint, and at which sequence
	ended      map[string]uint64          // threads that are known to have ended while catching up, and where
	horizon    uint64                     // up to it, what is folded may have been folded before
	stale      documents.Mask             // read models of another version
	incomplete documents.Mask             // read models whose documents are not all there

	at       uint64    // the last commit that was folded
	atTime   time.Time // when the log stored it
	nextTick time.Time
	dirty    []*node
	changed  []*documents.Slot
	ends     []documents.Deletion
	dead     map[string]bool // threads that ended in this batch
}

// begin reads where the buckets stand.
func (r *Runner) begin(ctx, beside context.Context) (*session, error) {
	s := &session{
		Runner: r, beside: beside, cache: newCache(r.cfg.CacheBytes), tombs: map[documents.Place]uint64{},
		ended: map[string]uint64{}, dead: map[string]bool{}, nextTick: r.cfg.Now(),
	}
	fresh, most := true, uint64(0)
	checkpoints := [documents.Kinds]*Checkpoint{}
	for i, p := range r.models.List() {
		// The fence first: what another writer does after this is noticed.
		sh := &shelf{Projection: p}
		s.shelves[i] = sh
		var err error
		if sh.fence, err = r.log.BucketFence(ctx, p.Bucket); err != nil {
			return nil, err
		}
		if sh.stream, err = r.log.JetStream().Stream(ctx, "KV_"+r.log.Config().Names.Bucket(p.Bucket)); err != nil {
			return nil, fmt.Errorf("the bucket of %s: %w", p.Name, err)
		}
		c, at, err := readCheckpoint(ctx, r.log, p)
		if err != nil {
			return nil, err
		}
		checkpoints[i] = c
		if c != nil {
			fresh = false
			most = max(most, c.Seq)
		}
		sh.newer = at + 1
		if c != nil && c.Newer > 0 {
			sh.newer = c.Newer
		}
		if err := s.readNewer(ctx, sh); err != nil {
			return nil, err
		}
	}
	if end, err := r.log.LastSeq(ctx); err != nil {
		return nil, err
	} else if most > end {
		return nil, &AheadError{Checkpoint: most, Log: end}
	}
	for i, sh := range s.shelves {
		s.place(sh, checkpoints[i], most)
	}
	s.spread()
	if fresh {
		return s, s.storeCheckpoints(ctx, documents.AllKinds)
	}
	r.cfg.Progress.set(s.progress())
	return s, s.resumeEnds(ctx)
}

// AheadError says that the read models show commits that the log does not have:
// it is another log, or an older copy of it.
type AheadError struct {
	Checkpoint, Log uint64
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("the read models show the log up to %d, and it ends at %d: it is another log; remove the buckets, and they are made anew from it",
		e.Checkpoint, e.Log)
}

// place says from where a bucket goes on. One without a checkpoint, where others
// have one, is new, or was lost: it goes on with the others, and is filled from
// the log beside them.
func (s *session) place(sh *shelf, c *Checkpoint, most uint64) {
	switch {
	case c != nil:
		sh.position, sh.stored, sh.version = c.Seq, c.Seq, c.Version
		sh.broken, sh.brokenSeq = c.Broken, c.BrokenSeq
		if c.Version == 0 { // it was begun so, and is not filled yet
			s.incomplete = s.incomplete.With(sh.Kind)
		}
	case most > 0:
		sh.position = most
		s.incomplete = s.incomplete.With(sh.Kind)
	default:
		sh.version = sh.Projection.Version
	}
	if sh.version != sh.Projection.Version {
		s.stale = s.stale.With(sh.Kind)
	}
	s.at = max(s.at, sh.position)
	s.horizon = max(s.horizon, sh.position, sh.seen)
}

// spread says which read models have to be rebuilt because another one has: what
// is hidden is counted down by what the index says, so without it the folds of
// these go wrong where they are behind it. What this process has rebuilt is done.
func (s *session) spread() {
	if s.stale.Has(documents.Index) {
		for _, k := range []documents.Kind{documents.Threads, documents.Contexts, documents.Items} {
			s.stale = s.stale.With(k)
			if s.incomplete.Has(documents.Index) {
				s.incomplete = s.incomplete.With(k)
				s.shelves[k].version = 0 // so that it is remembered
			}
		}
	}
	done := s.done()
	s.stale, s.incomplete = s.stale&^done, s.incomplete&^done
	for _, sh := range s.shelves {
		if done.Has(sh.Kind) {
			sh.version = sh.Projection.Version
		}
	}
}

// readNewer reads what a bucket holds that may be newer than its checkpoint: how
// new it is, and what was removed.
func (s *session) readNewer(ctx context.Context, sh *shelf) error {
	end := sh.fence.Last()
	if sh.newer > end {
		return nil
	}
	consumer, err := sh.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: sh.newer,
	})
	if err != nil {
		return fmt.Errorf("reading the bucket of %s: %w", sh.Name, err)
	}
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	msgs, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("reading the bucket of %s: %w", sh.Name, err)
	}
	defer msgs.Stop()
	for {
		m, err := msgs.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("reading the bucket of %s: %w", sh.Name, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("reading the bucket of %s: %w", sh.Name, err)
		}
		if p, ok := documents.ParsePlace(sh.Kind, s.keyOf(sh.Bucket, m.Subject())); ok {
			seq, removed := shownSeq(m.Headers(), m.Data())
			if removed {
				s.tombs[p] = seq
			}
			sh.seen = max(sh.seen, seq)
		}
		if meta.NumPending == 0 || meta.Sequence.Stream >= end {
			return nil
		}
	}
}

// shownSeq gives the sequence in the log that a message of a bucket shows, and
// whether it is a marker of a removed document.
func shownSeq(header nats.Header, data []byte) (seq uint64, removed bool) {
	if header.Get(headerOperation) != "" {
		seq, _ = strconv.ParseUint(header.Get(headerSeq), 10, 64)
		return seq, true
	}
	var doc struct {
		Seq uint64 `json:"seq"`
	}
	_ = json.Unmarshal(data, &doc) // what cannot be read shows nothing, and is repaired by a rebuild
	return doc.Seq, false
}

// from gives the sequence after which the log is read.
func (s *session) from() uint64 {
	from := s.shelves[0].position
	for _, sh := range s.shelves {
		from = min(from, sh.position)
	}
	return from
}

// progress gives the sequence up to which all read models are stored.
func (s *session) progress() uint64 {
	if s.incomplete != 0 {
		return 0
	}
	return s.from()
}

// activeAt gives the read models that do not show a commit yet.
func (s *session) activeAt(seq uint64) documents.Mask {
	if seq > s.horizon {
		return documents.AllKinds
	}
	var m documents.Mask
	for _, sh := range s.shelves {
		if seq > sh.position {
			m = m.With(sh.Kind)
		}
	}
	return m
}

// isThread reports whether an entry is a commit of a thread.
func isThread(c *events.Commit) bool { return c != nil && events.IsThread(c.Thread) }
