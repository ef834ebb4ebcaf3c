package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// judged is a live document and what the log says of it.
type judged struct {
	live    *streams.Message // nil: there is none
	liveSeq uint64
	done    bool
	verdict string // a kind of difference; empty: it is as it should be
}

// trial judges the documents of one thread by its log, which is read after them and
// folded once: a document that bears the sequence s is compared when the fold
// stands at s, or, if s is no newer than what its read model shows for sure, when
// the fold stands there.
type trial struct {
	*rebuilding
	name   threadName
	docs   map[documents.Place]*judged
	memory *documents.Memory
	upTo   [documents.Kinds]uint64 // the sequence that each live read model shows for sure
	passed documents.Mask          // read models whose sure sequence the fold has passed

	orphans []correction // pieces that no document names, and that are to go
}

// thread judges one thread of a group, and repairs it.
func (b *rebuilding) thread(ctx context.Context, name threadName, g *group) error {
	t, err := b.try(ctx, name, g)
	if err == nil && !b.repair && t.has(Extra) {
		t, err = b.tryEnding(ctx, t)
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

// has reports whether some document has a verdict.
func (t *trial) has(verdict string) bool {
	for _, j := range t.docs {
		if j.verdict == verdict {
			return true
		}
	}
	return false
}

// tryEnding judges a thread again that has documents which it should not have. The
// runner removes those of an ended thread after its checkpoint: while there is a
// note of the end, they are about to go, and by now they may be gone.
func (b *rebuilding) tryEnding(ctx context.Context, t *trial) (*trial, error) {
	note := ending{Tenant: t.name.tenant, Thread: t.name.thread}.key()
	_, pending, err := b.log.Bucket(b.models.Of(documents.Threads).Bucket).Newest(ctx, note)
	if err != nil {
		return nil, fmt.Errorf("the note of the end of %s: %w", t.name, err)
	}
	if !pending {
		return b.tryAlone(ctx, t.name)
	}
	last, err := b.log.Last(ctx, t.name.tenant, t.name.thread)
	if err != nil || last == nil || last.Events[len(last.Events)-1].Type != events.LifecycleDeletedType {
		return t, err
	}
	for _, j := range t.docs {
		if j.verdict == Extra {
			j.verdict = ""
		}
	}
	return t, nil
}

// correct hands over what makes the thread's documents right.
func (b *rebuilding) correct(ctx context.Context, t *trial) error {
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

// corrections gives the writes that make the thread's documents right.
func (t *trial) corrections() ([]correction, error) {
	list := t.orphans
	for p, j := range t.docs {
		if j.verdict == "" && !t.renews(p, j) {
			continue
		}
		c := correction{bucket: t.models.Of(p.Kind).Bucket, key: p.Key(), kind: p.Kind, thread: t.name, seq: t.memory.Seq}
		if j.live != nil {
			c.expected = j.live.Seq
		}
		if slot := t.memory.Slot(p); slot.Doc != nil {
			raw, err := documents.Encode(slot.Doc)
			if err != nil {
				return nil, fmt.Errorf("encoding %s: %w", p.Key(), err)
			}
			c.doc = raw
			if large := stubOf(p.Kind, slot.Seq, raw, t.log.MaxPayload()); large != nil {
				if c.doc, err = large.encode(); err != nil {
					return nil, fmt.Errorf("encoding %s: %w", p.Key(), err)
				}
				c.large = large
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// tryAlone reads the live documents of a thread, folds its log, and judges.
func (b *rebuilding) tryAlone(ctx context.Context, name threadName) (*trial, error) {
	g, err := b.readGroup(ctx, name)
	if err != nil {
		return nil, err
	}
	return b.try(ctx, name, g)
}

// try folds the log of a thread of a group, and judges.
func (b *rebuilding) try(ctx context.Context, name threadName, g *group) (*trial, error) {
	t := &trial{rebuilding: b, name: name, upTo: g.upTo, docs: map[documents.Place]*judged{}, memory: b.models.NewMemory()}
	for _, p := range b.models.List() {
		if b.kinds.Has(p.Kind) {
			t.take(ctx, p, g.docs[name][p.Kind])
		}
	}
	for c, err := range b.log.Thread(ctx, name.tenant, name.thread, 1) {
		var broken *events.BrokenError
		var archive *eventlog.ArchiveError
		switch {
		case errors.As(err, &broken):
			t.memory.Broken++
			continue
		case errors.As(err, &archive): // what the documents are to show is not known
			t.memory.Broken++
			clear(t.docs)
			return t, nil
		case err != nil:
			return nil, err
		}
		t.pass(c.Seq - 1)
		t.memory.Apply(c)
		t.judgeAt(c.Seq)
	}
	t.pass(^uint64(0))
	t.finish()
	return t, nil
}

// take takes in the live documents of one read model.
func (t *trial) take(ctx context.Context, p documents.Projection, got []streams.Message) {
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
		raw, err := whole(ctx, place, got[i], func(_ context.Context, keys ...string) ([]streams.Message, error) {
			var some []streams.Message
			for _, k := range keys {
				if m, ok := pieces[k]; ok {
					some = append(some, m)
					named[k] = true
				}
			}
			return some, nil
		})
		if err == nil { // else it is judged by its stub, which is not what the log says
			got[i].Data = raw
		}
		seq, _ := shownSeq(got[i].Header, got[i].Data)
		t.docs[place] = &judged{live: &got[i], liveSeq: seq}
	}
	for key, m := range pieces {
		if !named[key] && m.Seq <= t.anew[p.Kind] { // of a document that has changed since
			t.orphans = append(t.orphans, correction{bucket: p.Bucket, key: key, kind: p.Kind, expected: m.Seq, thread: t.name, piece: true})
		}
	}
}

// pass judges the read models whose sure sequence lies before what the fold
// takes next: the documents that the log says there are, and those that are no
// newer than that.
func (t *trial) pass(upTo uint64) {
	for k := range t.upTo {
		kind := documents.Kind(k)
		if !t.kinds.Has(kind) || t.passed.Has(kind) || t.upTo[k] > upTo {
			continue
		}
		t.passed = t.passed.With(kind)
		for _, slot := range t.memory.All(documents.Mask(0).With(kind)) {
			if t.docs[slot.Place] == nil {
				t.docs[slot.Place] = &judged{verdict: Missing}
			}
		}
		for p, j := range t.docs {
			if p.Kind == kind && j.live != nil && j.liveSeq <= t.upTo[k] {
				t.judge(p, j)
			}
		}
	}
}

// judgeAt judges the documents that bear exactly the sequence at which the fold
// stands, and are newer than what their read model shows for sure.
func (t *trial) judgeAt(seq uint64) {
	for p, j := range t.docs {
		if j.live != nil && !j.done && j.liveSeq == seq && seq > t.upTo[p.Kind] {
			t.judge(p, j)
		}
	}
}

// judge compares a live document with the fold as it stands.
func (t *trial) judge(p documents.Place, j *judged) {
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

// finish judges what is left: a document that is missing is missing only if it
// was not removed meanwhile, and one that bears a sequence which is none of the
// thread's was not made by a runner.
func (t *trial) finish() {
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
