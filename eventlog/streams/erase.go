package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/retry"
)

// Erase removes the messages of a stream under a subject that have a sequence
// below before (0: all of them), and has the server overwrite them on its disk.
//
// The server rewrites a whole block of up to 8 MB for each message, so that a long
// thread takes a while; Erase rests as long as it works, and so leaves half of the time
// to other writers. A stream that refuses to delete single
// messages is purged: then what it held is out of reach at once, and on the disk
// until the server compacts the block. It may be done again at any time. A request that the
// server does not answer in time is repeated; see [Insist].
func (c *Conn) Erase(ctx context.Context, stream, subject string, before uint64) error {
	s, err := c.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("erasing from stream %s: %w", stream, err)
	}
	if config := s.CachedInfo().Config; !config.DenyDelete && config.Storage == jetstream.FileStorage {
		for seq := uint64(1); ; seq++ {
			var m *jetstream.RawStreamMsg // the next one
			err := Insist(ctx, func() (err error) {
				m, err = s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
				return err
			})
			if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && before > 0 && m.Sequence >= before {
				break
			}
			if err == nil {
				seq = m.Sequence
				err = EraseOne(ctx, s, seq)
			}
			if err != nil {
				return fmt.Errorf("erasing message %d of stream %s: %w", seq, stream, err)
			}
		}
	}
	// What a replica that lags did not show, and what could not be overwritten.
	opts := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(subject)}
	if before > 0 {
		opts = append(opts, jetstream.WithPurgeSequence(before))
	}
	if err := Purge(ctx, s, opts...); err != nil {
		return fmt.Errorf("purging stream %s: %w", stream, err)
	}
	return nil
}

// insistence is how long one request of an upkeep is repeated while the server is silent.
const insistence = 10 * time.Minute

// Insist does a request again while the server does not answer it in time, until ctx ends or
// the server has been silent for ten minutes: a slow machine delays an erasure, and does not
// end it. The request must be one that may be done twice.
func Insist(ctx context.Context, request func() error) error {
	return retry.Do(ctx, retry.Policy{First: 100 * time.Millisecond, Max: 5 * time.Second, Limit: insistence}, request, silent)
}

// Stream returns a stream for an upkeep: it waits for a server that is slow to answer, as
// [Insist] does.
func (c *Conn) Stream(ctx context.Context, name string) (s jetstream.Stream, err error) {
	err = Insist(ctx, func() error {
		s, err = c.js.Stream(ctx, name)
		return err
	})
	return s, err
}

// Purge removes messages of a stream, and waits for a server that is slow to answer, as
// [Insist] does.
func Purge(ctx context.Context, s jetstream.Stream, opts ...jetstream.StreamPurgeOpt) error {
	return Insist(ctx, func() error { return s.Purge(ctx, opts...) })
}

// EraseOne overwrites a message, if it is there, and rests as long as that took.
func EraseOne(ctx context.Context, s jetstream.Stream, seq uint64) error {
	began := time.Now()
	err := Insist(ctx, func() error {
		err := s.SecureDeleteMsg(ctx, seq)
		if err == nil {
			return nil
		}
		if _, lookErr := s.GetMsg(ctx, seq); errors.Is(lookErr, jetstream.ErrMsgNotFound) {
			return nil // it was removed since it was listed, or by a request whose answer came late
		}
		return err
	})
	if err != nil {
		return err
	}
	if !retry.Sleep(ctx, min(time.Since(began), 100*time.Millisecond)) {
		return context.Cause(ctx)
	}
	return nil
}
