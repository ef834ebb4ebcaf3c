package projections

import (
	"context"
	"errors"
	"hash/fnv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// threadName names a thread of a tenant.
type threadName struct{ tenant, thread string }

func (n threadName) String() string { return documents.ThreadName(n.tenant, n.thread) }

func hashName(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// sweep gives the subject of every message of a stream, see [eventlog.Log.List].
// Of an auditor's log, who may make no consumer, it gives every message also where
// the last of each subject was asked for.
func sweep(ctx context.Context, log *eventlog.Log, name string, from jetstream.OrderedConsumerConfig, take func(streams.Message) error) error {
	if log.Streams().ReadOnly() {
		for m, err := range log.Streams().Messages(ctx, name, ">", 1) {
			if err == nil {
				err = take(m)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	from.HeadersOnly = true
	for m, err := range log.Streams().List(ctx, name, from) {
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if err := take(streams.Message{Subject: m.Subject(), Seq: meta.Sequence.Stream, Header: m.Headers()}); err != nil {
			return err
		}
	}
	return nil
}

// listThreads hands every thread of the log to the workers, and every tenant's own
// aggregate, each once, and notes it. While it lists, the commit may be erased under
// which a thread stands in the list. So the list is made twice: a thread that the
// first one passed over stands under its tombstone by then, which is never erased.
func (b *rebuilding) listThreads(ctx context.Context, known map[uint64]struct{}, work chan<- threadName) error {
	for range 2 {
		if err := b.listOnce(ctx, known, work); err != nil {
			return err
		}
	}
	return nil
}

// listOnce hands on the threads of one list that are not known yet.
func (b *rebuilding) listOnce(ctx context.Context, known map[uint64]struct{}, work chan<- threadName) error {
	names := b.log.Config().Names
	last := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
	return sweep(ctx, b.log, names.Stream(assets.LogStream), last, func(m streams.Message) error {
		tenant, thread, ok := names.ParseLog(m.Subject)
		if !ok || !documents.Folds(thread) {
			return nil
		}
		n := threadName{tenant, thread}
		if _, again := known[hashName(n.String())]; again {
			return nil
		}
		known[hashName(n.String())] = struct{}{}
		if !b.scope.has(n) {
			return nil
		}
		select {
		case work <- n:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// strangers finds documents of threads that are not in the log, and what is no
// document at all.
func (b *rebuilding) strangers(ctx context.Context, known map[uint64]struct{}) error {
	for _, p := range b.models.List() {
		if !b.kinds.Has(p.Kind) {
			continue
		}
		bucket := "KV_" + b.log.Config().Names.Bucket(p.Bucket)
		err := sweep(ctx, b.log, bucket, jetstream.OrderedConsumerConfig{}, func(m streams.Message) error {
			key := b.keyOf(p.Bucket, m.Subject)
			if key == checkpointKey || len(key) > len(deletionPrefix) && key[:len(deletionPrefix)] == deletionPrefix || m.Header.Get(headerOperation) != "" {
				return nil
			}
			place, ok := documents.ParsePlace(p.Kind, key)
			if thread, piece := documents.ParsePiece(key); piece {
				place.Thread, ok = thread, true
			}
			if ok {
				if _, ok := known[hashName(place.Thread)]; ok {
					return nil
				}
			}
			return b.stranger(ctx, p, key, m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stranger judges a document of a thread that was not in the log when it was
// listed.
func (b *rebuilding) stranger(ctx context.Context, p documents.Projection, key string, m streams.Message) error {
	place, ok := documents.ParsePlace(p.Kind, key)
	if thread, piece := documents.ParsePiece(key); piece {
		place.Thread, ok = thread, true
	}
	if ok {
		tenant, thread, _ := cutName(place.Thread)
		if !b.scope.has(threadName{tenant, thread}) {
			return nil
		}
		last, err := b.log.Last(ctx, tenant, thread)
		var broken *events.BrokenError
		if last != nil || errors.As(err, &broken) {
			return nil // it came since
		}
		if err != nil {
			return err
		}
	}
	b.note(Difference{Projection: p.Name, Bucket: p.Bucket, Key: key, Kind: Extra})
	if !b.repair {
		return nil
	}
	return b.writer.add(ctx, correction{bucket: p.Bucket, key: key, expected: m.Seq, kind: p.Kind})
}

// cutName takes what a place has for its thread apart.
func cutName(name string) (tenant, thread string, ok bool) {
	for i := range len(name) {
		if name[i] == '.' {
			return name[:i], name[i+1:], true
		}
	}
	return "", "", false
}
