package projections

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// The buckets may only hold the own document of a cold thread, see [buckets.Mark]. A commit that
// changes only that document leaves the thread cold. For any other commit the runner thaws it: it
// folds the thread from its log, and writes all of its documents:
//
//	all documents of the thread, as of the commit
//	the thread's own document, without the mark, when those are stored
//
// If it stops in between, the mark is still there, and the next runner starts over. The own
// document then has the sequence of the commit that thawed the thread: if the server loses some of
// the documents, that commit is folded again, and writes them again.

// thawAll thaws the cold threads that need it for these commits, and reports whether there were
// any.
func (s *session) thawAll(ctx context.Context, commits []*events.Commit, active func(seq uint64) documents.Mask) (thawed bool, err error) {
	for _, c := range commits {
		n, ok := s.cache.nodes[documents.Place{Kind: documents.Threads, Thread: documents.ThreadName(c.Tenant, c.Thread)}]
		if !ok || !s.thaws(n, c, active(c.Seq)) {
			continue
		}
		if err := s.thaw(ctx, n, c); err != nil {
			return thawed, err
		}
		thawed = true
	}
	return thawed, nil
}

// thaws reports whether folding a commit into the read models in active needs documents that may
// be missing because the thread is cold.
func (s *session) thaws(n *node, c *events.Commit, active documents.Mask) bool {
	switch {
	case n.mark.Cold:
		return c.Seq > n.slot.Seq && s.models.Touches(c, documents.ColdKinds)
	case n.mark.Thawed == c.Seq && c.Seq <= s.horizon: // the documents that it wrote may be lost
		return active&documents.ColdKinds != 0 && !s.whole[n.slot.Place.Thread]
	}
	return false
}

// activeFor returns the read models into which a commit of a thread is folded. For a thawed thread
// these include read models that show the commit already, because the thawed documents in memory
// may not.
func (s *session) activeFor(c *events.Commit, active documents.Mask) documents.Mask {
	if len(s.whole) > 0 && s.whole[documents.ThreadName(c.Tenant, c.Thread)] {
		return active | documents.ColdKinds
	}
	return active
}

// thaw folds the documents of a thread up to before a commit, and marks all for writing, even if
// the buckets hold them: those may be about to be removed.
func (s *session) thaw(ctx context.Context, own *node, c *events.Commit) error {
	const kinds = documents.ColdKinds
	memory := s.models.NewMemory(s.pages.In(ctx))
	for before, err := range s.log.Thread(ctx, c.Tenant, c.Thread, 1) {
		var broken *events.BrokenError
		var archive *eventlog.ArchiveError
		switch {
		case errors.As(err, &broken):
			continue
		case errors.As(err, &archive): // the thread stays cold, and cannot be read until its archive is restored
			s.logger.Error().Err(err).Str("thread", own.slot.Place.Thread).Msg("a cold thread cannot be read and stays cold; restore its archive, and run skein replay")
			return nil
		case err != nil:
			return fmt.Errorf("bringing back %s: %w", own.slot.Place.Thread, err)
		}
		if before.Seq >= c.Seq {
			break
		}
		if err := memory.Apply(before); err != nil {
			return fmt.Errorf("bringing back %s: %w", own.slot.Place.Thread, err)
		}
		s.thawedBytes += before.Whole()
	}
	for _, sh := range s.shelves {
		maps.DeleteFunc(sh.pieces, func(key string, _ bool) bool {
			return strings.HasPrefix(key, documents.PieceKey(own.slot.Place.Thread, ""))
		})
	}
	var have [documents.Kinds][]*node
	slots := memory.All(kinds)
	nodes := make([]*node, len(slots))
	for i, slot := range slots {
		n := s.cache.node(slot.Place)
		nodes[i] = n
		if !n.dirty {
			n.dirty = true
			s.dirty = append(s.dirty, n)
		}
		if k := slot.Place.Kind; !n.known {
			n.known = true
			if c.Seq <= max(s.shelves[k].seen, s.shelves[k].position) { // the document in the bucket may be newer
				have[k] = append(have[k], n)
			}
		}
	}
	for k, list := range have {
		if err := s.readDocuments(ctx, s.shelves[k], list); err != nil {
			return err
		}
	}
	for i, slot := range slots {
		if n := nodes[i]; n.slot.Seq <= slot.Seq {
			n.slot.Doc, n.slot.Seq = slot.Doc, slot.Seq
		}
	}
	own.mark = buckets.Mark{Thawed: c.Seq}
	s.thawed = true
	if c.Seq <= s.horizon {
		s.whole[own.slot.Place.Thread] = true
	}
	return s.deriveFor(ctx, c)
}

// deriveFor derives the documents of inherited items that folding a commit needs. Before the thaw,
// the documents that they are derived from were missing.
func (s *session) deriveFor(ctx context.Context, c *events.Commit) error {
	var nodes []*node
	s.models.Needs(c, documents.ColdKinds, s.cache.cached, func(need documents.Need) {
		if n := s.cache.node(need.Place); n.known && n.slot.Doc == nil {
			nodes = append(nodes, n)
		}
	})
	return s.derive(ctx, nodes)
}

// writeThawed writes the changed documents of a batch, except threads' own documents, and waits
// until they are stored. So a reader that finds a thread without the mark finds all of its
// documents.
func (s *session) writeThawed(ctx context.Context) (written int, err error) {
	s.thawed = false
	for _, n := range s.dirty {
		if n.slot.Place.Kind == documents.Threads || s.gone[n.slot.Place.Thread] {
			continue
		}
		if err := s.writeDocument(ctx, n); err != nil {
			return written, err
		}
		written++
		n.dirty = false
	}
	rest := s.dirty[:0]
	for _, n := range s.dirty {
		if n.dirty {
			rest = append(rest, n)
		}
	}
	clear(s.dirty[len(rest):])
	s.dirty = rest
	for _, sh := range s.shelves {
		if documents.ColdKinds.Has(sh.Kind) {
			if err := sh.fence.Flush(ctx); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}
