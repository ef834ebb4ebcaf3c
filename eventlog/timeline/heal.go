package timeline

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

// heal removes what others have put at the timeline's end. It returns how far the relay had
// got, and the sequence of the message on the timeline that says so; 0 if there is none. The
// timeline is derived: a message that Skein did not write says nothing about the log, and the
// fence lets the relay write nothing after it.
//
// A message that looks like the relay's own and shows a commit after the log's end stays: it
// may be all that is left of commits that the log has lost.
func (t *Timeline) heal(ctx context.Context) (at position, shown uint64, err error) {
	removed, first, subject := 0, uint64(0), ""
	for {
		m, err := t.conn.Leader(ctx, t.stream(), streams.GetRequest{Last: t.anyEvent()})
		if err != nil && !errors.Is(err, streams.ErrNoMessage) {
			return position{}, 0, err
		}
		own := true
		if err == nil {
			if own, err = t.isRelayed(ctx, m); err != nil {
				return position{}, 0, err
			}
		}
		if own {
			if removed > 0 {
				t.log.Logger().Warn().Int("messages", removed).Uint64("first", first).Str("subject", subject).
					Msg("messages on the timeline that Skein did not write were removed; find out who may publish there")
				t.log.Metrics().Healed(removed)
			}
			if m.Seq > 0 {
				at, err = parsePosition(m.Header)
			} else {
				at, err = t.emptyPosition(ctx)
			}
			return at, m.Seq, err
		}
		if err := t.unshow(ctx, m.Seq); err != nil {
			return position{}, 0, fmt.Errorf("removing message %d of the timeline, which Skein did not write: %w", m.Seq, err)
		}
		removed, first, subject = removed+1, m.Seq, m.Subject
	}
}

// unshow removes a message of the timeline, unless another relay has done so.
func (t *Timeline) unshow(ctx context.Context, seq uint64) error {
	stream, err := t.conn.JetStream().Stream(ctx, t.stream())
	if err != nil {
		return err
	}
	if err = stream.DeleteMsg(ctx, seq); err == nil {
		return nil
	}
	if _, gone := t.conn.Leader(ctx, t.stream(), streams.GetRequest{Seq: seq}); errors.Is(gone, streams.ErrNoMessage) {
		return nil
	}
	return err
}

// isRelayed reports whether a message of the timeline is the relay's: whether it is an event
// of the log, in the place that its headers say.
func (t *Timeline) isRelayed(ctx context.Context, m streams.Message) (bool, error) {
	at, err := parsePosition(m.Header)
	if err != nil {
		return false, nil //nolint:nilerr // the relay's messages have these headers
	}
	end, err := t.log.LastSeq(ctx)
	if err != nil {
		return false, err
	}
	tenant, thread, kind, ok := t.names.ParseTimeline(m.Subject)
	if ok && tenant == markOwner && thread == markOwner && kind == assets.TimelineMark {
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
	c, err := t.log.Get(ctx, at.seq)
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
	return t.isAfterPrevious(ctx, m.Seq, at)
}

// lookBack is how many sequences before a message are read.
const lookBack = 256

// isAfterPrevious reports whether a position comes after that of the message before it on the
// timeline: another client may have published an event of the log again.
func (t *Timeline) isAfterPrevious(ctx context.Context, seq uint64, at position) (bool, error) {
	from := seq - min(seq-1, lookBack)
	before, err := t.conn.Direct(ctx, t.stream(), streams.GetRequest{Seq: from, Next: ">", Batch: lookBack + 1, MaxBytes: streams.BatchBytes})
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
