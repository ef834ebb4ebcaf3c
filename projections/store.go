package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// store writes the documents that a batch has changed, each once, and then the progress of the
// read models.
func (s *session) store(ctx context.Context, b *batch) error {
	written, err := s.writeDocuments(ctx)
	if err != nil {
		return err
	}
	s.at, s.atTime = b.end, b.endTime
	if b.end > s.horizon {
		s.horizon = 0 // from here on all read models advance together
		clear(s.deleted)
		clear(s.tombs)
		clear(s.whole)
	}
	for _, sh := range s.shelves {
		sh.position = max(sh.position, b.end)
	}
	touched := documents.Mask(0)
	for _, sh := range s.shelves {
		if sh.touched {
			touched = touched.With(sh.Kind)
			sh.touched = false
		}
	}
	if len(s.deletions) > 0 {
		// Write the notes first, so that no crash leaves a deletion unfinished. This runner must
		// also hold the fences of all other buckets before the purge, or a replaced runner could
		// write to them afterwards.
		if err := s.shelves[documents.Threads].fence.Flush(ctx); err != nil {
			return err
		}
		touched = documents.AllKinds
	}
	if err := s.storeCheckpoints(ctx, touched&^(1<<documents.Threads)); err != nil {
		return err
	}
	// The checkpoint of threads follows the notes of deleted threads, so every leftover document
	// has a note.
	if err := s.purgeDeleted(ctx); err != nil {
		return err
	}
	if err := s.storeCheckpoints(ctx, documents.Mask(0).With(documents.Threads)); err != nil {
		return err
	}
	for _, p := range s.missed {
		s.cache.forget(p)
	}
	clear(s.missed)
	s.missed = s.missed[:0]
	s.cache.trim()
	s.cfg.Progress.Raise(s.progress())
	s.metrics.Batch(b.count, written, s.cfg.Now().Sub(b.start).Seconds())
	return nil
}

// writeDocuments sends every changed document. A document is certainly stored once the later
// checkpoint of its bucket is.
func (s *session) writeDocuments(ctx context.Context) (written int, err error) {
	if s.thawed {
		if written, err = s.writeThawed(ctx); err != nil {
			return written, err
		}
	}
	if err := s.noteRemovals(ctx); err != nil {
		return written, err
	}
	for _, n := range s.dirty {
		n.dirty = false
		p := n.slot.Place
		if p.Kind != documents.Threads && s.gone[p.Thread] {
			s.cache.drop(n) // its thread was deleted: all its documents are purged
			continue
		}
		if err := s.writeDocument(ctx, n); err != nil {
			return written, err
		}
		written++
	}
	clear(s.dirty) // otherwise documents that the cache drops would stay in memory
	s.dirty = s.dirty[:0]
	return written, s.noteDeletions(ctx)
}

// writeDocument sends a document, or the marker of a removed document.
func (s *session) writeDocument(ctx context.Context, n *node) error {
	sh := s.shelves[n.slot.Place.Kind]
	subject := n.slot.Place.Under(sh.prefix)
	sh.touched = true
	if n.slot.Doc == nil {
		return sh.fence.Send(ctx, subject, buckets.Marker(n.slot.Seq), nil)
	}
	// The buffer can be reused: the fence only resends its last message, and this one replaces it.
	raw, err := s.models.Append(sh.buffer[:0], sh.Kind, n.slot.Doc)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", subject, err)
	}
	sh.buffer = raw
	s.cache.size(n, len(raw))
	if large := buckets.StubOf(sh.Kind, n.slot.Seq, raw, s.log.MaxPayload()); large != nil {
		return s.writeLarge(ctx, sh, n, large)
	}
	return sh.fence.Send(ctx, subject, n.mark.Header(), raw)
}

// writeLarge writes the pieces of a document, and then the stub that names them. It skips pieces
// that this session has written or read.
func (s *session) writeLarge(ctx context.Context, sh *shelf, n *node, large *buckets.Stub) error {
	p := n.slot.Place
	if large.Unstored { // only a stub that says so is stored, and the runner continues
		s.logger.Error().Str("bucket", sh.Bucket).Str("key", p.Key()).Int("bytes", large.Bytes).Msg("a document is too large and is not shown; its events are in the log")
		sh.broken, sh.brokenSeq = sh.broken+1, n.slot.Seq
		s.metrics.Broken(n.slot.Seq)
	}
	if len(sh.pieces) > knownPieces {
		clear(sh.pieces)
	}
	for _, piece := range large.Pieces() {
		key := documents.PieceKey(p.Thread, piece.Digest)
		if sh.pieces[key] {
			continue
		}
		if err := sh.fence.Send(ctx, sh.prefix+key, nil, piece.Data); err != nil {
			return err
		}
		sh.pieces[key] = true
	}
	raw, err := large.Encode()
	if err != nil {
		return fmt.Errorf("encoding the stub of %s: %w", p.Key(), err)
	}
	return sh.fence.Send(ctx, p.Under(sh.prefix), large.Header(), raw)
}

