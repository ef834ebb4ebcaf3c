package projections

import (
	"context"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// A thread is archived only after the runner has folded it: see package archive. A runner that has
// to start from an earlier sequence, because writes were lost or a read model is new, finds a
// record instead of the archived commits, and folds these from the archive.

// isRecord reports whether a commit is the record of an archive.
func isRecord(c *events.Commit) bool {
	_, ok := eventlog.Record(c)
	return ok
}

// foldArchived folds the archived commits before a record that were not folded yet. There are such
// commits only if the record existed when the session started.
func (s *session) foldArchived(ctx context.Context, b *batch, record *events.Commit) error {
	d, _ := eventlog.Record(record)
	first := s.end
	for _, sh := range s.shelves {
		first = min(first, sh.begun)
	}
	name := documents.ThreadName(record.Tenant, record.Thread)
	if _, deleted := s.deleted[name]; deleted || record.Seq > s.end || uint64(d.LastSeq) <= first || uint64(d.LastSeq) >= record.Seq {
		return nil
	}
	n := s.cache.node(documents.Place{Kind: documents.Threads, Thread: name})
	if doc, ok := n.slot.Doc.(*events.Thread); ok && s.shelves[documents.Threads].begun < uint64(d.LastSeq) {
		if doc.Version == record.First() {
			return nil
		}
		first = max(first, n.slot.Seq)
	}
	for c, err := range s.log.Thread(ctx, record.Tenant, record.Thread, first+1) {
		if err != nil {
			return err
		}
		if c.Seq >= record.Seq {
			break
		}
		if err := s.load(ctx, []*events.Commit{c}, s.lacking); err != nil {
			return err
		}
		s.foldCommit(c, s.lacking(c.Seq))
		b.folded += c.Whole()
	}
	return nil
}

// lacking returns the read models that did not show a commit when the session started.
func (s *session) lacking(seq uint64) documents.Mask {
	var m documents.Mask
	for _, sh := range s.shelves {
		if seq > sh.begun {
			m = m.With(sh.Kind)
		}
	}
	return m
}
