package queues

import (
	"context"
	"fmt"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Submitted is the queue of submitted commands. Package commands consumes it.
type Submitted struct{ conn *streams.Conn }

// SubmittedOf returns the submitted commands of a log.
func SubmittedOf(log *eventlog.Log) Submitted { return Submitted{log.Streams()} }

func (q Submitted) stream() string { return q.conn.Config().Names.Stream(assets.CommandStream) }

// Depth returns how many commands wait or are in progress.
func (q Submitted) Depth(ctx context.Context) (uint64, error) {
	stream, err := q.conn.JetStream().Stream(ctx, q.stream())
	if err != nil {
		return 0, fmt.Errorf("the submitted commands: %w", err)
	}
	return stream.CachedInfo().State.Msgs, nil
}

// Erase erases the waiting commands of a tenant that name a deleted thread, which would
// be refused.
func (q Submitted) Erase(ctx context.Context, tenant string, names func(body []byte) bool) error {
	name := q.stream()
	s, err := q.conn.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("erasing from stream %s: %w", name, err)
	}
	for m, err := range q.conn.Messages(ctx, name, q.conn.Config().Names.Submit(tenant, "*.*"), 1) {
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
