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
// until the server compacts the block. It may be done again at any time.
func (c *Conn) Erase(ctx context.Context, stream, subject string, before uint64) error {
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("erasing from stream %s: %w", stream, err)
	}
	if config := s.CachedInfo().Config; !config.DenyDelete && config.Storage == jetstream.FileStorage {
		for seq := uint64(1); ; seq++ {
			m, err := s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject)) // the next one
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
	if err := s.Purge(ctx, opts...); err != nil {
		return fmt.Errorf("purging stream %s: %w", stream, err)
	}
	return nil
}

// EraseOne overwrites a message, if it is there, and rests as long as that took.
func EraseOne(ctx context.Context, s jetstream.Stream, seq uint64) error {
	began := time.Now()
	if err := s.SecureDeleteMsg(ctx, seq); err != nil {
		if _, lookErr := s.GetMsg(ctx, seq); !errors.Is(lookErr, jetstream.ErrMsgNotFound) {
			return err
		} // else it was removed since it was listed
	}
	if !retry.Sleep(ctx, min(time.Since(began), 100*time.Millisecond)) {
		return context.Cause(ctx)
	}
	return nil
}
