package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// newSession starts a session: it reads how far the buckets are.
func (r *Runner) newSession(ctx, background context.Context) (*session, error) {
	s := &session{
		Runner: r, background: background, cache: newCache(r.cfg.CacheBytes), tombs: map[documents.Place]uint64{},
		deleted: map[string]uint64{}, gone: map[string]bool{}, whole: map[string]bool{}, nextTick: r.cfg.Now(),
	}
	r.cleaner.Reset()
	// Take the fences first: writes of another runner after this are detected.
	for i, p := range r.models.List() {
		bucket := r.log.Bucket(p.Bucket)
		sh := &shelf{Projection: p, prefix: bucket.Subject(""), pieces: map[string]bool{}}
		s.shelves[i] = sh
		var err error
		if sh.fence, err = derived.NewFence(ctx, r.log.Streams(), bucket.Stream()); err != nil {
			return nil, err
		}
		if sh.stream, err = r.log.JetStream().Stream(ctx, bucket.Stream()); err != nil {
			return nil, fmt.Errorf("the bucket of %s: %w", p.Name, err)
		}
	}
	had, err := buckets.ReadCheckpoints(ctx, r.log, r.models)
	if err != nil {
		return nil, err
	}
	most, epoch := uint64(0), uint64(0)
	for i, sh := range s.shelves {
		c := had[i]
		if c.At > sh.fence.Last() {
			// If these messages were lost in a power cut, the fence would still hold, but the
			// commits that the checkpoint counts as shown would never be.
			return nil, errOtherRunner
		}
		if sh.checkpoint, sh.newer = c.At, c.At+1; c.Checkpoint != nil {
			most, epoch = max(most, c.Seq), max(epoch, c.Epoch)
		}
	}
	if s.end, err = r.log.LastSeq(ctx); err != nil {
		return nil, err
	}
	if most > s.end {
		return nil, &AheadError{Checkpoint: most, Log: s.end}
	}
	whole := had.Whole()
	if s.epoch = epoch; !whole {
		s.epoch++
	}
	for i, sh := range s.shelves {
		s.place(sh, had[i].Checkpoint, most)
		if t := had[documents.Threads]; whole && had[i].Seq < t.Progress { // the bucket had nothing to write since
			sh.position, sh.broken, sh.brokenSeq, sh.newer = t.Progress, t.Broken, t.BrokenSeq, t.Ends[i]+1
		}
		sh.begun = sh.position
		if err := s.readNewer(ctx, sh); err != nil {
			return nil, err
		}
		s.at = max(s.at, sh.position)
		s.horizon = max(s.horizon, sh.position, sh.seen)
	}
	s.settle()
	s.resumeRemovals(had[documents.Threads])
	r.cfg.Progress.Set(s.progress())
	if err := s.storeIncarnation(ctx); err != nil {
		return nil, err
	}
	if err := s.storeFirstCheckpoints(ctx, had); err != nil {
		return nil, err
	}
	return s, s.resumeDeletions(ctx)
}

// errOtherRunner makes a runner start again.
var errOtherRunner = errors.New("another runner wrote to a bucket while this one started")

// storeFirstCheckpoints writes checkpoints of this epoch to the buckets that have none, before any
// document is written. Last it writes the checkpoint of threads, if that claims another progress
// than the buckets now have.
func (s *session) storeFirstCheckpoints(ctx context.Context, had *buckets.Checkpoints) error {
	which := documents.Mask(0)
	for i, c := range had {
		k := documents.Kind(i)
		if c.Checkpoint == nil || c.Epoch != s.epoch || k == documents.Threads && c.Progress != s.progress() {
			which = which.With(k)
		}
	}
	threads := documents.Mask(0).With(documents.Threads)
	if err := s.storeCheckpoints(ctx, which&^threads); err != nil {
		return err
	}
	return s.storeCheckpoints(ctx, which&threads)
}

// AheadError means that the read models show commits that the log does not have: the log is a
// different one, or an older copy.
type AheadError struct {
	Checkpoint, Log uint64
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("the read models show the log up to %d, and it ends at %d: it is another log; remove the buckets, and they are filled from it",
		e.Checkpoint, e.Log)
}

// place sets where a bucket continues. If a bucket has no checkpoint and others have one, it is
// new or its documents were lost: it continues with the others, and is filled from the log
// meanwhile.
func (s *session) place(sh *shelf, c *buckets.Checkpoint, most uint64) {
	switch {
	case c != nil:
		sh.position, sh.stored, sh.version = c.Seq, c.Seq, c.Version
		sh.broken, sh.brokenSeq = c.Broken, c.BrokenSeq
		if c.Newer > 0 {
			sh.newer = c.Newer
		}
		if c.Version == 0 { // the bucket started without a checkpoint, and is not filled yet
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
}

// settle marks the read models that this process has rebuilt as complete.
func (s *session) settle() {
	done := s.rebuilt()
	s.stale, s.incomplete = s.stale&^done, s.incomplete&^done
	for _, sh := range s.shelves {
		if done.Has(sh.Kind) {
			sh.version = sh.Projection.Version
		}
	}
}

// readNewer reads the messages of a bucket that may be newer than its checkpoint, to find the
// newest commit shown and the removed documents.
func (s *session) readNewer(ctx context.Context, sh *shelf) error {
	end := sh.fence.Last()
	if sh.newer > end {
		return nil
	}
	from, at := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: sh.newer}, sh.newer
	for m, err := range s.log.Streams().List(ctx, s.log.Bucket(sh.Bucket).Stream(), from) {
		if err != nil {
			return fmt.Errorf("reading the bucket of %s: %w", sh.Name, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("reading the bucket of %s: %w", sh.Name, err)
		}
		if p, ok := documents.ParsePlace(sh.Kind, strings.TrimPrefix(m.Subject(), sh.prefix)); ok {
			seq, removed := buckets.ShownSeq(m.Headers(), m.Data())
			if removed {
				s.tombs[p] = seq
			}
			sh.seen = max(sh.seen, seq)
		}
		if at = meta.Sequence.Stream + 1; at > end {
			return nil
		}
	}
	return s.nothingFrom(ctx, sh, at)
}

// nothingFrom checks that a bucket has no messages from a sequence on. A consumer that finds none
// is not enough, because on a cluster its replica may lag.
func (s *session) nothingFrom(ctx context.Context, sh *shelf, from uint64) error {
	more, err := s.log.Bucket(sh.Bucket).Has(ctx, from)
	if err == nil && more {
		err = errors.New("the replica that was read lags behind")
	}
	if err != nil {
		return fmt.Errorf("reading the bucket of %s: %w", sh.Name, err)
	}
	return nil
}
