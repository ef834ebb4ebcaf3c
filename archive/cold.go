package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// Cold archives the idle threads of a tenant, the longest idle first, and reports each. If pass
// returns true for the sequence of a thread's last commit, the thread is skipped; pass may be nil.
// If a thread cannot be archived, Cold calls failed and continues with the others.
func (a *Archiver) Cold(ctx context.Context, tenant string, o Options, pass func(id string, last uint64) bool, done func(Result), failed func(thread string, err error)) error {
	if err := events.CheckTenant("/tenant", tenant); err != nil {
		return err
	}
	due, err := a.list(ctx, tenant, a.cfg.Now().Add(-o.Idle), pass)
	if err != nil {
		return fmt.Errorf("list threads of %s: %w", tenant, err)
	}
	for _, id := range due {
		r, err := a.Thread(ctx, tenant, id, o)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case events.IsNotFound(err): // erased since it was listed
		case err != nil:
			failed(id, err)
		default:
			done(r)
		}
	}
	return nil
}

// listMost bounds how many threads one list holds.
const listMost = 100_000

// list returns the threads of a tenant whose last commit was stored before until, ordered by that
// commit. They must be listed before any is archived, since archiving changes the order.
func (a *Archiver) list(ctx context.Context, tenant string, until time.Time, pass func(string, uint64) bool) ([]string, error) {
	names := a.log.Config().Names
	var due []string
	for m, err := range a.log.Streams().List(ctx, names.Stream(assets.LogStream), jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubjects: []string{names.Log(tenant, "*")}, HeadersOnly: true,
	}) {
		if err != nil {
			return nil, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		if meta.Timestamp.After(until) { // all that follow are later, too
			break
		}
		if _, id, ok := names.ParseLog(m.Subject()); ok && events.ValidThreadID(id) && (pass == nil || !pass(id, meta.Sequence.Stream)) {
			due = append(due, id)
		}
		if len(due) == listMost {
			break
		}
	}
	return due, nil
}
