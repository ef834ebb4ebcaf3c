package projections

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// noteDeletions writes notes of the threads that were deleted in this batch. It must precede the
// batch's checkpoint.
func (s *session) noteDeletions(ctx context.Context) error {
	sh := s.shelves[documents.Threads]
	for _, d := range s.deletions {
		e := buckets.Deletion{Tenant: d.Tenant, Thread: d.Thread, Seq: d.Seq, Purge: d.Purge}
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if err := sh.fence.Send(ctx, sh.prefix+e.Key(), nil, raw); err != nil {
			return err
		}
	}
	return nil
}

// purgeDeleted purges the documents of at most Config.Purges deleted threads. The others follow
// between later batches. The cleaner does the rest of the cleanup, concurrently with the runner.
func (s *session) purgeDeleted(ctx context.Context) error {
	if err := s.cleaner.DeleteLate(ctx, s.created); err != nil {
		return err
	}
	clear(s.created)
	s.created = s.created[:0]
	if len(s.deletions) == 0 {
		return nil
	}
	for _, d := range s.deletions {
		s.purges.add(buckets.Deletion{Tenant: d.Tenant, Thread: d.Thread, Seq: d.Seq, Purge: d.Purge})
	}
	clear(s.deletions)
	s.deletions = s.deletions[:0]
	clear(s.gone)
	return s.purgeFew(ctx)
}

// resumeDeletions continues with the deletions that an earlier runner left open.
func (s *session) resumeDeletions(ctx context.Context) error {
	sh := s.shelves[documents.Threads]
	notes, err := s.log.Bucket(sh.Bucket).GetAt(ctx, sh.fence.Sent(), buckets.DeletionPrefix+">", buckets.CheckpointKey)
	if errors.Is(err, streams.ErrTooMany) {
		notes, err = s.log.Bucket(sh.Bucket).All(ctx, buckets.DeletionPrefix+">")
	}
	if err != nil {
		return fmt.Errorf("reading the notes of deletions: %w", err)
	}
	if len(notes) > 1 { // fence off an earlier runner, which must not write after the purge
		if err := s.storeCheckpoints(ctx, documents.AllKinds&^(1<<documents.Threads)); err != nil {
			return err
		}
	}
	for _, m := range notes {
		var e buckets.Deletion
		switch err := json.Unmarshal(m.Data, &e); {
		case m.Subject == buckets.CheckpointKey:
		case err != nil || e.Key() != m.Subject:
			s.logger.Error().Str("key", m.Subject).Msg("a note of a thread's deletion cannot be read and is skipped")
		default:
			s.purges.add(e)
		}
	}
	return s.purgeFew(ctx)
}

// purgeThread removes a deleted thread's documents, except the marker of its own document, and
// hands the deletion over to the cleaner. It may be repeated at any time.
func (s *session) purgeThread(ctx context.Context, e buckets.Deletion) error {
	name := documents.ThreadName(e.Tenant, e.Thread)
	results := make(chan error, documents.Kinds)
	asked := 0
	for _, sh := range s.shelves[documents.Threads+1:] {
		if sh.Kind == documents.Definitions {
			continue // threads have no documents of this kind
		}
		asked++
		go func() { results <- s.removeDocuments(ctx, sh, name, e.Seq) }()
	}
	var errs []error
	for range asked {
		errs = append(errs, <-results)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("purging the documents of %s: %w", name, err)
	}
	s.cleaner.Add(e)
	return nil
}

// removeDocuments removes a thread's documents from a bucket. If the server is killed, recovery
// may undo a purge. So a marker is first written under each key: it is an ordinary message, which
// replaces the document even after a recovery.
func (s *session) removeDocuments(ctx context.Context, sh *shelf, name string, seq uint64) error {
	pattern := sh.prefix + name + ".>"
	info, err := sh.stream.Info(ctx, jetstream.WithSubjectFilter(pattern))
	if err != nil {
		return err
	}
	if len(info.State.Subjects) == 0 {
		return nil
	}
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		if err := sh.fence.Send(ctx, subject, buckets.Marker(seq), nil); err != nil {
			return err
		}
	}
	if err := sh.fence.Flush(ctx); err != nil {
		return err
	}
	return streams.Purge(ctx, sh.stream, jetstream.WithPurgeSubject(pattern))
}
