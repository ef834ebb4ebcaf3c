package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// ErrNotShown says that the timeline does not show a commit yet.
var ErrNotShown = errors.New("the timeline does not show it yet")

// CanPurge says why commits cannot be taken from the log one by one, or nothing: a
// log that an older Skein has made denies that, and the server never takes it back.
func (l *Log) CanPurge(ctx context.Context) error {
	name := l.cfg.Names.Stream(assets.LogStream)
	s, err := l.conn.JetStream().Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	if s.CachedInfo().Config.DenyDelete {
		return &streams.AssetError{Name: name, Problem: "it denies the deletion of single messages", Hint: "export the log, and import it into a new one, to archive threads"}
	}
	return nil
}

// PurgeArchived takes the commits before a record from the log, and their events
// from the timeline, and has the server overwrite them. Whoever calls it has checked
// the record's object. It may be done again at any time. ErrNotShown if the timeline
// does not show the record yet: nothing was done.
//
// The log's go backwards from the record, so that whatever is missing stands right
// before it, at every moment and after every crash.
func (l *Log) PurgeArchived(ctx context.Context, record *events.Commit) error {
	if d, ok := Record(record); !ok || uint64(d.LastSeq) >= record.Seq {
		return fmt.Errorf("commit %d is no record of an archive here", record.Seq)
	}
	if err := l.purgeShown(ctx, record); err != nil {
		return err
	}
	name, subject := l.cfg.Names.Stream(assets.LogStream), l.cfg.Names.Log(record.Tenant, record.Thread)
	s, err := l.conn.JetStream().Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("purging stream %s: %w", name, err)
	}
	var before []uint64
	for m, err := range l.Stored(ctx, subject, 1) {
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
	// What a replica that lags did not show.
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(record.Seq)); err != nil {
		return fmt.Errorf("purging stream %s: %w", name, err)
	}
	return nil
}

// purgeShown takes the events before a record from the timeline. The record's own
// stays, so that the relay finds where it stands.
func (l *Log) purgeShown(ctx context.Context, record *events.Commit) error {
	n := l.cfg.Names
	name := n.Stream(assets.TimelineStream)
	at, err := l.TimelineSeq(ctx) // first: what it shows by now is there, or has expired
	if err != nil {
		return err
	}
	if at < record.Seq {
		return ErrNotShown
	}
	own := uint64(0)
	for m, err := range l.TimelineMessages(ctx, record.Tenant, record.Thread) {
		if err != nil {
			return err
		}
		shown, err := parsePosition(m.Header)
		if err != nil {
			return err
		}
		if shown.seq >= record.Seq {
			own = m.Seq
			break
		}
	}
	if own == 0 {
		return nil // it has expired, and so has what came before it
	}
	return l.conn.Erase(ctx, name, n.Timeline(record.Tenant, record.Thread, ">"), own)
}

// AwaitShown waits until the timeline shows a commit. The error is ErrNotShown if
// it does not in time.
func (l *Log) AwaitShown(ctx context.Context, seq uint64, patience time.Duration) error {
	for attempts := (retry.Policy{First: 2 * time.Millisecond, Max: 250 * time.Millisecond, Limit: patience}).Start(); ; {
		at, err := l.TimelineSeq(ctx)
		if err != nil || at >= seq {
			return err
		}
		switch err := attempts.Wait(ctx); {
		case errors.Is(err, retry.ErrExhausted):
			return ErrNotShown
		case err != nil:
			return err
		}
	}
}

// Archives gives the names of the objects that there are of a thread's commits with
// some sequences as their last, the oldest first.
func (l *Log) Archives(ctx context.Context, tenant, thread string, last []uint64) ([]string, error) {
	var out []string
	for len(last) > 0 {
		part := last[:min(len(last), 512)]
		last = last[len(part):]
		q := streams.GetRequest{Multi: make([]string, len(part))}
		for i, seq := range part {
			q.Multi[i] = l.archiveSubject(archiveObject(tenant, thread, seq))
		}
		got, _, err := l.conn.Latest(ctx, l.archiveStream(), q)
		if err != nil {
			return nil, l.noArchive(ctx, err)
		}
		for _, m := range got {
			if e, ok := entryOf(m.Data); ok {
				out = append(out, e.Name)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { // as their numbers
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return out, nil
}

// DropArchive removes an object of archived commits, and has the server overwrite
// it. It is no error if there is none.
func (l *Log) DropArchive(ctx context.Context, name string) error {
	store, err := l.conn.JetStream().ObjectStore(ctx, l.cfg.Names.Bucket(assets.ArchiveBucket))
	if err == nil {
		err = l.erasePieces(ctx, store, assets.ArchiveBucket, name)
	}
	if err == nil {
		err = store.Delete(ctx, name)
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("dropping the archive %s: %w", name, err)
	}
	return nil
}
