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
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/chunks"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/eventlog/snapshots"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
)

// errTurnOver says that others come first for a while.
var errTurnOver = errors.New("the turn is over")

// turn does work that can be broken off and begun again, for so long as a turn takes.
// Each turn of an end is longer than the one before, so that it gets on even where
// beginning again takes long.
func (r *Runner) turn(ctx context.Context, o *openEnd, work func(context.Context) error) error {
	o.turns++
	ctx, over := context.WithTimeoutCause(ctx, time.Duration(o.turns)*r.cfg.EraseTurn, errTurnOver)
	defer over()
	err := work(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errTurnOver) {
		return errTurnOver
	}
	return err
}

// erase erases what streams and stores hold of a purged thread, once the timeline
// has shown its tombstone, or says when to try again: when its turn is over, others
// come first. The commits go last: they say what else there is, so that it can be
// begun again at any moment.
func (r *Runner) erase(ctx context.Context, o *openEnd) (again time.Duration, err error) {
	e := o.ending
	if shown, err := r.timelineShows(ctx, e); !shown || err != nil {
		o.pause = min(max(2*o.pause, 5*time.Millisecond), time.Second)
		return o.pause, err
	}
	h, err := r.holds(ctx, e)
	if err != nil {
		return 0, err
	}
	err = r.turn(ctx, o, func(ctx context.Context) error {
		return errors.Join(
			timeline.Of(r.log).Erase(ctx, e.Tenant, e.Thread, h.tombstone),
			chunks.Erase(ctx, r.log.Streams(), e.Tenant, e.Thread),
			queues.TimersOf(r.log).Erase(ctx, e.Tenant, e.Thread),
			queues.RunsOf(r.log).Erase(ctx, e.Tenant, h.executions),
			queues.SubmittedOf(r.log).Erase(ctx, e.Tenant, func(body []byte) bool { return asks(body, e.Thread) }),
		)
	})
	if err == nil && r.cfg.Contents != nil && len(h.contents) > 0 && !o.emptied {
		// Not in turns: it may read all of the tenant's log before it erases anything.
		again, err := r.cfg.Contents.Erase(ctx, e.Tenant, h.contents)
		if err != nil {
			return 0, fmt.Errorf("erasing the contents of %s/%s: %w", e.Tenant, e.Thread, err)
		}
		if again > 0 {
			return again, nil
		}
		o.emptied = true
	}
	if err == nil {
		err = r.turn(ctx, o, func(ctx context.Context) error { return r.eraseCommits(ctx, e, h.commits) })
	}
	if errors.Is(err, errTurnOver) {
		return time.Nanosecond, nil
	}
	return 0, err
}

// eraseCommits erases a thread's archives, snapshot and commits.
func (r *Runner) eraseCommits(ctx context.Context, e ending, commits []uint64) error {
	// The oldest first: each names the one before it.
	archives, err := r.log.Archives(ctx, e.Tenant, e.Thread, commits)
	for _, name := range archives {
		if err == nil {
			err = r.log.DropArchive(ctx, name)
		}
	}
	if err == nil {
		err = errors.Join(snapshots.On(r.log.Streams()).Drop(ctx, e.Tenant, e.Thread), r.log.EraseCommits(ctx, e.Tenant, e.Thread, e.Seq))
	}
	if err == nil {
		r.logger.Info().Str("tenant", e.Tenant).Str("thread", e.Thread).Msg("what a deleted thread held was erased")
	}
	return err
}

// held is what a thread's commits say of what is kept elsewhere.
type held struct {
	tombstone  *events.Commit
	commits    []uint64 // their sequences
	executions []string
	contents   []string // by digest, each once
}

// holds reads a thread's commits. One that cannot be read is erased with the others,
// as is an archive that is damaged; one that is gone was erased before.
func (r *Runner) holds(ctx context.Context, e ending) (held, error) {
	var h held
	seen := map[string]bool{}
	for c, err := range r.log.Thread(ctx, e.Tenant, e.Thread, 1) {
		var broken *events.BrokenError
		var archive *eventlog.ArchiveError
		switch {
		case errors.As(err, &broken):
			h.commits = append(h.commits, broken.Seq)
			continue
		case errors.As(err, &archive):
			continue
		case err != nil:
			return h, err
		}
		h.commits = append(h.commits, c.Seq)
		if d, ok := eventlog.Record(c); ok {
			h.commits = append(h.commits, uint64(d.LastSeq))
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

// timelineShows reports whether the timeline has shown the tombstone: it is there,
// or has expired.
func (r *Runner) timelineShows(ctx context.Context, e ending) (bool, error) {
	names := r.log.Config().Names
	stream, err := r.log.JetStream().Stream(ctx, names.Stream(assets.TimelineStream))
	if err != nil {
		return false, err
	}
	at, seqErr := timeline.Of(r.log).LastSeq(ctx) // first: what it shows by now is there, or has expired
	_, err = stream.GetLastMsgForSubject(ctx, names.Timeline(e.Tenant, e.Thread, events.LifecycleDeletedType))
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return false, fmt.Errorf("the timeline of %s/%s: %w", e.Tenant, e.Thread, err)
	}
	return seqErr == nil && at > e.Seq, nil
}
