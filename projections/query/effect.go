package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// effectsUsual is the default number of a tenant's effects on a page.
const effectsUsual = 50

// listEffects returns the pending effects, the earliest due first. An empty list is no error. For
// one thread the index lists them. For a tenant all effects are read, and only those of the page
// are kept in memory.
func listEffects(a *asking, d events.ListEffects) (*events.EffectList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	w := &effectWindow{most: limit(d.Limit, effectsUsual), room: a.answerBytes()}
	if d.ThreadID != "" {
		w.most = limit(d.Limit, events.MaxEffects)
	}
	query := mark("effect.list", a.tenant, a.thread, d.Name, string(d.Only))
	if err := w.start(d.Cursor, query); err != nil {
		return nil, err
	}
	now := a.cfg.Now()
	see := func(f found) {
		if e := f.doc.(*events.ScheduledEffect); e.Pending() && (d.Name == "" || e.Name == d.Name) && inView(e, d.Only, now) {
			w.add(f)
		}
	}
	if d.ThreadID == "" {
		if err := a.eachOfTenant(documents.Effects, see); err != nil {
			return nil, err
		}
		return w.page(query), nil
	}
	if _, err := a.threadOfIndex(d.ThreadID); err != nil {
		return nil, err
	}
	pages, err := a.indexed(documents.EffectIDs())
	if err != nil {
		return nil, err
	}
	for _, p := range pages {
		for i := range p.Effects {
			e := p.Effects[i].Effect(a.thread)
			see(found{place: a.place(documents.Effects, e.ID), doc: e})
		}
	}
	if err := a.fill(w); err != nil {
		return nil, err
	}
	return w.page(query), nil
}

// fill replaces the index entries on a page with the effects' documents.
func (a *asking) fill(w *effectWindow) error {
	w.cut()
	brief := w.kept
	if w.kept = nil; w.more {
		w.last = effectOf(brief[len(brief)-1])
	}
	for len(brief) > 0 {
		part := brief[:min(len(brief), documentsAtOnce)]
		brief = brief[len(part):]
		places := make([]documents.Place, len(part))
		for i := range part {
			places[i] = part[i].place
		}
		got, err := a.source.get(a.ctx, places...)
		if err != nil {
			return err
		}
		for _, f := range got {
			if f.doc != nil { // the effect has not ended meanwhile
				w.kept = append(w.kept, f)
			}
		}
	}
	return nil
}

// inView reports whether an effect belongs to a view of a list.
func inView(e *events.ScheduledEffect, view events.EffectView, now time.Time) bool {
	switch view {
	case events.EffectsLate:
		return e.Late(now)
	case events.EffectsRepeating:
		return e.Repeated()
	case events.EffectsFailing:
		return e.ErrorText != ""
	}
	return true
}

// eachOfTenant calls see with every document of a kind that the tenant has, in the order of their
// bucket. A document that is written meanwhile may be seen twice, its later state last.
func (a *asking) eachOfTenant(k documents.Kind, see func(found)) error {
	const page = 500
	source := &live{q: a.Queries}
	for from := uint64(1); ; {
		got, err := a.log.Bucket(a.models.Of(k).Bucket).Range(a.ctx, a.tenant+".*.*", from, page)
		if err != nil {
			return fmt.Errorf("reading documents: %w", err)
		}
		docs := make([]found, 0, len(got))
		for _, m := range got {
			from = m.Seq + 1
			place, ok := documents.ParsePlace(k, m.Subject)
			if !ok {
				continue
			}
			f := found{place: place}
			if err := source.read(a.ctx, &f, m); err != nil {
				return err
			}
			docs = append(docs, f)
		}
		if err := source.hideDeleted(a.ctx, docs); err != nil {
			return err
		}
		for _, f := range docs {
			if f.doc != nil {
				see(f)
			}
		}
		if len(got) < page {
			return nil
		}
	}
}

