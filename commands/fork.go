package commands

import (
	"context"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// maxHistoryBytes bounds what a fork holds in memory of its parent.
const maxHistoryBytes = 64 << 20

// beginFork reads the history of a fork's parent while nothing is held, so that the parent is
// held only to read what is written meanwhile. It returns nil for another command.
func (d *Dispatcher) beginFork(ctx context.Context, c *thread.Command) (*history, error) {
	fork, ok := c.Parts[0].Data.(events.ForkThread)
	if !ok {
		return nil, nil
	}
	upTo := int64(0)
	if fork.Version != nil {
		upTo = *fork.Version
	}
	h := newHistory(upTo)
	return h, d.readHistory(ctx, c.Tenant, c.ThreadID, h, 0)
}

// readHistory folds the commits that follow, up to a sequence, or as far as the log can be read.
func (d *Dispatcher) readHistory(ctx context.Context, tenant, id string, h *history, to uint64) error {
	for commit, err := range d.log.Thread(ctx, tenant, id, h.seq+1) {
		if err != nil {
			return err
		}
		if to > 0 && commit.Seq > to {
			return nil
		}
		if h.apply(commit); h.bytes > maxHistoryBytes {
			return events.TooLarge("the history of the thread", int64(h.bytes), maxHistoryBytes)
		}
	}
	return nil
}

// readOn brings a fork's history up to the parent's state, which is held.
func (g *grouped) readOn() error {
	if g.copied == nil {
		return nil
	}
	c, h, to := g.job.command, g.copied, g.entries[g.job.thread].state.Seq
	if err := g.d.readHistory(g.ctx, c.Tenant, c.ThreadID, h, to); err != nil {
		return err
	}
	for h.seq < to { // the copy that was read lags
		commit, err := g.d.log.After(g.ctx, c.Tenant, c.ThreadID, h.seq)
		if err != nil {
			return err
		}
		if commit == nil {
			return events.Errorf(events.Unavailable, "the history of the thread cannot be read now; nothing was written; try again")
		}
		h.apply(commit)
	}
	if !g.entries[g.job.thread].state.Exists() {
		return events.MissingThread(c.ThreadID)
	}
	copied, err := h.copied(c.Parts[0].Data.(events.ForkThread))
	c.Copied = copied
	if err != nil {
		return thread.Blame(err, c, 0)
	}
	return nil
}
