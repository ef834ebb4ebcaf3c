package derived

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
)

// LeaseBucket holds the leases: a bucket whose entries last for [LeaseTTL].
const LeaseBucket = "thread_leases"

// LeaseStream returns the stream of the bucket of leases, which the server expires. It is in
// memory: a lease that was held when the server stopped is gone when it is back, and no process
// waits for it to expire. A server that is not one of a cluster loses the stream, too: who needs
// a lease then creates it again.
func LeaseStream(cfg streams.Config) streams.Asset {
	bucket := cfg.Names.Bucket(LeaseBucket)
	return streams.Asset{Derived: true, Config: jetstream.StreamConfig{
		Name: streams.BucketStream(bucket), Description: "Skein: who runs what, now.",
		Subjects: []string{streams.KeyPrefix(bucket) + ">"}, Retention: jetstream.LimitsPolicy, Storage: jetstream.MemoryStorage,
		Discard: jetstream.DiscardNew, Replicas: cfg.Replicas, MaxAge: LeaseTTL, MaxMsgsPerSubject: 1, MaxMsgSize: -1,
		AllowDirect: true, AllowRollup: true, DenyDelete: true, PersistMode: jetstream.DefaultPersistMode, Duplicates: time.Second,
	}}
}

// errNoBucket means that the bucket of leases is not there, and cannot be created now.
var errNoBucket = errors.New("the bucket of leases")

// bucket returns the bucket of leases, and creates it if it is gone. Several processes may do
// that at once. It is not created next to a log that is gone: that would hide the loss.
func (l *Leases) bucket(ctx context.Context) (jetstream.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, l.ttl/3)
	defer cancel()
	js, cfg := l.conn.JetStream(), l.conn.Config()
	kv, err := js.KeyValue(ctx, cfg.Names.Bucket(LeaseBucket))
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		if _, err = js.Stream(ctx, cfg.Sample); err != nil {
			return nil, fmt.Errorf("%w, which is gone: stream %s: %w", errNoBucket, cfg.Sample, err)
		}
		if err = l.conn.Ensure(ctx, LeaseStream(cfg)); err == nil {
			l.logger.Info().Msg("the bucket of leases was gone, as after a restart of the server; it is created again")
		}
		kv, err = js.KeyValue(ctx, cfg.Names.Bucket(LeaseBucket))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoBucket, err)
	}
	return kv, nil
}

// gone reports whether a renewal failed because the bucket is gone, and every lease with it:
// another process may have one already.
func (l *Leases) gone(ctx context.Context, err error) bool {
	if !errors.Is(err, jetstream.ErrNoStreamResponse) && !errors.Is(err, nats.ErrNoResponders) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, l.ttl/6)
	defer cancel()
	_, err = l.conn.JetStream().Stream(ctx, streams.BucketStream(l.conn.Config().Names.Bucket(LeaseBucket)))
	return errors.Is(err, jetstream.ErrStreamNotFound)
}
