package audit

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"strconv"
	"sync"

	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
)

// mostDiffering bounds how many aggregates are compared with the timeline one by one. If more
// differ, the whole timeline is.
const mostDiffering = 1000

// shownSums compares the timeline with the log by digests: it is read once, in order, before
// the log, and of each aggregate the sum of the digests of its messages is kept. Of one whose
// commits have another sum, each message is compared afterwards, which tells what is wrong,
// or that it was written, erased or archived meanwhile.
type shownSums struct {
	timelineSpan
	seed    maphash.Seed
	strange bool // a message is not in order, or not Skein's, or could not be read: all are compared
	count   int  // of messages

	mu      sync.Mutex // guards what follows
	of      map[uint64]shownSum
	differs []differing
}

// differing is an aggregate whose messages differ from its commits, with the first commit.
type differing struct {
	aggregate
	first uint64
}

// shownSum is the sum of the digests of what the timeline shows of an aggregate.
type shownSum struct {
	sum  uint64
	seen bool // its commits were compared
}

// listShown reads the timeline, or what it shows of the threads that are checked.
func (v *verifier) listShown(ctx context.Context) error {
	span, err := v.span(ctx)
	if err != nil {
		return err
	}
	v.shown = &shownSums{timelineSpan: span, seed: maphash.MakeSeed(), of: map[uint64]shownSum{}}
	if span.kept == 0 {
		return nil
	}
	v.progress(StageTimeline, 0, int64(span.to-span.from), 0)
	for _, a := range v.aggregates() {
		if err := v.addShown(ctx, a); err != nil || v.shown.strange {
			return err
		}
	}
	return nil
}

// aggregates returns the aggregates to check: the named threads, or, as a pattern, all of a tenant,
// or of all tenants.
func (v *verifier) aggregates() []aggregate {
	if len(v.options.Threads) == 0 {
		return []aggregate{{anyTenant(v.options.Tenant), "*"}}
	}
	list := make([]aggregate, len(v.options.Threads))
	for i, id := range v.options.Threads {
		list[i] = aggregate{v.options.Tenant, id}
	}
	return list
}

// addShown adds what the timeline shows of an aggregate, or of many.
func (v *verifier) addShown(ctx context.Context, a aggregate) error {
	s := v.shown
	var last shown
	now := s.timelineSpan.end
	for m, err := range timeline.Of(v.log).Delivered(ctx, a.tenant, a.id) {
		if err != nil {
			s.strange = true
			return context.Cause(ctx) // nil: the comparison of each message reports it, if it remains
		}
		at, err := parseShown(m)
		if err != nil || at.seq < last.seq || at.seq == last.seq && at.version != last.version+1 {
			s.strange = true
			return nil
		}
		if last = at; at.seq > now { // it was written after the check started, or forged
			if now, err = v.log.LastSeq(ctx); err != nil {
				return err
			}
			if at.seq > now {
				s.strange = true
				return nil
			}
		}
		if at.seq < s.from || at.seq > s.to {
			continue
		}
		tenant, id, _, ok := v.log.Config().Names.ParseTimeline(m.Subject)
		if !ok {
			s.strange = true
			return nil
		}
		name := maphash.Comparable(s.seed, aggregate{tenant, id})
		s.of[name] = shownSum{sum: s.of[name].sum + s.digest(at.seq, at.version, m.Subject, m.Data)}
		if s.count++; s.count%tellEvery == 0 {
			v.progress(StageTimeline, int64(at.seq-s.from), int64(s.to-s.from), 0)
		}
	}
	return nil
}

// digest returns the digest of a message of the timeline.
func (s *shownSums) digest(seq uint64, version int64, subject string, data []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	var place [48]byte
	at := strconv.AppendUint(place[:0], seq, 10)
	at = strconv.AppendInt(append(at, ' '), version, 10)
	_, _ = h.Write(append(at, ' '))
	_, _ = h.WriteString(subject)
	_ = h.WriteByte(0)
	_, _ = h.Write(data)
	return h.Sum64()
}

// commit returns the sum of the digests of the messages that show a commit of the log itself.
func (s *shownSums) commit(names events.Names, c *events.Commit) (sum uint64) {
	if s == nil || s.strange || c.Seq < s.from || c.Seq > s.to {
		return 0
	}
	for i := range c.Events {
		e := &c.Events[i]
		sum += s.digest(c.Seq, e.Version, names.Timeline(e.Tenant, e.ThreadID, e.Type), e.Raw())
	}
	return sum
}

// end compares the sum of an aggregate's commits with that of what the timeline shows; first is
// the first of them.
func (s *shownSums) end(a aggregate, first, sum uint64) {
	if s == nil || s.strange {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := maphash.Comparable(s.seed, a)
	if s.of[name].sum != sum && len(s.differs) <= mostDiffering {
		s.differs = append(s.differs, differing{a, first})
	}
	s.of[name] = shownSum{sum: sum, seen: true}
}

// endShown compares each message of the aggregates that differ, or of all.
func (v *verifier) endShown(ctx context.Context) error {
	s := v.shown
	if s.kept == 0 {
		return nil
	}
	whole := s.strange || len(s.differs) > mostDiffering
	for _, at := range s.of {
		whole = whole || !at.seen // of an aggregate that the log does not hold
	}
	if whole {
		return v.eachShown(ctx, s.timelineSpan)
	}
	slices.SortFunc(s.differs, func(a, b differing) int { return cmp.Compare(a.first, b.first) })
	for _, a := range s.differs {
		if err := v.timeline(ctx, a.aggregate, s.timelineSpan); err != nil {
			return err
		}
	}
	v.summary.Timeline = s.count
	return nil
}
