package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
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
		if err := sh.fence.Put(ctx, sh.Bucket, e.key(), raw); err != nil {
			return err
		}
	}
	return nil
}

// endThreads purges the documents of the threads that ended in this batch. What
// has to wait for the timeline goes on beside the runner.
func (s *session) endThreads(ctx context.Context) error {
	if len(s.ends) == 0 {
		return nil
	}
	// Until the marker is stored, a replaced runner must not purge anything.
	if err := s.shelves[documents.Threads].fence.Flush(ctx); err != nil {
		return err
	}
	for _, d := range s.ends {
		if err := s.endThread(ctx, ending{Tenant: d.Tenant, Thread: d.Thread, Seq: d.Seq, Purge: d.Purge}); err != nil {
			return err
		}
	}
	s.ends = s.ends[:0]
	clear(s.dead)
	return nil
}

// resumeEnds finishes the ends that a runner before this one did not.
func (s *session) resumeEnds(ctx context.Context) error {
	sh := s.shelves[documents.Threads]
	notes, err := s.log.KeysAt(ctx, sh.Bucket, sh.fence.Sent(), deletionPrefix+">", checkpointKey)
	if errors.Is(err, eventlog.ErrTooMany) {
		notes, err = readAll(ctx, s.log, sh.Bucket, deletionPrefix+">")
	}
	if err != nil {
		return fmt.Errorf("reading the ends of threads: %w", err)
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

// endThread removes what is left of a thread beside its tombstone. It may be
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
		go func() {
			results <- sh.stream.Purge(ctx, jetstream.WithPurgeSubject(s.subjectOf(sh.Bucket, name+".>")))
		}()
	}
	var errs []error
	for range asked {
		errs = append(errs, <-results)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("purging the documents of %s: %w", name, err)
	}
	if err := s.log.DropSnapshot(ctx, e.Tenant, e.Thread); err != nil {
		return err
	}
	if !e.Purge {
		return s.forgetEnd(ctx, e)
	}
	if !s.beginErasing(name) {
		return nil // an earlier session's work goes on
	}
	s.running.Go(func() {
		defer s.endErasing(name)
		if err := s.eraseEvents(s.beside, e); err != nil && s.beside.Err() == nil {
			s.logger.Error().Err(err).Str("tenant", e.Tenant).Str("thread", e.Thread).
				Msg("the events of a thread could not be erased; it is tried again when the runner begins again")
		}
	})
	return nil
}

// beginErasing reports whether nobody erases the thread's events yet.
func (r *Runner) beginErasing(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.erasing[name] {
		return false
	}
	r.erasing[name] = true
	return true
}

func (r *Runner) endErasing(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.erasing, name)
}

// forgetEnd takes the note away: the end is finished.
func (s *session) forgetEnd(ctx context.Context, e ending) error {
	sh := s.shelves[documents.Threads]
	if err := sh.stream.Purge(ctx, jetstream.WithPurgeSubject(s.subjectOf(sh.Bucket, e.key()))); err != nil {
		return fmt.Errorf("the note of the end of %s/%s: %w", e.Tenant, e.Thread, err)
	}
	return nil
}

// eraseEvents erases a thread's events from the log and the timeline, up to its
// tombstone, once the timeline has shown that.
func (s *session) eraseEvents(ctx context.Context, e ending) error {
	names := s.log.Config().Names
	timeline, err := s.log.JetStream().Stream(ctx, names.Stream(eventlog.TimelineStream))
	if err != nil {
		return err
	}
	tombstone, err := s.awaitTimeline(ctx, timeline, e)
	if err != nil {
		return err
	}
	opts := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(names.Timeline(e.Tenant, e.Thread, ">"))}
	if tombstone > 0 {
		opts = append(opts, jetstream.WithPurgeSequence(tombstone))
	}
	if err := timeline.Purge(ctx, opts...); err != nil {
		return fmt.Errorf("purging the timeline: %w", err)
	}
	log, err := s.log.JetStream().Stream(ctx, names.Stream(eventlog.LogStream))
	if err != nil {
		return err
	}
	if err := log.Purge(ctx, jetstream.WithPurgeSubject(names.Log(e.Tenant, e.Thread)), jetstream.WithPurgeSequence(e.Seq)); err != nil {
		return fmt.Errorf("purging the log: %w", err)
	}
	chunks, err := s.log.JetStream().Stream(ctx, names.Stream(eventlog.ChunkStream))
	if err != nil {
		return err
	}
	if err := chunks.Purge(ctx, jetstream.WithPurgeSubject(names.Chunk(e.Tenant, e.Thread, "*"))); err != nil {
		return fmt.Errorf("purging the chunks: %w", err)
	}
	s.logger.Info().Str("tenant", e.Tenant).Str("thread", e.Thread).Msg("the events of a deleted thread were erased")
	return s.forgetEnd(ctx, e)
}

// awaitTimeline waits until the timeline has shown the tombstone, and gives its
// place there: 0 if it has expired.
func (s *session) awaitTimeline(ctx context.Context, timeline jetstream.Stream, e ending) (uint64, error) {
	subject := s.log.Config().Names.Timeline(e.Tenant, e.Thread, events.LifecycleDeletedType)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		at, seqErr := s.log.TimelineSeq(ctx) // first: what it shows by now is there, or has expired
		m, err := timeline.GetLastMsgForSubject(ctx, subject)
		switch {
		case err == nil:
			return m.Sequence, nil
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return 0, fmt.Errorf("the timeline of %s/%s: %w", e.Tenant, e.Thread, err)
		case seqErr == nil && at > e.Seq:
			return 0, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
