package archive

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// checkErasable returns a *[streams.AssetError] if commits cannot be deleted from the log one
// by one: a log that an older Skein has created denies that, and the server never takes that
// setting back.
func (a *Archiver) checkErasable(ctx context.Context) error {
	name := a.log.Config().Names.Stream(assets.LogStream)
	s, err := a.log.Streams().Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	if s.CachedInfo().Config.DenyDelete {
		return &streams.AssetError{Name: name, Problem: "it denies the deletion of single messages", Hint: "export the log, and import it into a new one, to archive threads"}
	}
	return nil
}

// eraseArchived erases the commits before a record from the log, and their events from the
// timeline. The record's object must have been checked. It may be repeated at any time. The error
// is timeline.ErrNotShown, and nothing was erased, if the timeline does not show the record yet.
//
// The commits are erased backwards from the record, so that whatever is missing in the log
// lies directly before the record, at every moment and after every crash.
func (a *Archiver) eraseArchived(ctx context.Context, record *events.Commit) error {
	if d, ok := eventlog.Record(record); !ok || uint64(d.LastSeq) >= record.Seq {
		return fmt.Errorf("commit %d is no record of an archive here", record.Seq)
	}
	if err := a.timeline.EraseBefore(ctx, record); err != nil {
		return err
	}
	names := a.log.Config().Names
	name, subject := names.Stream(assets.LogStream), names.Log(record.Tenant, record.Thread)
	s, err := a.log.Streams().Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("purging stream %s: %w", name, err)
	}
	var before []uint64
	for m, err := range a.log.Stored(ctx, subject, 1) {
		if err != nil {
			return fmt.Errorf("purging stream %s: %w", name, err)
		}
		if m.Seq >= record.Seq {
			break
		}
		before = append(before, m.Seq)
	}
	for _, seq := range slices.Backward(before) {
		if err := streams.EraseOne(ctx, s, seq); err != nil {
			return fmt.Errorf("erasing message %d of stream %s: %w", seq, name, err)
		}
	}
	// Purge the commits that a lagging replica has not returned.
	if err := streams.Purge(ctx, s, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(record.Seq)); err != nil {
		return fmt.Errorf("purging stream %s: %w", name, err)
	}
	return nil
}
