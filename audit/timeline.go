package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// kindOf sorts what the checker found.
func kindOf(err error) Kind {
	var move *events.TransitionError
	if errors.As(err, &move) {
		return KindTransition
	}
	return KindLink
}

// shown is a message of the timeline, and the place in the log that it names.
type shown struct {
	eventlog.Message
	seq     uint64
	version int64
}

// timeline checks that the timeline holds the log's events, each once and in
// order, from the first that it still keeps to where it had got when the check
// began. Events of purged threads may be on either, or on none.
func (v *verifier) timeline(ctx context.Context) error {
	end, err := v.log.TimelineSeq(ctx)
	if err != nil {
		return fmt.Errorf("the timeline: %w", err)
	}
	walk := &walk{v: v, ctx: ctx, end: end}
	defer walk.stop()
	var open []shown // of one commit
	for m, err := range v.log.TimelineMessages(ctx) {
		if err != nil {
			return fmt.Errorf("reading the timeline: %w", err)
		}
		at := shown{Message: m}
		at.seq, err = strconv.ParseUint(m.Header.Get(events.HeaderSeq), 10, 64)
		if err == nil {
			at.version, err = strconv.ParseInt(m.Header.Get(events.HeaderVersion), 10, 64)
		}
		switch {
		case err != nil:
			v.find(Finding{Kind: KindTimeline, Detail: fmt.Sprintf("message %d was not written by Skein", m.Seq)})
			continue
		case len(open) > 0 && at.seq < open[0].seq:
			v.find(Finding{Kind: KindTimeline, Seq: at.seq, Detail: fmt.Sprintf("message %d is out of order", m.Seq)})
			continue
		case len(open) > 0 && at.seq > open[0].seq:
			if err := walk.to(open); err != nil {
				return err
			}
			open = open[:0]
		}
		open = append(open, at)
		v.summary.Timeline++
	}
	if len(open) > 0 {
		if err := walk.to(open); err != nil {
			return err
		}
	}
	return walk.rest()
}

// walk goes through the log beside the timeline.
type walk struct {
	v    *verifier
	ctx  context.Context
	end  uint64
	next func() (eventlog.Message, error, bool)
	halt func()
	at   *eventlog.Message // not yet compared
}

func (w *walk) stop() {
	if w.halt != nil {
		w.halt()
	}
}

// step takes the next message of the log, nil at its end.
func (w *walk) step() error {
	m, err, ok := w.next()
	w.at = nil
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	if ok {
		w.at = &m
	}
	return nil
}

// to compares the messages of one commit, and tells of the commits before it
// that the timeline leaves out.
func (w *walk) to(open []shown) error {
	first, seq := w.next == nil, open[0].seq
	if first {
		names := w.v.log.Config().Names
		w.next, w.halt = iter.Pull2(w.v.log.Raw(w.ctx, names.Log("*", "*"), seq))
		if err := w.step(); err != nil {
			return err
		}
	}
	for w.at != nil && w.at.Seq < seq {
		w.missing()
		if err := w.step(); err != nil {
			return err
		}
	}
	if w.at == nil || w.at.Seq != seq {
		if len(w.v.purged) == 0 && len(w.v.options.Threads) == 0 && w.v.options.Tenant == "" {
			w.v.find(Finding{Kind: KindTimeline, Seq: seq, Detail: "the timeline shows a commit that the log does not hold"})
		}
		return nil
	}
	if commit, err := w.v.log.Decode(*w.at); err == nil && w.v.selected(*w.at) && !w.v.erased(commit) {
		w.v.compare(commit, open, first, seq == w.end)
	}
	return w.step()
}

// missing tells of a commit that the timeline leaves out. One that cannot be
// read is told where the log itself is checked.
func (w *walk) missing() {
	commit, err := w.v.log.Decode(*w.at)
	if err != nil || !w.v.selected(*w.at) || w.v.erased(commit) {
		return
	}
	w.v.find(Finding{Kind: KindTimeline, Tenant: commit.Tenant, Thread: commit.Thread, Seq: commit.Seq,
		Detail: "the timeline leaves it out; rebuild it with: skein replay timeline"})
}

// rest tells of the commits at the end that the timeline leaves out.
func (w *walk) rest() error {
	for w.at != nil && w.at.Seq <= w.end {
		w.missing()
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// selected reports whether a message is of what was asked for.
func (v *verifier) selected(m eventlog.Message) bool {
	tenant, id, _ := v.log.Config().Names.ParseLog(m.Subject)
	return (v.options.Tenant == "" || v.options.Tenant == tenant) &&
		(len(v.options.Threads) == 0 || slices.Contains(v.options.Threads, id))
}

// erased reports whether a commit is being erased: log and timeline may hold it,
// or not any more.
func (v *verifier) erased(c *events.Commit) bool {
	return c.Seq < v.purged[aggregate{c.Tenant, c.Thread}]
}

// compare holds the messages of one commit against its events.
// The first commit that is kept may have expired in part, and the last may not
// be all there yet.
func (v *verifier) compare(c *events.Commit, open []shown, first, last bool) {
	names := v.log.Config().Names
	next := c.First() + 1
	for i, m := range open {
		if i == 0 && first {
			next = max(next, m.version)
		}
		place := Finding{Kind: KindTimeline, Tenant: c.Tenant, Thread: c.Thread, Seq: c.Seq}
		if m.version != next || m.version > c.Version {
			place.Detail = fmt.Sprintf("version %d comes where %d belongs", m.version, next)
			v.find(place)
			return
		}
		e := &c.Events[m.version-c.First()-1]
		if !bytes.Equal(e.Raw(), m.Data) || m.Subject != names.Timeline(e.Tenant, e.ThreadID, e.Type) {
			place.Event, place.Detail = e.ID, "the timeline's event is not the log's"
			v.find(place)
		}
		next++
	}
	if next <= c.Version && !last {
		v.find(Finding{Kind: KindTimeline, Tenant: c.Tenant, Thread: c.Thread, Seq: c.Seq,
			Detail: fmt.Sprintf("the timeline leaves out versions %d to %d; rebuild it with: skein replay timeline", next, c.Version)})
	}
}
