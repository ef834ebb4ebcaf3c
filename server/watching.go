package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/operator/store"
)

// How often the sealed blocks of the store are read again: at intervals and, when a
// read was not answered, immediately, but not more often than that.
const (
	scanEvery = time.Hour
	scanPause = 15 * time.Second
)

// watch knows which parts of the store of the embedded server cannot be read.
type watch struct {
	asked chan struct{} // of capacity 1: a read failed

	mu      sync.Mutex // guards the fields below
	damages []store.Damage
}

// damage returns why messages of a range cannot be read, if known, and otherwise has
// the store read. It is for eventlog.Config.
func (w *watch) damage(stream string, from, to uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.damages {
		if d.Stream == stream && d.From <= to && (d.To == 0 || d.To >= from) {
			return errors.New(d.String())
		}
	}
	select {
	case w.asked <- struct{}{}:
	default:
	}
	return nil
}

// readable returns an error for unreadable parts of the store.
func (w *watch) readable(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.damages) == 0 {
		return nil
	}
	more := ""
	if n := len(w.damages) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Errorf("the store is damaged: %s%s; stop Skein, and repair it with skein store repair", w.damages[0], more)
}

// watchStore reads the sealed blocks again, at intervals, until background ends.
func (s *Server) watchStore(background context.Context) {
	if s.store == nil {
		return
	}
	s.running.Go(func() {
		tick := time.NewTicker(scanEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-s.watch.asked:
			case <-background.Done():
				return
			}
			begun := time.Now()
			s.scanStore(background)
			if !retry.Sleep(background, restAfter(time.Since(begun))) {
				return
			}
		}
	})
}

// restAfter returns how long the store is not read again after it was. A server that is slow to
// answer has much to do: reading a large store takes at most a twentieth of a processor from it.
func restAfter(took time.Duration) time.Duration { return max(scanPause, 19*took) }

// scanStore reads the sealed blocks once.
func (s *Server) scanStore(ctx context.Context) {
	found, err := s.store.Scan(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.logger.Warn().Err(err).Msg("cannot read the blocks of the store again")
		}
		return
	}
	s.watch.mu.Lock()
	before := s.watch.damages
	s.watch.damages = found
	s.watch.mu.Unlock()
	s.metrics.Damaged(len(found))
	for _, d := range found {
		if !slices.Contains(before, d) {
			s.logger.Error().Str("stream", d.Stream).Str("file", d.File).Uint64("from", d.From).Uint64("to", d.To).
				Msg("the store is damaged: " + d.String() + "; stop Skein, and repair it with skein store repair")
		}
	}
}
