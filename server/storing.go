package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/operator/store"
	"github.com/skein-threads/skein/server/metrics"
)

// markEvery is how often the end of the streams is recorded.
const markEvery = 2 * time.Second

// markedOthers is of how many streams, besides those that every store has, it is recorded each time:
// the buckets of tenants.
const markedOthers = 16

// openStore checks that the embedded server will find all its data.
func (s *Server) openStore(ctx context.Context, dir string) error {
	var said time.Time
	derived := func(stream string) bool { return assets.Derived(s.cfg.Names, stream) }
	opened, err := store.Open(ctx, store.Config{Dir: dir, Log: s.cfg.Names.Stream(assets.LogStream), Derived: derived, Progress: func(done, total int64) {
		if now := time.Now(); now.Sub(said) >= 2*time.Second {
			said = now
			s.logger.Info().Int64("read_mib", done>>20).Int64("of_mib", total>>20).Msg("the store was not closed cleanly; reading every block of it")
		}
	}})
	s.store = opened
	if err != nil {
		return err
	}
	for _, d := range opened.DerivedGone() {
		s.logger.Error().Str("stream", d.Stream).Str("file", d.File).Str("cause", d.Cause).
			Msg("something derived is gone from the store; the log has all of it: run skein replay, and skein replay timeline")
	}
	return nil
}

// unwritable notes that the embedded server could not write. It does not retry, so
// nothing is stored until it is restarted.
func (s *Server) unwritable(dir string, cause error) {
	until, next := "there is room", "make room on its disk"
	if !errors.Is(cause, syscall.ENOSPC) && !errors.Is(cause, syscall.EDQUOT) {
		until, next = "that was mended", "let Skein write its files"
	}
	out := fmt.Errorf("the store %s cannot be written, and nothing is stored until %s and Skein was started again: %w", dir, until, cause)
	if s.outage.Begin(out) {
		s.logger.Error().Err(cause).Str("store", dir).
			Msg("the store cannot be written: commands are refused, queries go on; " + next + " and start Skein again")
	}
}

// otherUnwritable notes that the embedded server takes no writes to a stream of which commands do not
// depend, most often one that is derived.
func (s *Server) otherUnwritable(err *embedded.UnwrittenError) {
	s.store.Suspect()
	next := "the start reads all of the store, and says what is damaged"
	if assets.Derived(s.cfg.Names, err.Stream) {
		next = "it is derived, so what can be read of it is kept, and skein replay and skein replay timeline make the rest again"
	}
	s.logger.Error().Err(err).Str("stream", err.Stream).Msg("a stream cannot be written until Skein is started again: " + next)
}

// roomOf returns what tells whether a commit fits on the disk of the store. It logs when that changes.
func (s *Server) roomOf(dir string) func(bytes int) error {
	var refused atomic.Int64 // bytes, if it was full
	return func(bytes int) error {
		err := store.Full(dir, bytes)
		switch {
		case err != nil && refused.CompareAndSwap(0, int64(max(bytes, 1))):
			s.logger.Error().Err(err).Str("store", dir).Msg("the store is full: what does not fit is refused, queries go on")
		case err == nil && int64(bytes) >= refused.Load() && refused.Swap(0) > 0:
			s.logger.Info().Str("store", dir).Msg("the store has room again: commands are taken")
		}
		return err
	}
}

// storeReady returns why the store cannot be written or read.
func (s *Server) storeReady(ctx context.Context) error {
	if s.nats != nil {
		if err := s.nats.Unwritten(); err != nil {
			s.unwritable(s.cfg.Store, err)
		}
	}
	if err := s.outage.Err(); err != nil {
		return errors.Join(err, s.watch.readable(ctx))
	}
	return errors.Join(s.writing.Err(), s.watch.readable(ctx))
}

// watchWriting has each scrape of the metrics ask whether something can be stored.
func (s *Server) watchWriting() {
	s.metrics.WatchStore(func() metrics.Store {
		var full *streams.FullError
		err := s.writing.Err()
		out := metrics.Store{Full: errors.As(err, &full), Failing: s.outage.Err() != nil}
		out.Failing = out.Failing || err != nil && !out.Full
		if s.nats != nil {
			out.Free, out.Known = store.Free(s.cfg.Store)
		}
		return out
	})
}

// closeStore notes that the embedded server has ended.
func (s *Server) closeStore() {
	if s.outage.Err() != nil {
		return // what is in its files is for the next start to see
	}
	if err := s.store.Closed(); err != nil {
		s.logger.Warn().Err(err).Msg("the store could not be marked as closed; the next start reads every block of it")
	}
}

// confirmStore compares what the embedded server has with what the store held.
func (s *Server) confirmStore(ctx context.Context, log *eventlog.Log) error {
	if s.store == nil {
		return nil
	}
	err := s.store.Confirm(s.account(), func(stream string) (uint64, bool, error) { return log.Streams().Ends(ctx, stream) })
	if err != nil {
		return err
	}
	if r, crashed := s.store.Recovery(); crashed {
		s.logger.Info().Int("streams", r.Streams).Int("blocks", r.Blocks).Int("messages", r.Messages).Int64("bytes", r.Bytes).Dur("took", r.Took).
			Msg("the store was not closed cleanly: every block of it was read, and nothing is missing")
	}
	return nil
}

// markStore records the end of the streams, at intervals and at the end.
func (s *Server) markStore(background context.Context, log *eventlog.Log) {
	if s.store == nil {
		return
	}
	mark := func(ctx context.Context) error {
		others, err := s.store.Others(s.account(), markedOthers)
		if err != nil {
			return fmt.Errorf("list the streams of the store: %w", err)
		}
		states, err := assets.States(ctx, log.Streams(), append(assets.Kept(s.cfg.Names), others...))
		if s.outage.Err() != nil {
			return nil // the server may speak of what it could not write
		}
		ends := map[string]store.End{}
		for name, state := range states {
			ends[name] = store.End{Last: state.LastSeq, Empty: state.Msgs == 0}
		}
		if err == nil {
			err = s.store.Reached(s.account(), ends)
		}
		if err != nil {
			return fmt.Errorf("record the end of the streams: %w", err)
		}
		return nil
	}
	s.running.Go(func() {
		tick := time.NewTicker(markEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := mark(background); err != nil && background.Err() == nil {
					s.logger.Warn().Err(err).Msg("cannot write the mark of the store; it is retried")
				}
			case <-background.Done():
				last, cancel := context.WithTimeout(context.WithoutCancel(background), time.Second)
				defer cancel()
				_ = mark(last) // the previous mark is valid too
				return
			}
		}
	})
}

// account returns the account with the streams of the embedded server.
func (s *Server) account() string {
	o, err := s.cfg.embedded()
	if err != nil { // it was validated
		return ""
	}
	return o.WithDefaults().Account
}