// effectWindow keeps the first effects of a list that arrives unordered.
type effectWindow struct {
	most, room int // how many, and how many bytes, a page may have
	after      *events.ScheduledEffect

	kept  []found
	last  *events.ScheduledEffect // the last effect of the page, if not the last of kept
	bytes int                     // of kept
	more  bool                    // more effects follow the kept ones
}

// start reads the cursor: the last effect of the page before.
func (w *effectWindow) start(cursor string, query uint64) error {
	if cursor == "" {
		return nil
	}
	place, rest, _ := strings.Cut(cursor, ".")
	due, err := decodeCursor(place, query)
	if err != nil {
		return err
	}
	thread, id, ok := strings.Cut(rest, ".")
	if !ok {
		return events.Invalid("/cursor", "this is not a cursor; use nextCursor as it came")
	}
	w.after = &events.ScheduledEffect{ScheduledAt: int64(due), ThreadID: thread, ID: id}
	return nil
}

func (w *effectWindow) add(f found) {
	if w.after != nil && byDue(w.after, effectOf(f)) >= 0 {
		return
	}
	w.kept = append(w.kept, f)
	if w.bytes += f.bytes + 1; len(w.kept) > 2*w.most+64 || w.bytes > 2*w.room {
		w.cut()
	}
}

// cut sorts the kept effects, and drops those beyond the page.
func (w *effectWindow) cut() {
	slices.SortStableFunc(w.kept, func(a, b found) int { return cmp.Compare(b.seq, a.seq) })
	seen := make(map[string]bool, len(w.kept))
	w.kept = slices.DeleteFunc(w.kept, func(f found) bool { // an effect that was written meanwhile: its latest state counts
		key := f.place.Key()
		again := seen[key]
		seen[key] = true
		return again
	})
	slices.SortFunc(w.kept, func(a, b found) int { return byDue(effectOf(a), effectOf(b)) })
	w.bytes = 0
	for i, f := range w.kept {
		if i == w.most || i > 0 && w.bytes+f.bytes+1 > w.room {
			clear(w.kept[i:])
			w.kept, w.more = w.kept[:i], true
			return
		}
		w.bytes += f.bytes + 1
	}
}

// page returns the effects of the page.
func (w *effectWindow) page(query uint64) *events.EffectList {
	w.cut()
	list := &events.EffectList{Effects: make([]events.ScheduledEffect, len(w.kept))}
	for i, f := range w.kept {
		list.Effects[i] = *effectOf(f)
	}
	if w.more {
		last := w.last
		if n := len(w.kept); n > 0 {
			last = effectOf(w.kept[n-1])
		}
		list.NextCursor = encodeCursor(query, uint64(last.ScheduledAt)) + "." + last.ThreadID + "." + last.ID
	}
	return list
}

func effectOf(f found) *events.ScheduledEffect { return f.doc.(*events.ScheduledEffect) }

// byDue orders effects, the earliest due first.
func byDue(a, b *events.ScheduledEffect) int {
	return cmp.Or(cmp.Compare(a.ScheduledAt, b.ScheduledAt), cmp.Compare(a.ThreadID, b.ThreadID), cmp.Compare(a.ID, b.ID))
}

// getState reads the log rather than a read model, because a visitor's next request must see what
// the last one wrote, whatever process it reaches.
func getState(a *asking, d events.GetState) (*events.StateValues, error) {
	if err := a.awaitSeq(d.MinSeq, true); err != nil {
		return nil, err
	}
	a.source = a.inheriting(&live{q: a.Queries})
	if err := a.resolve(d.ThreadID); err != nil {
		return nil, err
	}
	v, err := a.cfg.States.Values(a.ctx, a.tenant, a.thread, d)
	if err != nil {
		return nil, err
	}
	if d.At == nil && d.MinVersion != nil && v.Version < *d.MinVersion {
		return nil, a.behind("the log has the thread at version %d, not yet %d", v.Version, *d.MinVersion)
	}
	return v, nil
}
