package cleanup

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
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// errTurnOver means that the turn has ended.
var errTurnOver = errors.New("the turn is over")

// inTurn runs interruptible work for the length of a turn. Each turn of a deletion is longer than
// the one before, so that it makes progress even if resuming takes long.
func (c *Cleaner) inTurn(ctx context.Context, o *openDeletion, work func(context.Context) error) error {
	o.turns++
	ctx, over := context.WithTimeoutCause(ctx, time.Duration(o.turns)*c.cfg.EraseTurn, errTurnOver)
	defer over()
	err := work(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errTurnOver) {
		return errTurnOver
	}
	return err
}

// erase erases what streams and stores hold of a purged thread, once the timeline has shown its
// tombstone. If it has not, or when the turn is over, erase returns when to try again. The commits
// are erased last, because they say what else there is to erase after a restart.
func (c *Cleaner) erase(ctx context.Context, o *openDeletion) (again time.Duration, err error) {
	d := o.Deletion
	if shown, err := c.timelineShows(ctx, d); !shown || err != nil {
		o.pause = min(max(2*o.pause, 5*time.Millisecond), time.Second)
		return o.pause, err
	}
	h, err := c.holds(ctx, d)
	if err != nil {
		return 0, err
	}
	err = c.inTurn(ctx, o, func(ctx context.Context) error {
		return errors.Join(
			timeline.Of(c.log).Erase(ctx, d.Tenant, d.Thread, h.tombstone),
			chunks.Erase(ctx, c.log.Streams(), d.Tenant, d.Thread),
			queues.TimersOf(c.log).Erase(ctx, d.Tenant, d.Thread),
			queues.RunsOf(c.log).Erase(ctx, d.Tenant, d.Thread, h.executions),
			queues.SubmittedOf(c.log).Erase(ctx, d.Tenant, func(body []byte) bool { return namesThread(body, d.Thread) }),
		)
	})
	if err == nil && c.cfg.Contents != nil && !o.emptied {
		// Not in turns: it may have to read all of the tenant's log first.
		again, err := c.eraseContents(ctx, d, h)
		if err != nil {
			return 0, fmt.Errorf("erasing the contents of %s/%s: %w", d.Tenant, d.Thread, err)
		}
		if again > 0 {
			return again, nil
		}
		o.emptied = true
	}
	if err == nil {
		err = c.inTurn(ctx, o, func(ctx context.Context) error { return c.eraseCommits(ctx, d, h.commits) })
	}
	if errors.Is(err, errTurnOver) {
		return time.Nanosecond, nil
	}
	return 0, err
}

// eraseContents erases the contents that the thread names, and the pages that were made of its
// history.
func (c *Cleaner) eraseContents(ctx context.Context, d buckets.Deletion, h held) (again time.Duration, err error) {
	if len(h.contents) > 0 {
		if again, err = c.cfg.Contents.Erase(ctx, d.Tenant, h.contents); err != nil {
			return 0, err
		}
	}
	if !h.inherits && h.bytes < pagedBytes {
		return again, nil
	}
	pages, err := c.cfg.Contents.ErasePages(ctx, d.Tenant, d.Thread)
	return max(again, pages), err
}

// pagedBytes is the size of a thread's commits from which forks may have stored pages of its
// history: less than half of what a fork copies without pages.
const pagedBytes = 256 << 10

// eraseCommits erases a thread's archives, snapshot and commits.
func (c *Cleaner) eraseCommits(ctx context.Context, d buckets.Deletion, commits []uint64) error {
	err := c.log.EraseArchives(ctx, d.Tenant, d.Thread, commits)
	if err == nil {
		err = errors.Join(eventlog.SnapshotsOn(c.log.Streams()).Drop(ctx, d.Tenant, d.Thread), c.log.EraseCommits(ctx, d.Tenant, d.Thread, d.Seq))
	}
	if err == nil {
		c.logger.Info().Str("tenant", d.Tenant).Str("thread", d.Thread).Msg("what a deleted thread held was erased")
	}
	return err
}

// held lists what a thread's commits name in other stores.
type held struct {
	tombstone  *events.Commit
	commits    []uint64 // their sequences
	executions []string
	contents   []string // by digest, without duplicates
	bytes      int      // of its commits
	inherits   bool     // the thread has inherited the history of another
}

// holds reads a thread's commits. Commits and archives that cannot be read are erased all the
// same; a missing archive was erased before.
func (c *Cleaner) holds(ctx context.Context, deleted buckets.Deletion) (held, error) {
	var h held
	seen := map[string]bool{}
	for commit, err := range c.log.Thread(ctx, deleted.Tenant, deleted.Thread, 1) {
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
		h.commits = append(h.commits, commit.Seq)
		h.bytes += len(commit.Body)
		h.inherits = h.inherits || documents.Inherits(commit)
		if d, ok := eventlog.Record(commit); ok {
			h.commits = append(h.commits, uint64(d.LastSeq))
		}
		if commit.Seq == deleted.Seq {
			h.tombstone = commit
		}
		for i := range commit.Events {
			e := &commit.Events[i]
			if e.Type == events.RunRequestedType {
				h.executions = append(h.executions, e.Subject)
			}
			for digest := range e.Contents() {
				if !seen[digest] {
					seen[digest] = true
					h.contents = append(h.contents, digest)
				}
			}
		}
	}
	if h.tombstone == nil {
		return h, fmt.Errorf("the tombstone of %s/%s, commit %d, is not in the log", deleted.Tenant, deleted.Thread, deleted.Seq)
	}
	return h, nil
}

// namesThread reports whether a submitted command names a thread.
func namesThread(body []byte, thread string) bool {
	var req struct {
		ThreadID string `json:"threadId"`
	}
	return bytes.Contains(body, []byte(thread)) && json.Unmarshal(body, &req) == nil && req.ThreadID == thread
}

// timelineShows reports whether the timeline has shown the tombstone, which may have expired
// since.
func (c *Cleaner) timelineShows(ctx context.Context, d buckets.Deletion) (bool, error) {
	names := c.log.Config().Names
	stream, err := c.log.Streams().Stream(ctx, names.Stream(assets.TimelineStream))
	if err != nil {
		return false, err
	}
	at, seqErr := timeline.Of(c.log).LastSeq(ctx) // read first: an event up to here is in the timeline, or has expired
	_, err = stream.GetLastMsgForSubject(ctx, names.Timeline(d.Tenant, d.Thread, events.LifecycleDeletedType))
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return false, fmt.Errorf("the timeline of %s/%s: %w", d.Tenant, d.Thread, err)
	}
	return seqErr == nil && at > d.Seq, nil
}
