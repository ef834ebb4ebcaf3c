package archive

import (
	"context"
	"errors"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
)

// Actor is the actor of lifecycle.archived.
const Actor = "skein:archiver"

func (a *Archiver) told(ctx context.Context, of *events.Commit, step Step) error {
	return a.cfg.Told(ctx, of.Tenant, of.Thread, step)
}

// keep writes a snapshot of the state at the record, so that a command on the thread does not have
// to read its history. A failure is only logged: without a snapshot, the thread is folded from its
// history.
func (a *Archiver) keep(ctx context.Context, state *thread.State, record *events.Commit) error {
	thread.Apply(state, record)
	raw, err := state.Encode()
	if err == nil {
		err = eventlog.SnapshotsOn(a.log.Streams()).Save(ctx, record.Tenant, record.Thread, raw)
	}
	if err != nil {
		a.logger.Warn().Err(err).Str("tenant", record.Tenant).Str("thread", record.Thread).Msg("write snapshot: the first command on the thread will read its whole history")
	}
	return a.told(ctx, record, Kept)
}

// finish checks the object of a record again, and purges what precedes the record.
func (a *Archiver) finish(ctx context.Context, record *events.Commit) error {
	d, _ := eventlog.Record(record)
	if err := a.log.CheckArchive(ctx, record.Tenant, record.Thread, d); err != nil {
		return err
	}
	return a.purge(ctx, record)
}

// purge removes what precedes a record from the log and the timeline, once the timeline shows the
// record. The record's object must have been checked.
func (a *Archiver) purge(ctx context.Context, record *events.Commit) error {
	err := a.timeline.Await(ctx, record.Seq, a.cfg.Patience)
	if err == nil {
		err = a.eraseArchived(ctx, record)
	}
	if errors.Is(err, timeline.ErrNotShown) {
		return events.Errorf(events.Unavailable, "it is archived, but stays in the log until the timeline shows the record; is skein serve running?")
	}
	if err != nil {
		return err
	}
	return a.told(ctx, record, Purged)
}

// abandon deletes the object of an archive after its record was refused, unless another archiver
// has recorded the same object. Such a record could only be the commit directly after the archived
// ones.
func (a *Archiver) abandon(ctx context.Context, last *events.Commit, d events.LifecycleArchived) error {
	next, err := a.log.After(ctx, last.Tenant, last.Thread, last.Seq)
	if err != nil || next == nil {
		return err
	}
	if other, ok := eventlog.Record(next); ok && other.Object == d.Object {
		return nil
	}
	return a.log.DropArchive(ctx, d.Object)
}

// movedOn reports whether err occurred because the thread was written to meanwhile. Another
// archiver may then have erased the commits or deleted the object, and nothing is damaged.
func (a *Archiver) movedOn(ctx context.Context, last *events.Commit, err error) bool {
	var bad *eventlog.ArchiveError
	if !errors.As(err, &bad) && !errors.Is(err, eventlog.ErrCommitsGone) {
		return false
	}
	next, err := a.log.After(ctx, last.Tenant, last.Thread, last.Seq)
	return err == nil && next != nil
}

// clean deletes the objects of earlier archives that were interrupted before their record was
// written. These objects end with a commit before the last.
func (a *Archiver) clean(ctx context.Context, last *events.Commit, seqs []uint64) error {
	names, err := a.log.Archives(ctx, last.Tenant, last.Thread, seqs[:len(seqs)-1])
	for _, name := range names {
		err = errors.Join(err, a.log.DropArchive(ctx, name))
	}
	return err
}

func isMissing(err error) bool {
	var bad *eventlog.ArchiveError
	return errors.As(err, &bad) && bad.Missing
}
