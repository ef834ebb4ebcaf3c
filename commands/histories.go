package commands

import (
	"context"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/service"
)

// historyOf identifies a history: a thread, and the version that it ends at.
type historyOf struct {
	tenant, thread string
	upTo           int64 // the version after which events do not count; 0: all do
}

// Bounds of the histories that are kept for the next fork of a thread. The next fork only reads
// what was written since, and stores no page again. One fork at a time uses a history. If a fork
// times out, the client's repeat continues with what the first attempt has read.
const (
	maxHistories = 4
	maxPlaces    = 1 << 20 // of one history: a longer one is read again each time
)

// histories keeps the histories of long threads that were forked recently.
type histories = service.Resumable[historyOf, *history]

func newHistories() *histories {
	return service.NewResumable[historyOf, *history](service.ResumableBounds{Values: maxHistories})
}

// openHistory returns a history for exclusive use: the kept one, or a new one. The caller must
// call closeHistory.
func (d *Dispatcher) openHistory(ctx context.Context, of historyOf) (*history, error) {
	h, err := d.histories.Take(ctx, of)
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "fork the thread: its history was in use by other forks for too long; nothing was written; try again")
	}
	if h == nil {
		h = newHistory(of)
	}
	return h, nil
}

// closeHistory keeps a history for the next fork.
func (d *Dispatcher) closeHistory(h *history) {
	switch {
	case h == nil:
	case h.broken || h.unread != nil || len(h.pages) == 0 || len(h.places) > maxPlaces:
		d.histories.Drop(h.historyOf)
	default:
		d.histories.Put(h.historyOf, h, 1)
	}
}