// knownPieces bounds how many stored pieces a session remembers.
const knownPieces = 100_000

// storeIncarnation writes a new incarnation to all buckets, once for each connection, because the
// server may have lost its newest writes before it.
func (s *session) storeIncarnation(ctx context.Context) error {
	at := s.connections()
	if s.marked == at {
		return nil
	}
	log, err := s.log.Incarnation(ctx)
	if err != nil {
		return err
	}
	mark := buckets.Incarnation{Incarnation: streams.NewIncarnation(), Log: log}.Encode()
	results := make(chan error, len(s.shelves))
	for _, sh := range s.shelves {
		go func() { results <- sh.fence.Final(ctx, sh.prefix+buckets.IncarnationKey, nil, mark) }()
	}
	var errs []error
	for range s.shelves {
		errs = append(errs, <-results)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.marked = at
	return nil
}

// storeCheckpoints writes the checkpoints of some buckets concurrently. It waits until they, and
// all earlier writes, are stored.
func (s *session) storeCheckpoints(ctx context.Context, which documents.Mask) error {
	results := make(chan error, documents.Kinds)
	asked := 0
	for _, sh := range s.shelves {
		if !which.Has(sh.Kind) {
			continue
		}
		c := buckets.Checkpoint{
			Projection: sh.Name, Version: sh.version, Seq: sh.position, Broken: sh.broken, BrokenSeq: sh.brokenSeq,
			Epoch: s.epoch,
		}
		if !s.atTime.IsZero() {
			c.At = events.TimeOf(s.atTime).ISO()
		}
		if sh.seen > sh.position {
			c.Newer = sh.newer
		}
		if sh.Kind == documents.Threads {
			c.Thaws, c.Removals, c.Progress = true, s.removals.noted, s.progress()
			c.Ends = s.checkpointSeqs()
		}
		asked++
		go func() { results <- sh.fence.Final(ctx, sh.prefix+buckets.CheckpointKey, nil, c.Encode()) }()
	}
	var errs []error
	for range asked {
		errs = append(errs, <-results)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, sh := range s.shelves {
		if which.Has(sh.Kind) {
			sh.stored, sh.checkpoint = sh.position, sh.fence.Last()
			if sh.Kind == documents.Threads {
				s.removals.own, s.removals.told = sh.checkpoint, s.removals.noted
			}
			if sh.version == sh.Projection.Version {
				s.forgetRenewed(sh.Kind)
			}
		}
	}
	return nil
}

// checkpointSeqs returns the sequences of the checkpoints in their buckets. It returns nil while a
// bucket shows more than its checkpoint says, or lacks documents.
func (s *session) checkpointSeqs() []uint64 {
	if s.incomplete != 0 {
		return nil
	}
	ends := make([]uint64, len(s.shelves))
	for i, sh := range s.shelves {
		if sh.seen > sh.position || sh.position != s.shelves[0].position {
			return nil
		}
		ends[i] = sh.checkpoint
	}
	ends[documents.Threads] = s.shelves[documents.Threads].fence.Last()
	return ends
}

// tick advances the checkpoints of buckets that had no write for a while.
func (s *session) tick(ctx context.Context) error {
	now := s.cfg.Now()
	if now.Before(s.nextTick) {
		return nil
	}
	s.nextTick = now.Add(s.cfg.CheckpointEvery)
	if s.stale != 0 { // notice the end of a rebuild soon
		s.nextTick = now.Add(min(s.cfg.CheckpointEvery, 50*time.Millisecond))
	}
	which := documents.Mask(0)
	for _, sh := range s.shelves {
		if s.rebuilt().Has(sh.Kind) && (s.stale | s.incomplete).Has(sh.Kind) {
			s.stale, s.incomplete = s.stale&^(1<<sh.Kind), s.incomplete&^(1<<sh.Kind)
			sh.version = sh.Projection.Version
			which = which.With(sh.Kind).With(documents.Threads)
		}
		if sh.stored < sh.position {
			which = which.With(sh.Kind)
		}
	}
	if err := s.settleRemovals(ctx); err != nil {
		return err
	}
	if s.removals.noted && !s.removals.told {
		which = which.With(documents.Threads)
	}
	if err := s.storeCheckpoints(ctx, which); err != nil {
		return err
	}
	s.cfg.Progress.Raise(s.progress())
	if s.stale != 0 {
		s.renew(s.background, s.stale)
	}
	return nil
}
