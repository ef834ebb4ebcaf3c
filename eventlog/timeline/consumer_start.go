package timeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Start is where a consumer begins. The zero Start is the oldest event that the timeline has.
type Start struct {
	New bool   // after what the timeline has when the consumer is created
	Seq uint64 // with the commit of that sequence of the log
}

func (s Start) String() string {
	switch {
	case s.New:
		return "events after its creation"
	case s.Seq > 0:
		return fmt.Sprintf("commit %d", s.Seq)
	}
	return "the oldest event"
}

// The key of a consumer's metadata under which its start is stored, and the value of [Start.New].
// It is stored because the server only has the place on the timeline.
const (
	startKey = "skein-start"
	startNew = "new"
)

func (s Start) metadata() map[string]string {
	switch {
	case s.New:
		return map[string]string{startKey: startNew}
	case s.Seq > 0:
		return map[string]string{startKey: strconv.FormatUint(s.Seq, 10)}
	}
	return nil
}

// startOf returns where a consumer began. One that an earlier version created has no metadata.
func startOf(cfg jetstream.ConsumerConfig) Start {
	if stored := cfg.Metadata[startKey]; stored == startNew || cfg.DeliverPolicy == jetstream.DeliverNewPolicy {
		return Start{New: true}
	} else if seq, err := strconv.ParseUint(stored, 10, 64); err == nil {
		return Start{Seq: seq}
	}
	return Start{}
}

// changeSubjects changes the subjects that a consumer takes, unless it began elsewhere.
func changeSubjects(ctx context.Context, stream jetstream.Stream, name string, cfg jetstream.ConsumerConfig, subjects []string, from Start) error {
	if began := startOf(cfg); began != from {
		err := events.Errorf(events.AlreadyExists, "consumer %s already exists, and began with %s, not with %s; delete it to begin elsewhere", name, began, from)
		err.Details = &events.ErrorDetails{Entity: "consumer", ID: name}
		return err
	}
	cfg.FilterSubject, cfg.FilterSubjects, cfg.Metadata = "", subjects, ownMetadata(cfg)
	_, err := stream.UpdateConsumer(ctx, cfg)
	return err
}

// ownMetadata returns a copy of a consumer's metadata without what the server added.
func ownMetadata(cfg jetstream.ConsumerConfig) map[string]string {
	own := map[string]string{}
	for key, value := range cfg.Metadata {
		if !strings.HasPrefix(key, "_nats.") {
			own[key] = value
		}
	}
	return own
}

// beginAt has a consumer that is to be created begin at a start. It begins at a sequence, which
// the server permits to move later, where it does not begin with the oldest event.
func (c Consumers) beginAt(ctx context.Context, stream jetstream.Stream, from Start, cfg *jetstream.ConsumerConfig) error {
	first := uint64(0)
	switch {
	case from.New:
		info, err := stream.Info(ctx)
		if err != nil {
			return err
		}
		first = info.State.LastSeq + 1
	case from.Seq > 0:
		var err error
		if first, err = c.find(ctx, stream, from.Seq); err != nil {
			return err
		}
	default:
		return nil
	}
	cfg.DeliverPolicy, cfg.OptStartSeq, cfg.Metadata = jetstream.DeliverByStartSequencePolicy, first, from.metadata()
	return nil
}

// find returns the sequence on the timeline at which the commits from a sequence of the log on
// begin. The error is an invalid_request if the timeline no longer has all of them.
func (c Consumers) find(ctx context.Context, stream jetstream.Stream, seq uint64) (uint64, error) {
	switch err := c.timeline.Await(ctx, seq-1, streams.ReadTimeout); {
	case errors.Is(err, ErrNotShown):
		return 0, events.Errorf(events.Unavailable, "the timeline does not show commit %d yet; try again", seq-1)
	case err != nil:
		return 0, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	low, high := info.State.FirstSeq, info.State.LastSeq+1
	oldest, found, err := c.shownFrom(ctx, low)
	if err == nil && !found { // all of it has expired
		if oldest, err = c.timeline.position(ctx); err == nil {
			oldest.seq++
		}
	}
	if err != nil {
		return 0, err
	}
	if seq < oldest.seq {
		err := events.Invalid("/fromSeq", "the timeline no longer has commit %d, and begins with commit %d; read the earlier ones with history.list, then begin there", seq, oldest.seq)
		err.Details.Seq = int64(oldest.seq)
		return 0, err
	}
	for low < high {
		middle := low + (high-low)/2
		at, found, err := c.shownFrom(ctx, middle)
		switch {
		case err != nil:
			return 0, err
		case !found || at.seq >= seq:
			high = middle
		default:
			low = middle + 1
		}
	}
	return low, nil
}

// shownFrom returns the position of the first message from a sequence of the timeline on, and
// whether there is one.
func (c Consumers) shownFrom(ctx context.Context, from uint64) (_ position, found bool, err error) {
	m, err := c.conn.Leader(ctx, c.stream(), streams.GetRequest{Seq: from, Next: c.timeline.anyEvent()})
	if errors.Is(err, streams.ErrNoMessage) {
		return position{}, false, nil
	}
	if err != nil {
		return position{}, false, err
	}
	at, err := parsePosition(m.Header)
	return at, err == nil, err
}
