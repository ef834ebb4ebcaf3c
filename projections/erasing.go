package projections

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// erase erases what streams and stores hold of a purged thread, once the timeline
// has shown its tombstone. The commits go last: they say what else there is, so
// that it can be begun again at any moment.
func (s *session) erase(ctx context.Context, e ending) error {
	if err := s.awaitTimeline(ctx, e); err != nil {
		return err
	}
	var h held
	err := s.inPlace(ctx, func() (err error) {
		if h, err = s.holds(ctx, e); err != nil {
			return err
		}
		return errors.Join(
			s.log.EraseTimeline(ctx, e.Tenant, e.Thread, h.tombstone),
			s.log.EraseThread(ctx, e.Tenant, e.Thread, h.executions),
			s.log.EraseCommands(ctx, e.Tenant, func(body []byte) bool { return asks(body, e.Thread) }),
		)
	})
	if err != nil {
		return err
	}
	if s.cfg.Contents != nil && len(h.contents) > 0 {
		if err := s.cfg.Contents.Erase(ctx, e.Tenant, h.contents); err != nil {
			return fmt.Errorf("erasing the contents of %s/%s: %w", e.Tenant, e.Thread, err)
		}
	}
	err = s.inPlace(ctx, func() error {
		return errors.Join(s.log.DropSnapshot(ctx, e.Tenant, e.Thread), s.log.EraseCommits(ctx, e.Tenant, e.Thread, e.Seq))
	})
	if err == nil {
		s.logger.Info().Str("tenant", e.Tenant).Str("thread", e.Thread).Msg("what a deleted thread held was erased")
	}
	return err
}

// held is what a thread's commits say of what is kept elsewhere.
type held struct {
	tombstone  *events.Commit
	executions []string
	contents   []string // by digest, each once
}

// holds reads a thread's commits. One that cannot be read is erased with the others.
func (s *session) holds(ctx context.Context, e ending) (held, error) {
	var h held
	seen := map[string]bool{}
	for c, err := range s.log.Thread(ctx, e.Tenant, e.Thread, 1) {
		var broken *events.BrokenError
		switch {
		case errors.As(err, &broken):
			continue
		case err != nil:
			return h, err
		}
		if c.Seq == e.Seq {
			h.tombstone = c
		}
		for i := range c.Events {
			switch d := c.Events[i].Data.(type) {
			case events.RunRequested:
				h.executions = append(h.executions, c.Events[i].Subject)
			case events.FileWritten:
				if d.Digest != "" && !seen[d.Digest] {
					seen[d.Digest] = true
					h.contents = append(h.contents, d.Digest)
				}
			}
		}
	}
	if h.tombstone == nil {
		return h, fmt.Errorf("the tombstone of %s/%s, commit %d, is not in the log", e.Tenant, e.Thread, e.Seq)
	}
	return h, nil
}

// asks reports whether a submitted command names a thread.
func asks(body []byte, thread string) bool {
	var req struct {
		ThreadID string `json:"threadId"`
	}
	return bytes.Contains(body, []byte(thread)) && json.Unmarshal(body, &req) == nil && req.ThreadID == thread
}

// awaitTimeline waits until the timeline has shown the tombstone, or has
// forgotten it.
func (s *session) awaitTimeline(ctx context.Context, e ending) error {
	names := s.log.Config().Names
	timeline, err := s.log.JetStream().Stream(ctx, names.Stream(eventlog.TimelineStream))
	if err != nil {
		return err
	}
	subject := names.Timeline(e.Tenant, e.Thread, events.LifecycleDeletedType)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		at, seqErr := s.log.TimelineSeq(ctx) // first: what it shows by now is there, or has expired
		_, err := timeline.GetLastMsgForSubject(ctx, subject)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return fmt.Errorf("the timeline of %s/%s: %w", e.Tenant, e.Thread, err)
		case seqErr == nil && at > e.Seq:
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
