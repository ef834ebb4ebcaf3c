package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
)

// shown is a message of the timeline, with the position in the log that it names.
type shown struct {
	streams.Message
	seq     uint64
	version int64
}

func parseShown(m streams.Message) (shown, error) {
	seq, err := strconv.ParseUint(m.Header.Get(events.HeaderSeq), 10, 64)
	version, verr := strconv.ParseInt(m.Header.Get(events.HeaderVersion), 10, 64)
	return shown{Message: m, seq: seq, version: version}, errors.Join(err, verr)
}

// timelineSpan is what of the timeline is checked.
type timelineSpan struct {
	kept     uint64 // the commit with which it starts; 0: it is empty, and nothing is checked
	end      uint64 // the commit with which it ended when the check started
	from, to uint64 // the commits to check
}

// span returns what of the timeline is checked: from the first commit that it still keeps, or
// must keep, to where it ended when the check started.
func (v *verifier) span(ctx context.Context) (s timelineSpan, err error) {
	if v.keeps, err = v.retention(ctx); err != nil {
		return s, err
	}
	if s.end, err = v.timelineEnd(ctx); err != nil {
		return s, err
	}
	if s.kept, err = v.keptSince(ctx); err != nil || s.kept == 0 {
		return s, err
	}
	since, err := v.keeps.since(ctx, v.log, s.end)
	if err != nil {
		return s, err
	}
	s.from, s.to = max(min(s.kept, since), v.first), min(s.end, v.last)
	return s, nil
}

// timelines checks that the timeline has the log's events, each once and in order. Events of
// purged threads may be on either or neither; those of archived threads are on neither, or
// still on the timeline.
func (v *verifier) timelines(ctx context.Context) error {
	if v.shown != nil {
		return v.endShown(ctx)
	}
	s, err := v.span(ctx)
	if err != nil || s.kept == 0 {
		return err
	}
	return v.eachShown(ctx, s)
}

// eachShown checks each message that the timeline shows of what is checked.
func (v *verifier) eachShown(ctx context.Context, s timelineSpan) error {
	for _, a := range v.aggregates() {
		if err := v.timeline(ctx, a, s); err != nil {
			return err
		}
	}
	return nil
}

// timelineEnd returns the last commit that the timeline shows, at least in part. Forged
// messages at its end are skipped here, and reported later.
func (v *verifier) timelineEnd(ctx context.Context) (uint64, error) {
	if cut, err := v.keeps.endsWithin(ctx); cut || err != nil {
		if err != nil {
			return 0, err
		}
		return v.cutOff(ctx, v.keeps)
	}
	end, err := timeline.Of(v.log).LastSeq(ctx)
	var forged *streams.AssetError
	if errors.As(err, &forged) {
		end, err = 0, nil
		for m, readErr := range timeline.Of(v.log).Readable(ctx, "*", "*") {
			if readErr != nil {
				return 0, fmt.Errorf("read timeline: %w", readErr)
			}
			if at, bad := parseShown(m); bad == nil {
				end = max(end, at.seq)
			}
		}
	}
	if err != nil {
		return 0, fmt.Errorf("read timeline: %w", err)
	}
	now, err := v.log.LastSeq(ctx) // afterwards: the timeline is never ahead of the log
	return min(end, now), err
}

// keptSince returns the commit with which the timeline starts, 0 if it is empty.
func (v *verifier) keptSince(ctx context.Context) (uint64, error) {
	for m, err := range timeline.Of(v.log).Readable(ctx, "*", "*") {
		if err != nil {
			return 0, fmt.Errorf("read timeline: %w", err)
		}
		if at, err := parseShown(m); err == nil {
			return at.seq, nil
		}
	}
	return 0, nil
}

