package commands

import (
	"context"
	"errors"
	"slices"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// forkPlace waits for a place in Config.Forks if the command is a fork. For any other command it
// returns at once.
func (d *Dispatcher) forkPlace(ctx context.Context, c *thread.Command) (leave func(), err error) {
	if _, ok := c.Parts[0].Data.(events.ForkThread); !ok {
		return func() {}, nil
	}
	leave, err = d.cfg.Forks.Wait(ctx, c.Tenant)
	if full := (*quota.FullError)(nil); errors.As(err, &full) {
		return nil, events.Errorf(events.Unavailable, "%s", full)
	}
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "the places for forks were taken for too long; nothing was written; try again")
	}
	return leave, nil
}

// takeHistory returns the history of a fork's parent, for this command alone, with what earlier
// forks have read of it. It returns nil if the command is not a fork.
func (d *Dispatcher) takeHistory(ctx context.Context, c *thread.Command) (*history, error) {
	fork, ok := c.Parts[0].Data.(events.ForkThread)
	if !ok {
		return nil, nil
	}
	of := historyOf{tenant: c.Tenant, thread: c.ThreadID}
	if fork.Version != nil {
		of.upTo = *fork.Version
	}
	return d.openHistory(ctx, of)
}

// beginFork reads the history of a fork's parent before the parent is locked, so that the lock
// only covers reading what was written meanwhile. It also returns the history if it could not be
// read to its end.
func (d *Dispatcher) beginFork(ctx context.Context, h *history) (*history, error) {
	for h != nil {
		if err := d.readHistory(ctx, h, 0); err != nil {
			return h, err
		}
		if err := h.settle(d.pagesOf(ctx, h)); err != nil {
			return h, err
		}
		if all, err := d.storePages(ctx, h, true); all || err != nil {
			return h, err
		}
		h = newHistory(h.historyOf) // the collector has deleted pages that no event named: start again
	}
	return nil, nil
}

// readHistory folds the commits that follow, up to a sequence, or as far as the log can be read.
func (d *Dispatcher) readHistory(ctx context.Context, h *history, to uint64) error {
	if h.done() {
		return nil
	}
	for commit, err := range d.log.Thread(ctx, h.tenant, h.thread, h.seq+1) {
		if err != nil {
			return err
		}
		if to > 0 && commit.Seq > to {
			return nil
		}
		if err := d.foldHistory(ctx, h, commit); err != nil || h.done() {
			return err
		}
	}
	return nil
}

// foldHistory folds the next commit.
func (d *Dispatcher) foldHistory(ctx context.Context, h *history, commit *events.Commit) error {
	h.broken = true
	if err := h.apply(commit); err != nil {
		return err
	}
	if h.unread != nil {
		if err := h.inherit(d.eachPage(ctx, h.tenant, h.unread.Pages)); err != nil {
			return err
		}
	}
	h.broken = false
	if len(h.fresh) < 2*pagesAtOnce {
		return nil
	}
	_, err := d.storePages(ctx, h, false)
	return err
}

// pagesOf returns a function that reads a history's pages, including those that are not stored
// yet.
func (d *Dispatcher) pagesOf(ctx context.Context, h *history) func(...events.HistoryPart) ([]*events.HistoryPage, error) {
	return func(parts ...events.HistoryPart) ([]*events.HistoryPage, error) {
		if slices.ContainsFunc(parts, func(p events.HistoryPart) bool { return h.fresh[p.Digest] != nil }) {
			if _, err := d.storePages(ctx, h, false); err != nil {
				return nil, err
			}
		}
		return d.readPages(ctx, h.tenant, parts)
	}
}

// readOn reads a fork's history up to the state of the parent, which is locked, and takes from it
// what the fork copies.
func (g *multiTx) readOn() error {
	if g.copied == nil {
		return nil
	}
	d, c, h, to := g.d, g.job.command, g.copied, g.entries[g.job.thread].state.Seq
	if err := d.readHistory(g.ctx, h, to); err != nil {
		return err
	}
	for h.seq < to && !h.done() { // the replica that was read lags
		commit, err := d.log.After(g.ctx, c.Tenant, c.ThreadID, h.seq)
		if err != nil {
			return err
		}
		if commit == nil {
			return events.Errorf(events.Unavailable, "the history of the thread cannot be read now; nothing was written; try again")
		}
		if err := d.foldHistory(g.ctx, h, commit); err != nil {
			return err
		}
	}
	if !g.entries[g.job.thread].state.Exists() {
		return events.MissingThread(c.ThreadID)
	}
	copied, end, err := h.copied(c.Parts[0].Data.(events.ForkThread))
	if err != nil {
		return thread.Blame(err, c, 0)
	}
	h.endCalls(end)
	read := d.pagesOf(g.ctx, h)
	if err := h.settle(read); err != nil {
		return err
	}
	if err := h.take(copied, end, read); err != nil {
		return thread.Blame(err, c, 0)
	}
	c.Copied = copied
	_, err = d.storePages(g.ctx, h, false)
	return err
}
