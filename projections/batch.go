package projections

import (
	"context"
	"errors"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/cleanup"
	"github.com/skein-threads/skein/projections/documents"
)

// batch is a range of the log that is stored together, so that a document that changes repeatedly
// is written once. It is folded in parts, as commits arrive.
type batch struct {
	commits []*events.Commit // of threads and tenants, not folded yet
	broken  []uint64         // the same
	part    int              // the number of entries in the part
	bytes   int              // the bytes of the part
	folded  int              // bytes folded so far
	count   int              // entries of all parts
	end     uint64           // the sequence of the last entry, of any kind
	endTime time.Time        // when the log stored it
	oldest  time.Time        // when the log stored the first
	thread  string           // of the first commit, with its tenant
	several bool             // it has commits of several threads
	start   time.Time        // when storing it started
}

// errTick means that no commit arrived for a while.
var errTick = errors.New("no commit arrived")

// Bounds of a part. It is folded when it reaches one of them, or when no commit waits.
const (
	partCommits = 512
	partBytes   = 4 << 20
)

// gather waits for a commit, and folds it and those that follow until the batch is due.
// It returns nil if no commit arrived until the next tick.
func (s *session) gather(ctx context.Context, tail *eventlog.Tail) (*batch, error) {
	wait, cancel := context.WithDeadlineCause(ctx, time.Now().Add(s.nextTick.Sub(s.cfg.Now())), errTick)
	defer cancel()
	if err := s.purgeRest(ctx, func() bool { return tail.Waiting() > 0 }); err != nil {
		return nil, err
	}
	e, err := tail.Next(wait)
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, errTick) {
			return nil, nil
		}
		return nil, err
	}
	wanted := false
	if tail.Waiting() == 0 {
		wanted = s.linger(ctx)
	}
	b := &batch{oldest: e.Time}
	b.add(e)
	for begun := time.Now(); ; {
		for tail.Waiting() > 0 && !s.full(b) && b.part < partCommits && b.bytes < partBytes {
			if e, err = tail.Next(ctx); err != nil {
				return nil, err
			}
			b.add(e)
		}
		if err := s.fold(ctx, b); err != nil {
			return nil, err
		}
		more := tail.Waiting() > 0 && !s.full(b)
		switch {
		case wanted, s.full(b), s.due(b) && (!more || time.Since(begun) >= s.cfg.BatchTime):
			b.start = s.cfg.Now()
			return b, ctx.Err()
		case more:
		default:
			if err := s.purgeNext(ctx); err != nil {
				return nil, err
			}
			wanted = s.breathe(ctx)
		}
	}
}

// full reports whether a batch must not grow.
func (s *session) full(b *batch) bool {
	return b.count >= s.cfg.BatchCommits || b.folded+b.bytes >= s.cfg.BatchBytes
}

// add adds an entry of the log.
func (b *batch) add(e eventlog.Entry) {
	b.count++
	b.part++
	b.end, b.endTime = e.Seq, e.Time
	switch {
	case e.Commit == nil:
		b.broken = append(b.broken, e.Seq)
	case documents.Folds(e.Commit.Thread):
		b.commits = append(b.commits, e.Commit)
		b.bytes += e.Commit.Whole()
		name := documents.ThreadName(e.Commit.Tenant, e.Commit.Thread)
		if b.thread == "" {
			b.thread = name
		}
		b.several = b.several || name != b.thread
	}
}

// fold folds the part of a batch that is not folded yet, in memory.
func (s *session) fold(ctx context.Context, b *batch) error {
	for rest := b.commits; len(rest) > 0; {
		n := 0
		for n < len(rest) && !documents.Deep(rest[n]) && !isRecord(rest[n]) {
			if n++; documents.Inherits(rest[n-1]) {
				break // later commits may concern an inherited item that is derived from this one
			}
		}
		part := rest[:max(n, 1)]
		if err := s.load(ctx, part, s.activeAt); err != nil {
			return err
		}
		b.folded, s.thawedBytes = b.folded+s.thawedBytes, 0
		if isRecord(part[0]) {
			if err := s.foldArchived(ctx, b, part[0]); err != nil {
				return err
			}
		}
		for _, c := range part {
			s.foldCommit(c, s.activeAt(c.Seq))
		}
		rest = rest[len(part):]
	}
	for _, seq := range b.broken {
		for _, sh := range s.shelves {
			if seq > sh.position {
				sh.broken, sh.brokenSeq = sh.broken+1, seq
			}
		}
		s.metrics.Broken(seq)
	}
	clear(b.commits)
	b.folded += b.bytes
	b.commits, b.broken, b.part, b.bytes = b.commits[:0], b.broken[:0], 0, 0
	return nil
}

// foldCommit folds a commit into the documents in memory.
func (s *session) foldCommit(c *events.Commit, active documents.Mask) {
	name := documents.ThreadName(c.Tenant, c.Thread)
	if end, ok := s.deleted[name]; ok && c.Seq < end {
		return
	}
	active = s.activeFor(c, active)
	if n, ok := s.cache.nodes[documents.Place{Kind: documents.Threads, Thread: name}]; ok && n.mark.Cold {
		active &^= documents.ColdKinds // they can be folded from its log
	}
	if active == 0 {
		return
	}
	clear(s.changed)
	out := s.models.Apply(c, s.cache, active, s.changed)
	s.changed = out.Changed
	for _, slot := range out.Changed {
		n := slot.Owner.(*node)
		n.known = true
		if !n.dirty {
			n.dirty = true
			s.dirty = append(s.dirty, n)
		}
	}
	for _, slot := range out.Missed {
		// A concurrent repair of this document may lack this commit. Writing the checkpoint
		// detects another writer in between, and ends the assumption that the document is absent.
		s.missed = append(s.missed, slot.Place)
		s.shelves[slot.Place.Kind].touched = true
	}
	for _, w := range cleanup.WorkersOf(c) {
		s.cleaner.Note(w)
		s.created = append(s.created, w)
	}
	if out.Deleted != nil {
		s.deletions = append(s.deletions, *out.Deleted)
		s.gone[name] = true
	}
	if out.Err != nil {
		s.metrics.Broken(c.Seq)
		s.logger.Error().Err(out.Err).Uint64("seq", c.Seq).Msg("an event cannot be folded and was skipped")
	}
}
