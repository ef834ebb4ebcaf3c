package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// EraseCommands erases the submitted commands of a tenant that wait and name a
// thread. They would be refused, since it is gone.
func (l *Log) EraseCommands(ctx context.Context, tenant string, names func(body []byte) bool) error {
	name := l.cfg.Names.Stream(CommandStream)
	s, err := l.conn.JetStream().Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("erasing from stream %s: %w", name, err)
	}
	for m, err := range l.conn.Messages(ctx, name, l.cfg.Names.Submit(tenant, "*.*"), 1) {
		if err != nil {
			return fmt.Errorf("erasing from stream %s: %w", name, err)
		}
		if !names(m.Data) {
			continue
		}
		if err := streams.EraseOne(ctx, s, m.Seq); err != nil {
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
		l.conn.Erase(ctx, n.Stream(ChunkStream), n.Chunk(tenant, thread, "*"), 0),
		l.conn.Erase(ctx, n.Stream(TimerStream), n.Timer(tenant, thread, "*"), 0),
		l.conn.Erase(ctx, n.Stream(TimerStream), n.Due(tenant, thread, "*"), 0),
	}
	for _, id := range executions {
		errs = append(errs, l.conn.Erase(ctx, n.Stream(RunStream), n.Run(tenant, id), 0))
	}
	return errors.Join(errs...)
}

// EraseCommits erases a thread's commits before a sequence.
func (l *Log) EraseCommits(ctx context.Context, tenant, thread string, before uint64) error {
	return l.conn.Erase(ctx, l.cfg.Names.Stream(LogStream), l.cfg.Names.Log(tenant, thread), before)
}

// EraseTimeline erases a thread's events from the timeline, up to those of the
// commit with its tombstone, which must be there or have expired.
func (l *Log) EraseTimeline(ctx context.Context, tenant, thread string, tombstone *events.Commit) error {
	n := l.cfg.Names
	name := n.Stream(TimelineStream)
	last, err := l.conn.Direct(ctx, name, streams.GetRequest{Multi: []string{n.Timeline(tenant, thread, events.LifecycleDeletedType)}})
	if err != nil {
		return err
	}
	before := uint64(0)
	if len(last) > 0 {
		before = last[0].Seq - uint64(len(tombstone.Events)-1) // they stand side by side, the relay is the only writer
	}
	return l.conn.Erase(ctx, name, n.Timeline(tenant, thread, ">"), before)
}
