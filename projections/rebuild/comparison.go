package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// compared is a live document and the log's version of it.
type compared struct {
	live    *streams.Message // nil: there is none
	liveSeq uint64
	done    bool
	verdict string // a kind of difference; empty: it is right
}

// comparison compares the documents of one thread with its log, which is read after them
// and folded once: a document that bears the sequence s is compared when the fold
// is at s, or, if s is no newer than what its read model certainly shows, when the
// fold is there.
type comparison struct {
	*rebuilding
	name   threadName
	docs   map[documents.Place]*compared
	newer  map[uint64][]documents.Place // by their sequences, the documents that are newer than what their read model certainly shows
	memory *documents.Memory
	upTo   [documents.Kinds]uint64 // the sequence that each live read model certainly shows
	passed documents.Mask          // read models whose certain sequence the fold has passed
	absent documents.Mask          // read models whose documents may be absent: the thread is cold

	orphans []correction // of pieces to remove, which no document names
}

// thread compares one thread of a group, and repairs it.
func (b *rebuilding) thread(ctx context.Context, name threadName, g *group) error {
	t, err := b.compareThread(ctx, name, g)
	if err == nil && !b.repair && t.has(Extra) {
		t, err = b.compareDeleted(ctx, t)
	}
	if err == nil && !b.repair && t.has(Missing) { // it may have become cold while its documents were read
		t, err = b.compareAlone(ctx, name)
	}
	if err != nil {
		return err
	}
	threads := int64(1)
	if !events.IsThread(name.thread) {
		threads = 0
	}
	b.count(threads, int64(len(t.docs)), int64(t.memory.Broken), 0)
	for p, j := range t.docs {
		if j.verdict == "" {
			continue
		}
		model := b.models.Of(p.Kind)
		d := Difference{Projection: model.Name, Bucket: model.Bucket, Key: p.Key(), Kind: j.verdict, LiveSeq: j.liveSeq}
		if slot := t.memory.Slot(p); slot.Doc != nil {
			d.LogSeq = slot.Seq
		}
		b.note(d)
	}
	if !b.repair {
		return nil
	}
	return b.correct(ctx, t)
}

// has reports whether a document has a verdict.
func (t *comparison) has(verdict string) bool {
	for _, j := range t.docs {
		if j.verdict == verdict {
			return true
		}
	}
	return false
}

// compareDeleted compares a thread again that has documents which it should not have.
// The runner removes those of a deleted thread after its checkpoint: while there is a
// note of the deletion, they are about to be removed, and by now they may be gone.
func (b *rebuilding) compareDeleted(ctx context.Context, t *comparison) (*comparison, error) {
	note := buckets.Deletion{Tenant: t.name.tenant, Thread: t.name.thread}.Key()
	_, pending, err := b.log.Bucket(b.models.Of(documents.Threads).Bucket).Newest(ctx, note)
	if err != nil {
		return nil, fmt.Errorf("the note of the deletion of %s: %w", t.name, err)
	}
	if !pending {
		return b.compareAlone(ctx, t.name)
	}
	last, err := b.log.Last(ctx, t.name.tenant, t.name.thread)
	if err != nil || last == nil || !buckets.Deletes(last) {
		return t, err
	}
	for _, j := range t.docs {
		if j.verdict == Extra {
			j.verdict = ""
		}
	}
	return t, nil
}

