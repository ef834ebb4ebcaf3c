package query

import (
	"context"
	"strings"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// inheriting is a source that also finds inherited items, most of which have no document of their
// own. It is used for one query.
type inheriting struct {
	source

	pages *eventlog.Pages
	index map[documents.Place]any // the documents of the index that derived documents depend on; nil if one does not exist
}

func (q *Queries) inheriting(s source) *inheriting {
	return &inheriting{source: s, pages: q.pages, index: map[documents.Place]any{}}
}

func (s *inheriting) get(ctx context.Context, places ...documents.Place) ([]found, error) {
	out, err := s.source.get(ctx, places...)
	if err != nil {
		return nil, err
	}
	var needs []documents.Place
	for i := range out {
		if out[i].doc == nil {
			needs = append(needs, out[i].place.Derived()...)
		}
	}
	if err := s.read(ctx, needs); err != nil {
		return nil, err
	}
	for i := range out {
		if f := &out[i]; f.doc == nil {
			if err := s.derive(ctx, f); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// read reads the documents of the index that were not read yet, all at once.
func (s *inheriting) read(ctx context.Context, places []documents.Place) error {
	unread := places[:0]
	for _, p := range places {
		if _, known := s.index[p]; !known {
			s.index[p] = nil
			unread = append(unread, p)
		}
	}
	if len(unread) == 0 {
		return nil
	}
	got, err := s.source.get(ctx, unread...)
	for _, f := range got {
		s.index[f.place] = f.doc
	}
	return err
}

// find also finds an inherited item by its id. Other patterns only match stored documents.
func (s *inheriting) find(ctx context.Context, k documents.Kind, pattern string) ([]found, error) {
	out, err := s.source.find(ctx, k, pattern)
	dot := strings.LastIndexByte(pattern, '.')
	refused := events.HasCode(err, events.InvalidRequest) // too many cold threads may have it
	if err != nil && !refused || len(out) > 0 || k != documents.Items || dot < 0 {
		return out, err
	}
	id := pattern[dot+1:]
	prefix, _, ok := events.CutInherited(id)
	if !ok {
		return nil, err
	}
	records, err := s.source.find(ctx, documents.Index, pattern[:dot+1]+prefix)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		got, err := s.get(ctx, documents.Place{Kind: k, Thread: r.place.Thread, ID: id})
		if err != nil {
			return nil, err
		}
		if got[0].doc != nil {
			out = append(out, got[0])
		}
	}
	return out, nil
}

// derive sets a document that can be derived from what the thread has inherited.
func (s *inheriting) derive(ctx context.Context, f *found) error {
	doc, seq, err := documents.Derive(f.place, func(p documents.Place) (any, error) { return s.lookup(ctx, p) }, s.pages.In(ctx))
	if err != nil || doc == nil {
		return err
	}
	if item, ok := doc.(*events.Item); ok {
		page, err := s.lookup(ctx, documents.Place{Kind: documents.Index, Thread: f.place.Thread, ID: documents.PageID(item.Index / documents.PageSize)})
		if err != nil {
			return err
		}
		if page, ok := page.(*documents.Page); ok {
			if e := page.Find(item.Index); e == nil || e.Hidden != 0 {
				return nil
			}
		}
	}
	raw, err := documents.Encode(doc)
	f.doc, f.seq, f.bytes = doc, seq, len(raw)
	return err
}

// lookup returns a document of the index as the underlying source has it.
func (s *inheriting) lookup(ctx context.Context, p documents.Place) (any, error) {
	err := s.read(ctx, []documents.Place{p})
	return s.index[p], err
}