// timeline checks what the timeline shows of an aggregate, or of many.
func (v *verifier) timeline(ctx context.Context, a aggregate, s timelineSpan) error {
	from, to, end := s.from, s.to, s.end
	next, stop := iter.Pull2(v.log.Stored(ctx, v.log.Config().Names.Log(a.tenant, a.id), from))
	defer stop()
	w := &walk{v: v, ctx: ctx, next: next, kept: s.kept, end: end, to: to, one: a.id != "*"}
	if err := w.step(); err != nil {
		return err
	}
	v.progress(StageTimeline, 0, int64(to-from), 0)
	var open []shown // of one commit
	for m, err := range timeline.Of(v.log).Readable(ctx, a.tenant, a.id) {
		if err != nil {
			return fmt.Errorf("read timeline: %w", err)
		}
		at, err := parseShown(m)
		switch {
		case err != nil:
			place := v.shownPlace(at)
			place.Seq, place.Detail = 0, fmt.Sprintf("message %d of the timeline was not written by Skein", m.Seq)
			v.find(place)
			continue
		case at.seq > end:
			// It was written after the check started, or forged.
			now, err := v.log.LastSeq(ctx)
			if err != nil {
				return err
			}
			if at.seq > now {
				place := v.shownPlace(at)
				place.Detail = "the timeline shows a commit that the log does not hold"
				v.find(place)
			}
			continue
		case len(open) > 0 && at.seq < open[0].seq:
			place := v.shownPlace(at)
			place.Detail = fmt.Sprintf("message %d of the timeline is out of order", m.Seq)
			v.find(place)
			continue
		case len(open) > 0 && at.seq > open[0].seq:
			if err := w.compare(open); err != nil {
				return err
			}
			open = open[:0]
		}
		if at.seq < from || at.seq > to {
			continue
		}
		open = append(open, at)
		if v.summary.Timeline++; v.summary.Timeline%tellEvery == 0 {
			v.progress(StageTimeline, int64(at.seq-from), int64(to-from), 0)
		}
	}
	if len(open) > 0 {
		if err := w.compare(open); err != nil {
			return err
		}
	}
	return w.rest()
}

// shownPlace returns a finding at a message of the timeline.
func (v *verifier) shownPlace(at shown) Finding {
	f := Finding{Kind: KindTimeline, Seq: at.seq}
	f.Tenant, f.Thread, _, _ = v.log.Config().Names.ParseTimeline(at.Subject)
	return f
}

// walk iterates over the log alongside the timeline.
type walk struct {
	v    *verifier
	ctx  context.Context
	kept uint64 // the commit with which the timeline starts, which may have expired in part
	end  uint64 // the commit with which it ended, which may be incomplete
	to   uint64
	next func() (streams.Message, error, bool)
	at   *streams.Message // not compared yet; nil at the end

	begun bool // a commit of the timeline was compared, or one was found missing
	lost  bool // the log cannot be read any further
	one   bool // of one aggregate, whose commits are checked by themselves
}

// unread returns an error that says that the log does not answer. What of it cannot be read is
// reported where the log is checked.
func (w *walk) unread(err error) error {
	if unanswered(w.ctx, err) {
		return fmt.Errorf("read log: %w", err)
	}
	return nil
}

// step reads the next message of the log, nil at its end.
func (w *walk) step() error {
	m, err, ok := w.next()
	w.at = nil
	if err != nil {
		if w.lost = true; w.one {
			return w.unread(err)
		}
		return w.v.damaged(w.ctx, fmt.Errorf("the log, with which the timeline is compared only up to there: %w", err), Finding{Kind: KindBroken})
	}
	if ok && m.Seq <= w.to {
		w.at = &m
	}
	return nil
}

// compare compares the messages of one commit with the log, and reports the commits before it
// that the timeline lacks.
func (w *walk) compare(open []shown) error {
	seq := open[0].seq
	for w.at != nil && w.at.Seq < seq {
		if err := w.missing(); err != nil {
			return err
		}
	}
	if w.lost {
		return nil
	}
	w.begun = true
	if w.at == nil || w.at.Seq != seq {
		return w.unknown(open)
	}
	if commit, err := w.v.log.Decode(*w.at); err == nil {
		found := w.v.compare(commit, open, seq == w.kept && !w.v.keeps.due(*w.at), seq == w.end)
		if len(found) > 0 && !tombstone(commit) {
			purged, err := w.taken(commit)
			if err != nil {
				return err
			}
			if purged { // its messages are deleted one after the other
				return w.step()
			}
		}
		for _, f := range found {
			w.v.find(f)
		}
	}
	return w.step()
}

