package timeline

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
)

// markOwner stands for tenant and thread in the subject of the mark with which a rebuild takes
// the timeline over: a relay that finds the mark resumes at the position that it holds. It is
// removed with what stands before it. No tenant has such a name.
const markOwner = "_"

// Rebuild empties the timeline and relays the log's events again, as far back as the timeline
// keeps them, up to the log's present end. Live subscribers receive them again. A relay that
// runs meanwhile is fenced off, and then helps: either may write, and each event still comes
// once.
func (t *Timeline) Rebuild(ctx context.Context) error {
	end, err := t.log.LastSeq(ctx)
	if err != nil {
		return err
	}
	at, err := t.emptyPosition(ctx)
	if err != nil {
		return err
	}
	stream, err := t.conn.Stream(ctx, t.stream())
	if err != nil {
		return fmt.Errorf("the timeline: %w", err)
	}
	fence, err := derived.Seize(ctx, t.conn, t.stream(), t.names.Timeline(markOwner, markOwner, assets.TimelineMark), at.header())
	if err != nil {
		return err
	}
	if err := streams.Purge(ctx, stream, jetstream.WithPurgeSequence(fence.Last()+1)); err != nil {
		return fmt.Errorf("emptying the timeline: %w", err)
	}
	if end == 0 { // nothing was ever written
		return nil
	}
	err = t.relayFrom(ctx, fence, at, end)
	for streams.IsFenced(err) {
		err = t.relayTo(ctx, end)
	}
	return err
}
