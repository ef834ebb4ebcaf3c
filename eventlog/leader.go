package eventlog

import (
	"context"
	"errors"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Reachable asks the log's leader for its newest message, and returns an error if
// it does not answer before ctx ends. A cluster that lost its quorum has no
// leader, though each of its servers may go on answering direct gets.
func (l *Log) Reachable(ctx context.Context) error {
	_, err := l.conn.Leader(ctx, l.cfg.Names.Stream(assets.LogStream), streams.GetRequest{Last: ">"})
	if errors.Is(err, streams.ErrNoMessage) {
		return nil
	}
	return err
}

// After returns the first commit of an aggregate after a sequence, as the log's leader has
// it: unlike a direct get, which may lag, it never misses what was acknowledged before. Nil
// if there is none.
func (l *Log) After(ctx context.Context, tenant, aggregate string, seq uint64) (*events.Commit, error) {
	c, err := l.ofLeader(ctx, streams.GetRequest{Seq: seq + 1, Next: l.cfg.Names.Log(tenant, aggregate)})
	if d, ok := Record(c); !ok || uint64(d.LastSeq) <= seq || uint64(d.LastSeq) >= c.Seq {
		return c, err
	}
	for c, err := range l.Thread(ctx, tenant, aggregate, seq+1) { // others are archived before it
		return c, err
	}
	return c, err
}

// Newest returns the last commit of an aggregate, as the log's leader has it. Nil if it has
// none.
func (l *Log) Newest(ctx context.Context, tenant, aggregate string) (*events.Commit, error) {
	return l.ofLeader(ctx, streams.GetRequest{Last: l.cfg.Names.Log(tenant, aggregate)})
}

func (l *Log) ofLeader(ctx context.Context, q streams.GetRequest) (*events.Commit, error) {
	m, err := l.leader(ctx, q)
	if err != nil || m == nil {
		return nil, err
	}
	return l.Decode(*m)
}

// leader reads a message of the log from its leader, nil if there is none.
func (l *Log) leader(ctx context.Context, q streams.GetRequest) (*streams.Message, error) {
	m, err := l.conn.Leader(ctx, l.cfg.Names.Stream(assets.LogStream), q)
	switch {
	case errors.Is(err, streams.ErrNoMessage):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &m, nil
}
