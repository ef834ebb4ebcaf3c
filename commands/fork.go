package commands

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/share"
)

// forkPlace waits for a place to fork a thread, whose history may be long. Other commands need
// none.
func (d *Dispatcher) forkPlace(ctx context.Context, c *thread.Command) (leave func(), err error) {
	if _, ok := c.Parts[0].Data.(events.ForkThread); !ok {
		return func() {}, nil
	}
	leave, err = d.cfg.Forks.Wait(ctx, c.Tenant)
	if full := (*share.FullError)(nil); errors.As(err, &full) {
		return nil, events.Errorf(events.Unavailable, "%s", full)
	}
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "the places for forks were taken for too long; nothing was written; try again")
	}
	return leave, nil
}

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
	h := d.histories.take(c.Tenant, c.ThreadID, upTo)
	for {
		if err := d.readHistory(ctx, h, 0); err != nil {
			return nil, err
		}
		if err := h.settle(d.pagesOf(ctx, h)); err != nil {
			return nil, err
		}
		all, err := d.storePages(ctx, h, true)
		if err != nil {
			return nil, err
		}
		if all {
			return h, nil
		}
		h = newHistory(c.Tenant, c.ThreadID, upTo) // pages that nothing named were deleted since
	}
}

// readHistory folds the commits that follow, up to a sequence, or as far as the log can be read.
func (d *Dispatcher) readHistory(ctx context.Context, h *history, to uint64) error {
	for commit, err := range d.log.Thread(ctx, h.tenant, h.thread, h.seq+1) {
		if err != nil {
			return err
		}
		if to > 0 && commit.Seq > to {
			return nil
		}
		if err := d.foldHistory(ctx, h, commit); err != nil {
			return err
		}
	}
	return nil
}

// foldHistory folds the next commit.
func (d *Dispatcher) foldHistory(ctx context.Context, h *history, commit *events.Commit) error {
	if err := h.apply(commit); err != nil {
		return err
	}
	if h.unread != nil {
		if err := h.inherit(d.eachPage(ctx, h.tenant, h.unread.Pages)); err != nil {
			return err
		}
	}
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
	for h.seq < to { // the copy that was read lags
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

// histories keeps what was read of the long threads that were forked last, so that the next
// fork reads what was written since. It is safe for concurrent use.
type histories struct {
	mu   sync.Mutex
	kept []*history // the one used last is the last
}

// Bounds of the histories that are kept.
const (
	maxHistories = 4
	maxPlaces    = 1 << 20 // of one: more are read again each time
)

// take returns the history of a thread, for one user: a new one unless it was kept.
func (k *histories) take(tenant, thread string, upTo int64) *history {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, h := range k.kept {
		if upTo == 0 && h.tenant == tenant && h.thread == thread {
			k.kept = slices.Delete(k.kept, i, i+1)
			return h
		}
	}
	return newHistory(tenant, thread, upTo)
}

// put keeps a history for the next fork.
func (k *histories) put(h *history) {
	if h == nil || h.upTo != 0 || len(h.pages) == 0 || len(h.places) > maxPlaces {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, h)
	if len(k.kept) > maxHistories {
		k.kept = slices.Delete(k.kept, 0, 1)
	}
}
