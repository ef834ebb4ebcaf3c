package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// Erase removes the messages of a stream under a subject that have a sequence
// below before (0: all of them), and has the server overwrite them on its disk.
//
// The server writes a whole block of up to 8 MB anew for each message, so that a
// long thread takes a while; Erase rests as long as it works, and so leaves half
// of the time to whoever else writes. A stream that refuses to delete single
// messages is purged: then what it held is out of reach at once, and on the disk
// until the server compacts the block. It may be done again at any time.
func (l *Log) Erase(ctx context.Context, stream, subject string, before uint64) error {
	s, err := l.js.Stream(ctx, stream)
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
				err = eraseOne(ctx, s, seq)
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

// eraseOne overwrites a message, if it is there, and rests.
func eraseOne(ctx context.Context, s jetstream.Stream, seq uint64) error {
	began := time.Now()
	if err := s.SecureDeleteMsg(ctx, seq); err != nil {
		if _, lookErr := s.GetMsg(ctx, seq); !errors.Is(lookErr, jetstream.ErrMsgNotFound) {
			return err
		} // else it was removed since it was listed
	}
	select {
	case <-time.After(min(time.Since(began), 100*time.Millisecond)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// EraseCommands erases the submitted commands of a tenant that wait and name a
// thread. They would be refused, since it is gone.
func (l *Log) EraseCommands(ctx context.Context, tenant string, names func(body []byte) bool) error {
	name := l.cfg.Names.Stream(CommandStream)
	s, err := l.js.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("erasing from stream %s: %w", name, err)
	}
	for m, err := range l.stream(ctx, name, l.cfg.Names.Submit(tenant, "*.*"), 1) {
		if err != nil {
			return fmt.Errorf("erasing from stream %s: %w", name, err)
		}
		if !names(m.Data) {
			continue
		}
		if err := eraseOne(ctx, s, m.Seq); err != nil {
			return fmt.Errorf("erasing message %d of stream %s: %w", m.Seq, name, err)
		}
	}
	return nil
}

// EraseThread erases what streams hold of a thread beside its commits and its
// timeline: what was streamed, what is timed and due, and its queued executions.
func (l *Log) EraseThread(ctx context.Context, tenant, thread string, executions []string) error {
	n := l.cfg.Names
	errs := []error{
		l.Erase(ctx, n.Stream(ChunkStream), n.Chunk(tenant, thread, "*"), 0),
		l.Erase(ctx, n.Stream(TimerStream), n.Timer(tenant, thread, "*"), 0),
		l.Erase(ctx, n.Stream(TimerStream), n.Due(tenant, thread, "*"), 0),
	}
	for _, id := range executions {
		errs = append(errs, l.Erase(ctx, n.Stream(RunStream), n.Run(tenant, id), 0))
	}
	return errors.Join(errs...)
}

// EraseCommits erases a thread's commits before a sequence.
func (l *Log) EraseCommits(ctx context.Context, tenant, thread string, before uint64) error {
	return l.Erase(ctx, l.cfg.Names.Stream(LogStream), l.cfg.Names.Log(tenant, thread), before)
}

// EraseTimeline erases a thread's events from the timeline, up to those of the
// commit with its tombstone, which must be there or have expired.
func (l *Log) EraseTimeline(ctx context.Context, tenant, thread string, tombstone *events.Commit) error {
	n := l.cfg.Names
	name := n.Stream(TimelineStream)
	last, err := l.direct(ctx, name, getRequest{Multi: []string{n.Timeline(tenant, thread, events.LifecycleDeletedType)}})
	if err != nil {
		return err
	}
	before := uint64(0)
	if len(last) > 0 {
		before = last[0].Seq - uint64(len(tombstone.Events)-1) // they stand side by side, the relay is the only writer
	}
	return l.Erase(ctx, name, n.Timeline(tenant, thread, ">"), before)
}