// correct adds the writes that correct the thread's documents.
func (b *rebuilding) correct(ctx context.Context, t *comparison) error {
	list, err := t.corrections()
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := b.writer.add(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// corrections returns the writes that correct the thread's documents.
func (t *comparison) corrections() ([]correction, error) {
	list := t.orphans
	for p, j := range t.docs {
		if j.verdict == "" && !t.renews(p, j) {
			continue
		}
		c := correction{bucket: t.models.Of(p.Kind).Bucket, key: p.Key(), kind: p.Kind, thread: t.name, seq: t.memory.Seq}
		if j.live != nil {
			c.expected = j.live.Seq
		}
		if p.Kind == documents.Threads {
			c.mark = t.mark(j)
		}
		if slot := t.memory.Slot(p); slot.Doc != nil {
			raw, err := documents.Encode(slot.Doc)
			if err != nil {
				return nil, fmt.Errorf("encoding %s: %w", p.Key(), err)
			}
			c.doc = raw
			if large := buckets.StubOf(p.Kind, slot.Seq, raw, t.log.MaxPayload()); large != nil {
				if c.doc, err = large.Encode(); err != nil {
					return nil, fmt.Errorf("encoding %s: %w", p.Key(), err)
				}
				c.large = large
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// mark returns the mark that the corrected document of the thread has: the one that it had. If
// there was no document, nobody knows whether the thread was cold. It is, unless all of its
// documents are compared, and so written.
func (t *comparison) mark(j *compared) buckets.Mark {
	switch {
	case j.live != nil:
		return buckets.MarkOf(j.live.Header)
	case t.kinds&documents.ColdKinds != documents.ColdKinds:
		return buckets.Mark{Cold: true, Bare: true}
	}
	return buckets.Mark{}
}

// compareAlone reads the live documents of a thread, folds its log, and compares.
func (b *rebuilding) compareAlone(ctx context.Context, name threadName) (*comparison, error) {
	g, err := b.readGroup(ctx, name)
	if err != nil {
		return nil, err
	}
	return b.compareThread(ctx, name, g)
}

// compareThread folds the log of a thread of a group, and compares.
func (b *rebuilding) compareThread(ctx context.Context, name threadName, g *group) (*comparison, error) {
	t := &comparison{rebuilding: b, name: name, upTo: g.upTo, docs: map[documents.Place]*compared{}, newer: map[uint64][]documents.Place{}, memory: b.models.NewMemory(b.pages.In(ctx))}
	if g.cold[name] {
		t.absent = documents.ColdKinds
	}
	for _, p := range b.models.List() {
		if b.kinds.Has(p.Kind) {
			t.addLive(ctx, p, g.docs[name][p.Kind])
		}
	}
	for c, err := range b.log.Thread(ctx, name.tenant, name.thread, 1) {
		var broken *events.BrokenError
		var archive *eventlog.ArchiveError
		switch {
		case errors.As(err, &broken):
			t.memory.Broken++
			continue
		case errors.As(err, &archive): // the right documents are unknown
			t.memory.Broken++
			clear(t.docs)
			return t, nil
		case err != nil:
			return nil, err
		}
		t.pass(c.Seq - 1)
		if err := t.memory.Apply(c); err != nil {
			return nil, err
		}
		t.compareAt(c.Seq)
	}
	t.pass(^uint64(0))
	t.finish()
	return t, nil
}

// addLive adds the live documents of one read model.
func (t *comparison) addLive(ctx context.Context, p documents.Projection, got []streams.Message) {
	pieces, named := map[string]streams.Message{}, map[string]bool{}
	for i := range got {
		if _, ok := documents.ParsePiece(got[i].Subject); ok {
			pieces[got[i].Subject] = got[i]
		}
	}
	for i := range got {
		place, ok := documents.ParsePlace(p.Kind, got[i].Subject)
		if !ok {
			continue
		}
		raw, err := buckets.Whole(ctx, place, got[i], func(_ context.Context, keys ...string) ([]streams.Message, error) {
			var some []streams.Message
			for _, k := range keys {
				if m, ok := pieces[k]; ok {
					some = append(some, m)
					named[k] = true
				}
			}
			return some, nil
		})
		if err == nil { // else its stub is compared, which is not what the log says
			got[i].Data = raw
		}
		seq, _ := buckets.ShownSeq(got[i].Header, got[i].Data)
		t.docs[place] = &compared{live: &got[i], liveSeq: seq}
		if seq > t.upTo[p.Kind] {
			t.newer[seq] = append(t.newer[seq], place)
		}
	}
	for key, m := range pieces {
		if !named[key] && m.Seq <= t.rewrite[p.Kind] { // of a document that has changed since
			t.orphans = append(t.orphans, correction{bucket: p.Bucket, key: key, kind: p.Kind, expected: m.Seq, thread: t.name, piece: true})
		}
	}
}

// pass compares the read models whose certain sequence is before what is folded
// next: the documents that the log says there are, and those that are no
// newer than that.
func (t *comparison) pass(upTo uint64) {
	for k := range t.upTo {
		kind := documents.Kind(k)
		if !t.kinds.Has(kind) || t.passed.Has(kind) || t.upTo[k] > upTo {
			continue
		}
		t.passed = t.passed.With(kind)
		for _, slot := range t.memory.All(documents.Mask(0).With(kind)) {
			if t.docs[slot.Place] == nil && !t.absent.Has(kind) {
				t.docs[slot.Place] = &compared{verdict: Missing}
			}
		}
		for p, j := range t.docs {
			if p.Kind == kind && j.live != nil && j.liveSeq <= t.upTo[k] {
				t.compareDocument(p, j)
			}
		}
	}
}

// compareAt compares the documents that bear exactly the sequence at which the fold
// is, and are newer than what their read model certainly shows.
func (t *comparison) compareAt(seq uint64) {
	for _, p := range t.newer[seq] {
		if j := t.docs[p]; j != nil && j.liveSeq == seq && !j.done {
			t.compareDocument(p, j)
		}
	}
}

// compareDocument compares a live document with the fold as it is now.
func (t *comparison) compareDocument(p documents.Place, j *compared) {
	j.done = true
	slot := t.memory.Slot(p)
	if slot.Doc == nil {
		j.verdict = Extra
		return
	}
	if raw, err := documents.Encode(slot.Doc); err != nil || slot.Seq != j.liveSeq || string(raw) != string(j.live.Data) {
		j.verdict = Different
	}
}

// finish decides what is left: a document that is missing is missing only if it
// was not removed meanwhile, and one that bears a sequence which is none of the
// thread's was not made by a runner.
func (t *comparison) finish() {
	for p, j := range t.docs {
		slot := t.memory.Slot(p)
		switch {
		case j.live == nil && slot.Doc == nil:
			j.verdict = ""
		case j.live != nil && !j.done && slot.Doc == nil:
			j.verdict = Extra
		case j.live != nil && !j.done:
			j.verdict = Different
		}
	}
}
