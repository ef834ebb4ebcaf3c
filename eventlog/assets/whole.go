package assets

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// BehindError says that the log ends before what was derived from it, or does not exist: its
// end was lost. Nothing was changed, and no stream was created.
type BehindError struct {
	Stream string
	Last   uint64 // 0: it is empty, or does not exist
	Proven uint64 // 0: it is known only that there was a log
	By     string // what proves it
}

func (e *BehindError) Error() string {
	got := fmt.Sprintf("ends at %d", e.Last)
	if e.Last == 0 {
		got = "is empty or not there"
	}
	shows := "says that there was one"
	if e.Proven > 0 {
		shows = fmt.Sprintf("shows it up to %d", e.Proven)
	}
	return fmt.Sprintf("stream %s %s, and %s %s: its end was lost, and nothing was changed; restore a backup, or bring back the servers that have it; "+
		"to go on without it: skein store repair --accept-loss, with --store DIR or with --server URL", e.Stream, got, e.By, shows)
}

// CheckWhole returns a *[BehindError] if the log ends before what derived streams prove: the
// last event of the timeline and the checkpoints of the read models. Call it before [Ensure],
// so that no log is created next to what another one has left. It returns an
// *[UnfinishedError] if a restore into the server did not end.
func CheckWhole(ctx context.Context, conn *streams.Conn) error {
	return conn.Patiently(ctx, func(ctx context.Context) error {
		if err := CheckRestored(ctx, conn); err != nil {
			return err
		}
		proof, err := proofOfEnd(ctx, conn)
		if err != nil || proof.By == "" {
			return err
		}
		last, ok, err := conn.Ends(ctx, proof.Stream) // after the proof: it only grows
		if err != nil || ok && last >= proof.Proven {
			return err
		}
		proof.Last = last
		return proof
	})
}

// proofOfEnd returns what derived streams prove about the log's end. By is empty if they
// prove nothing.
func proofOfEnd(ctx context.Context, conn *streams.Conn) (*BehindError, error) {
	n := conn.Config().Names
	out := &BehindError{Stream: n.Stream(LogStream)}
	proven := func(by string, seq uint64) {
		if out.By == "" || seq > out.Proven {
			out.By, out.Proven = by, seq
		}
	}
	names := conn.JetStream().StreamNames(ctx)
	for name := range names.Name() {
		if !Derived(n, name) {
			continue
		}
		bucket, isBucket := strings.CutPrefix(name, "KV_")
		switch {
		case name == n.Stream(TimelineStream):
			m, err := conn.Leader(ctx, name, streams.GetRequest{Last: wholeTimeline(n)})
			if seq, ok := relayedSeq(m.Header); err == nil && ok {
				proven("the timeline", seq)
			} else if err != nil && !errors.Is(err, streams.ErrNoMessage) {
				return nil, err
			}
		case bucket == n.Bucket(derived.LeaseBucket):
			last, ok, err := conn.Ends(ctx, name)
			if err != nil {
				return nil, err
			}
			if ok && last > 0 {
				proven("the bucket of leases", 0)
			}
		case isBucket:
			m, err := conn.Leader(ctx, name, streams.GetRequest{Last: streams.KeyPrefix(bucket) + "_.checkpoint"})
			var c struct {
				Seq uint64 `json:"seq"`
			}
			if err == nil && json.Unmarshal(m.Data, &c) == nil && c.Seq > 0 {
				proven("the checkpoint of "+bucket, c.Seq)
			} else if err != nil && !errors.Is(err, streams.ErrNoMessage) {
				return nil, err
			}
		}
	}
	return out, names.Err()
}

// relayedSeq returns the sequence in the log of the commit that a message of the timeline is
// from, and reports whether its headers are the relay's.
func relayedSeq(h nats.Header) (seq uint64, ok bool) {
	seq, err := strconv.ParseUint(h.Get(events.HeaderSeq), 10, 64)
	_, verr := strconv.ParseInt(h.Get(events.HeaderVersion), 10, 64)
	return seq, err == nil && verr == nil
}
