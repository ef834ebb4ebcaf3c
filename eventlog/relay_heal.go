package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// heal removes what others have put at the timeline's end, and returns how far the
// relay had got, and the sequence on the timeline that says so; 0 if there is no
// message. The timeline is derived: what Skein did not write says nothing of
// the log, and the fence lets the relay write nothing behind it.
//
// A message that looks like the relay's own and shows a commit behind the log's end
// stays: it may be all that is left of commits that the log has lost.
func (l *Log) heal(ctx context.Context) (at position, shown uint64, err error) {
	name := l.cfg.Names.Stream(assets.TimelineStream)
	removed, first, subject := 0, uint64(0), ""
	for {
		m, err := l.conn.Leader(ctx, name, streams.GetRequest{Last: l.anyEvent()})
		if err != nil && !errors.Is(err, streams.ErrNoMessage) {
			return position{}, 0, err
		}
		own := true
		if err == nil {
			if own, err = l.relayed(ctx, m); err != nil {
				return position{}, 0, err
			}
		}
		if own {
			if removed > 0 {
				l.logger.Warn().Int("messages", removed).Uint64("first", first).Str("subject", subject).
					Msg("messages on the timeline that Skein did not write were removed; find out who may publish there")
				l.metrics.Healed(removed)
			}
			if m.Seq > 0 {
				at, err = parsePosition(m.Header)
			} else {
				at, err = l.emptyPosition(ctx)
			}
			return at, m.Seq, err
		}
		stream, err := l.conn.JetStream().Stream(ctx, name)
		if err == nil {
			err = stream.DeleteMsg(ctx, m.Seq)
		}
		if err != nil {
			return position{}, 0, fmt.Errorf("removing message %d of the timeline, which Skein did not write: %w", m.Seq, err)
		}
		removed, first, subject = removed+1, m.Seq, m.Subject
	}
}

// relayed reports whether a message of the timeline is the relay's: whether it is an
// event of the log, in the place that its headers say.
func (l *Log) relayed(ctx context.Context, m streams.Message) (bool, error) {
	at, err := parsePosition(m.Header)
	if err != nil {
		return false, nil //nolint:nilerr // the relay's messages have these headers
	}
	end, err := l.LastSeq(ctx)
	if err != nil {
		return false, err
	}
	tenant, thread, kind, ok := l.cfg.Names.ParseTimeline(m.Subject)
	if ok && tenant == markTenant && thread == markTenant && kind == assets.TimelineMark {
		return at.seq <= end, nil
	}
	e, err := events.DecodeEvent(m.Data)
	if !ok || err != nil || e.Tenant != tenant || e.ThreadID != thread || e.Type != kind || e.Version != at.version {
		return false, nil //nolint:nilerr // the relay puts events there
	}
	if at.seq > end {
		return false, &streams.AssetError{
			Name: assets.TimelineStream, Problem: "it shows commit " + strconv.FormatUint(at.seq, 10) + ", and the log ends at " + strconv.FormatUint(end, 10),
			Hint: "restore the log from a backup, or, if nothing is missing from it, rebuild the timeline with: skein replay timeline",
		}
	}
	c, err := l.Get(ctx, at.seq)
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken):
		return true, nil // there is nothing to compare it with
	case err != nil:
		return false, err
	case c == nil:
		return true, nil // archived or erased since
	case c.Tenant != tenant || c.Thread != thread || at.version <= c.First() || at.version > c.Version:
		return false, nil
	}
	if string(c.Events[at.version-c.First()-1].Raw()) != string(m.Data) {
		return false, nil
	}
	return l.follows(ctx, m.Seq, at)
}

// lookBack is how many sequences before a message are looked at.
const lookBack = 256

// follows reports whether a position comes after what stands before it on the
// timeline: somebody may have published an event of the log again.
func (l *Log) follows(ctx context.Context, seq uint64, at position) (bool, error) {
	from := seq - min(seq-1, lookBack)
	before, err := l.conn.Direct(ctx, l.cfg.Names.Stream(assets.TimelineStream), streams.GetRequest{Seq: from, Next: ">", Batch: lookBack + 1, MaxBytes: streams.BatchBytes})
	if err != nil {
		return false, err
	}
	for _, m := range slices.Backward(before) {
		if m.Seq >= seq {
			continue
		}
		if last, err := parsePosition(m.Header); err == nil {
			return last.seq < at.seq || last.seq == at.seq && last.version < at.version, nil
		}
	}
	return true, nil
}
