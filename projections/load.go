package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// load reads the documents that the fold of these commits needs, for the read models that
// are active at their sequences.
func (s *session) load(ctx context.Context, commits []*events.Commit, active func(seq uint64) documents.Mask) error {
	if commits[0].Seq <= s.horizon {
		if err := s.findDeleted(ctx, commits); err != nil {
			return err
		}
	}
	for {
		var missing [documents.Kinds][]*node
		found := false
		for _, c := range commits {
			s.models.Needs(c, s.activeFor(c, active(c.Seq)), s.cache.cached, func(need documents.Need) {
				n := s.cache.node(need.Place)
				if n.known {
					return
				}
				n.known = true // an error below ends the session, so this holds
				k := need.Place.Kind
				if need.Made && c.Seq > max(s.shelves[k].seen, s.shelves[k].position) {
					return
				}
				missing[k] = append(missing[k], n)
				found = true
			})
		}
		for k, nodes := range missing {
			if err := s.readDocuments(ctx, s.shelves[k], nodes); err != nil {
				return err
			}
		}
		for _, k := range []documents.Kind{documents.Items, documents.Index} {
			if err := s.derive(ctx, missing[k]); err != nil {
				return err
			}
		}
		thawed, err := s.thawAll(ctx, commits, active)
		if err != nil {
			return err
		}
		if !found && !thawed || !documents.Deep(commits[0]) {
			return nil
		}
	}
}

// derive derives the documents of inherited items that the buckets do not have yet.
func (s *session) derive(ctx context.Context, nodes []*node) error {
	for _, n := range nodes {
		if n.slot.Doc != nil || n.slot.Seq != 0 {
			continue
		}
		doc, seq, err := documents.Derive(n.slot.Place, func(p documents.Place) (any, error) { return s.lookup(ctx, p) }, s.pages.In(ctx))
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			s.logger.Error().Err(err).Str("document", n.slot.Place.Key()).Msg("an inherited document cannot be made and is skipped; run skein replay")
			continue
		}
		n.slot.Doc, n.slot.Seq = doc, seq
	}
	return nil
}

// lookup returns a document, from its bucket if it is not in memory.
func (s *session) lookup(ctx context.Context, p documents.Place) (any, error) {
	n := s.cache.node(p)
	if !n.known {
		n.known = true
		if err := s.readDocuments(ctx, s.shelves[p.Kind], []*node{n}); err != nil {
			return nil, err
		}
	}
	return n.slot.Doc, nil
}

// readDocuments reads documents from their bucket.
func (s *session) readDocuments(ctx context.Context, sh *shelf, nodes []*node) error {
	byKey := make(map[string]*node, min(len(nodes), buckets.KeysAtOnce))
	for len(nodes) > 0 {
		part := nodes[:min(len(nodes), buckets.KeysAtOnce-1)]
		nodes = nodes[len(part):]
		clear(byKey)
		keys := make([]string, len(part))
		for i, n := range part {
			keys[i] = n.slot.Place.Key()
			byKey[keys[i]] = n
			if seq, ok := s.tombs[n.slot.Place]; ok {
				n.slot.Seq = seq
			}
		}
		// Reading the checkpoint, too, which always exists, shows how far the answering replica
		// is. A lagging replica could return outdated documents.
		got, err := s.log.Bucket(sh.Bucket).GetAt(ctx, sh.fence.Sent(), append(keys, buckets.CheckpointKey)...)
		if err != nil {
			return fmt.Errorf("reading documents of %s: %w", sh.Name, err)
		}
		for _, m := range got {
			n := byKey[m.Subject]
			if n == nil {
				continue
			}
			doc, seq, err := s.decode(ctx, sh, n.slot.Place, m)
			if err != nil && ctx.Err() != nil {
				return err
			}
			if err != nil {
				s.logger.Error().Err(err).Str("bucket", sh.Bucket).Str("key", m.Subject).
					Msg("a document cannot be read and is skipped; run skein replay")
				continue
			}
			n.slot.Doc, n.slot.Seq = doc, seq
			if sh.Kind == documents.Threads {
				n.mark = buckets.MarkOf(m.Header)
			}
			s.cache.size(n, len(m.Data))
		}
	}
	return nil
}

// decode decodes a document of a bucket, and reads its pieces if it has some.
func (s *session) decode(ctx context.Context, sh *shelf, p documents.Place, m streams.Message) (any, uint64, error) {
	raw, err := buckets.Whole(ctx, p, m, func(ctx context.Context, keys ...string) ([]streams.Message, error) {
		got, err := s.log.Bucket(sh.Bucket).GetAt(ctx, sh.fence.Sent(), append(keys, buckets.CheckpointKey)...)
		for _, piece := range got {
			if piece.Subject != buckets.CheckpointKey {
				sh.pieces[piece.Subject] = true
			}
		}
		return got, err
	})
	if err != nil {
		return nil, 0, err
	}
	return sh.Decode(raw)
}

// findDeleted finds, while catching up, the threads of these commits that were deleted later:
// their documents may be gone already, and must not reappear. If a thread's document should exist
// and does not, the thread was deleted or its first commit cannot be read. The log tells which.
func (s *session) findDeleted(ctx context.Context, commits []*events.Commit) error {
	var unknown []*node
	asked := map[string]bool{}
	var first []*events.Commit // the first commit of each thread to look up
	sh := s.shelves[documents.Threads]
	for _, c := range commits {
		if !events.IsThread(c.Thread) {
			continue
		}
		name := documents.ThreadName(c.Tenant, c.Thread)
		if _, ok := s.deleted[name]; ok || c.Seq > s.horizon || asked[name] {
			continue
		}
		asked[name] = true
		first = append(first, c)
		if n := s.cache.node(documents.Place{Kind: documents.Threads, Thread: name}); !n.known {
			n.known = true
			unknown = append(unknown, n)
		}
	}
	if err := s.readDocuments(ctx, sh, unknown); err != nil {
		return err
	}
	for _, c := range first {
		name := documents.ThreadName(c.Tenant, c.Thread)
		n := s.cache.node(documents.Place{Kind: documents.Threads, Thread: name})
		if n.slot.Doc != nil || n.slot.Seq == 0 && c.First() == 0 && c.Seq > max(sh.position, sh.seen) {
			continue
		}
		last, err := s.log.Last(ctx, c.Tenant, c.Thread)
		var broken *events.BrokenError
		switch {
		case errors.As(err, &broken), err == nil && last == nil:
			continue // an unreadable commit is no tombstone
		case err != nil:
			return fmt.Errorf("reading the last commit of %s: %w", name, err)
		}
		for i := range last.Events {
			if last.Events[i].Type == events.LifecycleDeletedType {
				s.deleted[name] = last.Seq
			}
		}
	}
	return nil
}
