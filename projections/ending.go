package projections

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/snapshots"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/documents"
)

// ending is the end of a thread that is not finished yet, as it stands in the
// bucket of threads, so that it is finished after a crash.
type ending struct {
	Tenant string `json:"tenant"`
	Thread string `json:"thread"`
	Seq    uint64 `json:"seq"` // of the tombstone's commit
	Purge  bool   `json:"purge,omitzero"`
}

func (e ending) key() string { return deletionPrefix + documents.ThreadName(e.Tenant, e.Thread) }

// noteEnds writes down which threads ended in this batch, before its checkpoint.
func (s *session) noteEnds(ctx context.Context) error {
	sh := s.shelves[documents.Threads]
	for _, d := range s.ends {
		e := ending{Tenant: d.Tenant, Thread: d.Thread, Seq: d.Seq, Purge: d.Purge}
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if err := sh.fence.Send(ctx, sh.prefix+e.key(), nil, raw); err != nil {
			return err
		}
	}
	return nil
}

// endThreads purges the documents of the threads that ended in this batch. What
// has to wait for the timeline goes on beside the runner.
func (s *session) endThreads(ctx context.Context) error {
	if err := s.orphans(ctx); err != nil {
		return err
	}
	if len(s.ends) == 0 {
		return nil
	}
	for _, d := range s.ends {
		if err := s.endThread(ctx, ending{Tenant: d.Tenant, Thread: d.Thread, Seq: d.Seq, Purge: d.Purge}); err != nil {
			return err
		}
	}
	clear(s.ends)
	s.ends = s.ends[:0]
	clear(s.dead)
	return nil
}

// resumeEnds finishes the ends that a runner before this one did not.
func (s *session) resumeEnds(ctx context.Context) error {
	sh := s.shelves[documents.Threads]
	notes, err := s.log.Bucket(sh.Bucket).GetAt(ctx, sh.fence.Sent(), deletionPrefix+">", checkpointKey)
	if errors.Is(err, streams.ErrTooMany) {
		notes, err = readAll(ctx, s.log, sh.Bucket, deletionPrefix+">")
	}
	if err != nil {
		return fmt.Errorf("reading the ends of threads: %w", err)
	}
	if len(notes) > 1 { // a runner before this one must not write after the purge
		if err := s.storeCheckpoints(ctx, documents.AllKinds&^(1<<documents.Threads)); err != nil {
			return err
		}
	}
	for _, m := range notes {
		var e ending
		switch err := json.Unmarshal(m.Data, &e); {
		case m.Subject == checkpointKey:
		case err != nil || e.key() != m.Subject:
			s.logger.Error().Str("key", m.Subject).Msg("a note of a thread's end cannot be read and is left out")
		default:
			if err := s.endThread(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// endThread removes what is left of a thread besides its tombstone. It may be
// done again at any time.
func (s *session) endThread(ctx context.Context, e ending) error {
	name := documents.ThreadName(e.Tenant, e.Thread)
	results := make(chan error, documents.Kinds)
	asked := 0
	for _, sh := range s.shelves[documents.Threads+1:] {
		if sh.Kind == documents.Definitions {
			continue // a thread has none
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
	if err := snapshots.On(s.log.Streams()).Drop(ctx, e.Tenant, e.Thread); err != nil {
		return err
	}
	s.enders.add(e)
	return nil
}

// removeDocuments removes what a bucket holds of a thread. A purge alone may be
// undone when the server is killed and recovers the stream from its files: a marker
// under each key comes first, which is a message as any other and replaces the
// document, also after a recovery.
func (s *session) removeDocuments(ctx context.Context, sh *shelf, name string, seq uint64) error {
	pattern := s.subjectOf(sh.Bucket, name+".>")
	info, err := sh.stream.Info(ctx, jetstream.WithSubjectFilter(pattern))
	if err != nil {
		return err
	}
	if len(info.State.Subjects) == 0 {
		return nil
	}
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		if err := sh.fence.Send(ctx, subject, marker(seq), nil); err != nil {
			return err
		}
	}
	if err := sh.fence.Flush(ctx); err != nil {
		return err
	}
	return sh.stream.Purge(ctx, jetstream.WithPurgeSubject(pattern))
}
