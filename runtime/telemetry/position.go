package telemetry

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
)

// Bucket holds the position of the export, without its prefix.
const Bucket = "thread_telemetry"

const positionKey = "position"

// position is the position of the export: every run that ended up to it was sent or
// dropped. It is stored in a bucket; a replaced writer is refused.
type position struct {
	kv       jetstream.KeyValue
	revision uint64
	Seq      uint64 `json:"seq"`
}

// resume reads the position. The first time it is the end of the log.
func resume(ctx context.Context, log *eventlog.Log) (*position, error) {
	if err := assets.EnsureBucket(ctx, log.Streams(), Bucket); err != nil {
		return nil, err
	}
	kv, err := log.JetStream().KeyValue(ctx, log.Config().Names.Bucket(Bucket))
	if err != nil {
		return nil, fmt.Errorf("the bucket of telemetry: %w", err)
	}
	last, err := log.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	p := &position{kv: kv}
	entry, err := kv.Get(ctx, positionKey)
	switch {
	case err == nil:
		p.revision = entry.Revision()
		if json.Unmarshal(entry.Value(), p) == nil && p.Seq <= last {
			return p, nil
		}
		// Of another log, or not ours: it is ignored.
	case !errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, fmt.Errorf("the position of telemetry: %w", err)
	}
	return p, p.save(ctx, last)
}

// save stores the position.
func (p *position) save(ctx context.Context, seq uint64) error {
	raw, err := json.Marshal(position{Seq: seq})
	if err != nil {
		return err
	}
	revision, err := p.kv.Update(ctx, positionKey, raw, p.revision)
	if err != nil {
		return fmt.Errorf("the position of telemetry: %w", err)
	}
	p.revision, p.Seq = revision, seq
	return nil
}
