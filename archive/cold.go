package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// Cold archives the threads of a tenant that are idle, those that have been so for
// longest first, and tells of each. pass may say that a thread need not be looked at,
// by the sequence of its last commit; it may be nil. A thread that cannot be archived is told of to failed, and the others go on.
func (a *Archiver) Cold(ctx context.Context, tenant string, o Options, pass func(id string, last uint64) bool, done func(Result), failed func(thread string, err error)) error {
	if !events.ValidTenant(tenant) {
		return events.Invalid("/tenant", "a tenant is 1 to 64 letters, digits, dashes and underscores")
	}
	due, err := a.list(ctx, tenant, a.cfg.Now().Add(-o.Idle), pass)
	if err != nil {
		return fmt.Errorf("listing the threads of %s: %w", tenant, err)
	}
	for _, id := range due {
		r, err := a.Thread(ctx, tenant, id, o)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, &events.Error{Code: events.NotFound}): // erased since it was listed
		case err != nil:
			failed(id, err)
		default:
			done(r)
		}
	}
	return nil
}

// listMost bounds a list.
const listMost = 100_000

// list gives the threads of a tenant whose last commit was stored before a time, in
// the order of those. They are listed before anything is done with them, since that
// changes what the list is made of.
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
		if meta.Timestamp.After(until) { // and so are all that follow
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
