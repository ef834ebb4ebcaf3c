package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
)

// BehindError says that the log ends before what was made from it, or is not there:
// its end was lost. Nothing was changed, and no stream was made.
type BehindError struct {
	Stream string
	Last   uint64 // 0: it is empty, or not there
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

// Whole returns a *BehindError if the log ends before what derived streams prove: the
// last event of the timeline and the checkpoints of the read models. It is asked
// before [Log.Ensure], so that no log is made next to what another one has left.
func (l *Log) Whole(ctx context.Context) error {
	return l.conn.Patiently(ctx, func(ctx context.Context) error {
		proof, err := l.proof(ctx)
		if err != nil || proof.By == "" {
			return err
		}
		last, ok, err := l.conn.Ends(ctx, proof.Stream) // after the proof: it only grows
		if err != nil || ok && last >= proof.Proven {
			return err
		}
		proof.Last = last
		return proof
	})
}

// proof returns what derived streams say of the log's end. By is empty if they say
// nothing.
func (l *Log) proof(ctx context.Context) (*BehindError, error) {
	out := &BehindError{Stream: l.cfg.Names.Stream(LogStream)}
	say := func(by string, seq uint64) {
		if out.By == "" || seq > out.Proven {
			out.By, out.Proven = by, seq
		}
	}
	names := l.conn.JetStream().StreamNames(ctx)
	for name := range names.Name() {
		if !l.cfg.Derived(name) {
			continue
		}
		bucket, isBucket := strings.CutPrefix(name, "KV_")
		switch {
		case name == l.cfg.Names.Stream(TimelineStream):
			m, err := l.conn.Leader(ctx, name, streams.GetRequest{Last: l.anyEvent()})
			if at, wrong := parsePosition(m.Header); err == nil && wrong == nil {
				say("the timeline", at.seq)
			} else if err != nil && !errors.Is(err, streams.ErrNoMessage) {
				return nil, err
			}
		case bucket == l.cfg.Names.Bucket(derived.LeaseBucket):
			last, ok, err := l.conn.Ends(ctx, name)
			if err != nil {
				return nil, err
			}
			if ok && last > 0 {
				say("the bucket of leases", 0)
			}
		case isBucket:
			m, err := l.conn.Leader(ctx, name, streams.GetRequest{Last: streams.KeyPrefix(bucket) + "_.checkpoint"})
			var c struct {
				Seq uint64 `json:"seq"`
			}
			if err == nil && json.Unmarshal(m.Data, &c) == nil && c.Seq > 0 {
				say("the checkpoint of "+bucket, c.Seq)
			} else if err != nil && !errors.Is(err, streams.ErrNoMessage) {
				return nil, err
			}
		}
	}
	return out, names.Err()
}

// DropDerived removes every derived stream, for a log of which something was lost:
// the next Skein to start makes them again. It returns their names.
func (l *Log) DropDerived(ctx context.Context) ([]string, error) {
	var found []string
	names := l.conn.JetStream().StreamNames(ctx)
	for name := range names.Name() {
		if l.cfg.Derived(name) {
			found = append(found, name)
		}
	}
	if err := names.Err(); err != nil {
		return nil, err
	}
	for _, name := range found {
		if err := l.conn.JetStream().DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, fmt.Errorf("removing the derived stream %s: %w", name, err)
		}
	}
	return found, nil
}
