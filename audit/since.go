package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
)

// firstSince returns the sequence of the first commit stored at a time or later, end+1 if
// there is none up to end.
func firstSince(ctx context.Context, log *eventlog.Log, at time.Time, end uint64) (uint64, error) {
	if log.Streams().ReadOnly() {
		return searchSince(ctx, log, at, end)
	}
	stream, err := log.JetStream().Stream(ctx, log.Config().Names.Stream(assets.LogStream))
	if err != nil {
		return 0, fmt.Errorf("find commits since %v: %w", at, err)
	}
	if begins := stream.CachedInfo().State; begins.Msgs > 0 && !begins.FirstTime.Before(at) { // else the server looks for it in a block, long if that is damaged
		return min(begins.FirstSeq, end+1), nil
	}
	from := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &at, HeadersOnly: true}
	for m, err := range log.Streams().List(ctx, log.Config().Names.Stream(assets.LogStream), from) {
		if err != nil {
			return 0, fmt.Errorf("find commits since %v: %w", at, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return 0, err
		}
		return min(meta.Sequence.Stream, end+1), nil
	}
	return end + 1, nil
}

// searchSince does the same as firstSince with direct gets, or returns a lower bound: later
// commits have later times.
func searchSince(ctx context.Context, log *eventlog.Log, at time.Time, end uint64) (uint64, error) {
	first, after := uint64(1), end+1
	for first < after {
		middle := first + (after-first)/2
		earlier := uint64(0) // the first commit from the middle on, if it is before at
		for m, err := range log.Stored(ctx, log.Config().Names.Log("*", "*"), middle) {
			var stored time.Time
			if err == nil {
				stored, err = time.Parse(time.RFC3339Nano, m.Header.Get(nats.JSTimeStamp))
			}
			if err != nil {
				return 0, fmt.Errorf("find commits since %v: %w", at, err)
			}
			if m.Seq < after && stored.Before(at) {
				earlier = m.Seq
			}
			break
		}
		if earlier > 0 {
			first = earlier + 1
		} else {
			after = middle
		}
	}
	return first, nil
}