// unknown judges a commit that is on the timeline but not in the log: it may be of a purged
// thread, or archived.
func (w *walk) unknown(open []shown) error {
	place := w.v.shownPlace(open[0])
	purged, err := w.purged(place.Tenant, place.Thread)
	if err != nil || purged {
		return err
	}
	if events.ValidTenant(place.Tenant) && validAggregate(place.Thread) {
		commit, err := w.v.log.Commit(w.ctx, place.Tenant, place.Thread, place.Seq)
		var broken *events.BrokenError
		var archive *eventlog.ArchiveError
		switch {
		case errors.As(err, &broken), errors.As(err, &archive):
			return nil // reported where the log is checked
		case err != nil:
			return w.unread(err)
		case commit != nil:
			for _, f := range w.v.compare(commit, open, true, true) {
				w.v.find(f)
			}
			return nil
		}
	}
	place.Detail = "the timeline shows a commit that the log does not hold"
	w.v.find(place)
	return nil
}

// purged reports whether a thread's last commit in the log says that its events are erased, or
// about to be.
func (w *walk) purged(tenant, thread string) (bool, error) {
	if !events.ValidTenant(tenant) || !validAggregate(thread) {
		return false, nil
	}
	last, err := w.v.log.Last(w.ctx, tenant, thread)
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken):
		return false, nil
	case err != nil:
		return true, w.unread(err) // what it shows cannot be judged
	}
	return last != nil && tombstone(last), nil
}

// taken reports whether the timeline may lack a commit of the log: its thread was purged, or a
// later record says that it is archived.
func (w *walk) taken(c *events.Commit) (bool, error) {
	purged, err := w.purged(c.Tenant, c.Thread)
	if err != nil || purged || !events.IsThread(c.Thread) {
		return purged, err
	}
	for m, err := range w.v.log.Stored(w.ctx, w.v.log.Config().Names.Log(c.Tenant, c.Thread), c.Seq+1) {
		if err != nil {
			return true, w.unread(err)
		}
		if next, err := w.v.log.Decode(m); err == nil {
			if d, ok := eventlog.Record(next); ok && uint64(d.LastSeq) >= c.Seq {
				return true, nil
			}
		}
	}
	return false, nil
}

// missing reports a commit that the timeline lacks, and moves on. One that cannot be decoded
// is reported where the log is checked.
func (w *walk) missing() error {
	commit, err := w.v.log.Decode(*w.at)
	if err != nil {
		return w.step()
	}
	if !w.begun { // what the timeline kept at first may have expired since
		if w.kept, err = w.v.keptSince(w.ctx); err != nil {
			return err
		}
		w.begun = true
	}
	if commit.Seq < w.kept && !w.v.keeps.due(*w.at) {
		return w.step()
	}
	purged, err := w.taken(commit)
	if err != nil {
		return err
	}
	if !purged {
		w.v.find(Finding{Kind: KindTimeline, Tenant: commit.Tenant, Thread: commit.Thread, Seq: commit.Seq,
			Detail: "the timeline leaves it out; rebuild it with: skein replay timeline"})
	}
	return w.step()
}

// rest reports the last commits that the timeline lacks.
func (w *walk) rest() error {
	for w.at != nil {
		if err := w.missing(); err != nil {
			return err
		}
	}
	return nil
}

// compare compares the messages of one commit with its events. The first commit that is kept
// may have expired in part, and the last may be incomplete.
func (v *verifier) compare(c *events.Commit, open []shown, first, last bool) (found []Finding) {
	names := v.log.Config().Names
	next, erased := c.First()+1, tombstone(c) // of a purged thread only the tombstone is left
	for i, m := range open {
		if i == 0 && (first || erased) {
			next = max(next, m.version)
		}
		place := Finding{Kind: KindTimeline, Tenant: c.Tenant, Thread: c.Thread, Seq: c.Seq}
		if m.version != next || m.version > c.Version {
			place.Detail = fmt.Sprintf("version %d is in the place of %d", m.version, next)
			return append(found, place)
		}
		e := &c.Events[m.version-c.First()-1]
		if !bytes.Equal(e.Raw(), m.Data) || m.Subject != names.Timeline(e.Tenant, e.ThreadID, e.Type) {
			place.Event, place.Detail = e.ID, "the timeline's event is not the log's"
			found = append(found, place)
		}
		next++
	}
	if next <= c.Version && !last {
		found = append(found, Finding{Kind: KindTimeline, Tenant: c.Tenant, Thread: c.Thread, Seq: c.Seq,
			Detail: fmt.Sprintf("the timeline lacks versions %d to %d; rebuild it with: skein replay timeline", next, c.Version)})
	}
	return found
}
