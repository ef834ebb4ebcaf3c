package commands

import (
	"context"
	"slices"
	"sync"

	"github.com/skein-threads/skein/events"
)

// histories keeps what was read of the long threads that were forked last, so that the next
// fork reads what was written since. It is safe for concurrent use.
//
// One fork at a time reads a history. A client that has no answer after some seconds sends its
// command again: the repeat waits, and continues with what was read until the first one's time was
// over, so that a history is read at last however long that takes.
type histories struct {
	mu    sync.Mutex                  // guards what follows
	kept  []*history                  // the one used last is the last
	taken map[historyOf]chan struct{} // closed when it is put back
}

func newHistories() *histories { return &histories{taken: map[historyOf]chan struct{}{}} }

// historyOf says what a history is of.
type historyOf struct {
	tenant, thread string
	upTo           int64 // the version after which events do not count; 0: all do
}

// Bounds of the histories that are kept.
const (
	maxHistories = 4
	maxPlaces    = 1 << 20 // of one: more are read again each time
)

// take returns a history, for one user: a new one unless it was kept. The caller must call put.
func (k *histories) take(ctx context.Context, of historyOf) (*history, error) {
	for {
		h, wait := k.takeNow(of)
		if h != nil {
			return h, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, events.Errorf(events.Unavailable, "the history of the thread was read for another fork all the time; nothing was written; try again")
		}
	}
}

// takeNow returns the history, or what is closed when it is put back.
func (k *histories) takeNow(of historyOf) (*history, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if wait, taken := k.taken[of]; taken {
		return nil, wait
	}
	k.taken[of] = make(chan struct{})
	if i := slices.IndexFunc(k.kept, func(h *history) bool { return h.historyOf == of }); i >= 0 {
		h := k.kept[i]
		k.kept = slices.Delete(k.kept, i, i+1)
		return h, nil
	}
	return newHistory(of), nil
}

// put keeps a history for the next fork.
func (k *histories) put(h *history) {
	if h == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.taken[h.historyOf])
	delete(k.taken, h.historyOf)
	if h.broken || h.unread != nil || len(h.pages) == 0 || len(h.places) > maxPlaces {
		return
	}
	k.kept = append(k.kept, h)
	if len(k.kept) > maxHistories {
		k.kept = slices.Delete(k.kept, 0, 1)
	}
}
