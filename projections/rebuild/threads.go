package rebuild

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

// eachSubject calls see with the subject of every message of a stream, see
// [streams.Conn.List]. An auditor may create no consumer: on an auditor's log it calls
// see with every message also where the last of each subject was asked for.
func eachSubject(ctx context.Context, log *eventlog.Log, name string, from jetstream.OrderedConsumerConfig, see func(streams.Message) error) error {
	if log.Streams().ReadOnly() {
		for m, err := range log.Streams().Messages(ctx, name, ">", 1) {
			if err == nil {
				err = see(m)
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
		if err := see(streams.Message{Subject: m.Subject(), Seq: meta.Sequence.Stream, Header: m.Headers()}); err != nil {
			return err
		}
	}
	return nil
}

// listThreads sends every thread of the log to the workers, and every tenant's own
// aggregate, each once, and notes it. While it lists, the commit may be erased by
// which a thread is in the list. So the list is read twice: a thread that the first
// one missed is there by its tombstone by then, which is never erased.
func (b *rebuilding) listThreads(ctx context.Context, known map[uint64]struct{}, work chan<- threadName) error {
	for range 2 {
		if err := b.listOnce(ctx, known, work); err != nil {
			return err
		}
	}
	return nil
}

// listOnce sends the threads of one list that are not known yet.
func (b *rebuilding) listOnce(ctx context.Context, known map[uint64]struct{}, work chan<- threadName) error {
	names := b.log.Config().Names
	last := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
	return eachSubject(ctx, b.log, names.Stream(assets.LogStream), last, func(m streams.Message) error {
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

// unknownDocuments finds documents of threads that are not known, by their names, because
// they are not in the log, and invalid documents.
func (b *rebuilding) unknownDocuments(ctx context.Context, known func(thread string) bool) error {
	for _, p := range b.models.List() {
		if !b.kinds.Has(p.Kind) {
			continue
		}
		bucket := b.log.Bucket(p.Bucket)
		err := eachSubject(ctx, b.log, bucket.Stream(), jetstream.OrderedConsumerConfig{}, func(m streams.Message) error {
			key := bucket.Key(m.Subject)
			if noDocument(key, m) {
				return nil
			}
			if thread, ok := threadOf(p.Kind, key); ok && known(thread) {
				return nil
			}
			return b.unknownDocument(ctx, p, key, m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unknownDocument handles a document of a thread that was not in the log when it was
// listed.
func (b *rebuilding) unknownDocument(ctx context.Context, p documents.Projection, key string, m streams.Message) error {
	name, ok := threadOf(p.Kind, key)
	if ok {
		tenant, thread := documents.CutThreadName(name)
		if !b.scope.has(threadName{tenant, thread}) {
			return nil
		}
		last, err := b.log.Last(ctx, tenant, thread)
		var broken *events.BrokenError
		if last != nil || errors.As(err, &broken) {
			return nil // it was created since
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
