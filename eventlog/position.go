package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
)

// PositionKey is the key of a position in its bucket.
const PositionKey = "position"

// Position is up to which commit a follower is done with the log. It is stored in a bucket, which may
// have other keys. It is not safe for concurrent use.
type Position struct {
	kv       jetstream.KeyValue
	what     string
	seq      uint64
	revision uint64 // of the key; 0: there is none
	known    bool   // seq is stored
}

// stored is a position as it is stored.
type stored struct {
	Seq uint64 `json:"seq"`
}

// OpenPosition reads the position in a bucket, which exists. what names the follower in errors. If there is
// none of this log, the position is the end of the log, and not stored yet.
func OpenPosition(ctx context.Context, log *Log, bucket, what string) (*Position, error) {
	p := &Position{what: what}
	var err error
	if p.kv, err = log.JetStream().KeyValue(ctx, log.Config().Names.Bucket(bucket)); err != nil {
		return nil, fmt.Errorf("the bucket of %s: %w", what, err)
	}
	end, err := log.LastSeq(ctx) // first: the position may move meanwhile
	if err != nil {
		return nil, err
	}
	p.seq = end
	entry, err := p.kv.Get(ctx, PositionKey)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return p, nil
	case err != nil:
		return nil, fmt.Errorf("the position of %s: %w", what, err)
	}
	p.revision = entry.Revision()
	var at stored
	if json.Unmarshal(entry.Value(), &at) == nil && at.Seq <= end {
		p.seq, p.known = at.Seq, true
	}
	return p, nil
}

// Seq returns the sequence of the last commit that the follower is done with.
func (p *Position) Seq() uint64 { return p.seq }

// Known reports whether that is stored.
func (p *Position) Known() bool { return p.known }

// Save stores a sequence, unless it is stored. The error is a jetstream.ErrKeyRevisionMismatch if
// another follower has moved the position since this one read it.
func (p *Position) Save(ctx context.Context, seq uint64) error {
	if p.known && seq == p.seq {
		return nil
	}
	raw, err := json.Marshal(stored{Seq: seq})
	if err != nil {
		return err
	}
	revision, err := p.kv.Update(ctx, PositionKey, raw, p.revision)
	if err != nil {
		return fmt.Errorf("the position of %s: %w", p.what, err)
	}
	p.seq, p.revision, p.known = seq, revision, true
	return nil
}
