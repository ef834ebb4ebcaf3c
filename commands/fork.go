package commands

import (
	"context"
	"errors"
	"slices"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// forkPlace waits for a place to fork a thread, whose history may be long. Other commands need
// none.
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

// takeHistory takes what was read of the history of a fork's parent, as far as the fork needs it,
// for this command alone. It returns nil for another command.
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

// beginFork reads the history of a fork's parent while nothing is held, so that the parent is
// held only to read what is written meanwhile. It returns the history also if it could not be read
// to its end.
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
		h = newHistory(h.historyOf) // pages that nothing named were deleted since
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

// pagesOf returns a reader of a history's pages, those that are not stored yet included.
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

// readOn brings a fork's history up to the parent's state, which is held, and takes from it
// what the fork copies.
func (g *grouped) readOn() error {
	if g.copied == nil {
		return nil
	}
	d, c, h, to := g.d, g.job.command, g.copied, g.entries[g.job.thread].state.Seq
	if err := d.readHistory(g.ctx, h, to); err != nil {
		return err
	}
	for h.seq < to && !h.done() { // the copy that was read lags
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
