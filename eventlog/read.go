package eventlog

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// decode decodes a message of the log. The error is a *events.BrokenError.
func (l *Log) decode(subject string, seq uint64, header nats.Header, data []byte) (*events.Commit, error) {
	tenant, aggregate, ok := l.cfg.Names.ParseLog(subject)
	version, err := strconv.ParseInt(header.Get(events.HeaderVersion), 10, 64)
	if !ok || err != nil {
		return nil, &events.BrokenError{Tenant: tenant, Thread: aggregate, Seq: seq, Cause: fmt.Errorf("subject %q, header %s %q",
			subject, events.HeaderVersion, header.Get(events.HeaderVersion))}
	}
	return events.DecodeCommit(tenant, aggregate, seq, version, header.Get(events.HeaderChain), data)
}

// Get reads the commit with that sequence. Nil if there is none (any more): the
// leader is asked before that is said.
func (l *Log) Get(ctx context.Context, seq uint64) (*events.Commit, error) {
	if seq == 0 {
		return nil, nil
	}
	got, err := l.conn.Direct(ctx, l.cfg.Names.Stream(assets.LogStream), streams.GetRequest{Seq: seq})
	if err != nil {
		return nil, err
	}
	if len(got) == 0 || got[0].Seq != seq {
		c, err := l.ofLeader(ctx, streams.GetRequest{Seq: seq})
		if c == nil && err == nil { // the server says so too of what it cannot read
			if cause := l.cfg.Damage(l.cfg.Names.Stream(assets.LogStream), seq, seq); cause != nil {
				return nil, &streams.UnreadableError{Stream: l.cfg.Names.Stream(assets.LogStream), Seq: seq, Cause: cause}
			}
		}
		return c, err
	}
	return l.decode(got[0].Subject, got[0].Seq, got[0].Header, got[0].Data)
}

// Last reads the last commit of an aggregate, on a cluster from the leader. Nil
// if it has none.
func (l *Log) Last(ctx context.Context, tenant, aggregate string) (*events.Commit, error) {
	m, err := l.last(ctx, tenant, aggregate)
	if err != nil || m == nil {
		return nil, err
	}
	return l.Decode(*m)
}

// LastSeqBetween returns the sequence of the last commit of an aggregate that is after one sequence and at
// most another, whether the commit can be read or not; 0 if none is. The server is asked, on a cluster the
// leader, only if others than this process have written there. It tells the last of all commits: if that is
// after upTo, the answer is upTo. A commit is read only if one is after the first, as some are large.
func (l *Log) LastSeqBetween(ctx context.Context, tenant, aggregate string, after, upTo uint64) (uint64, error) {
	if seq, known := l.cfg.Recent.last(tenant, aggregate, after, upTo); known {
		return seq, nil
	}
	next := streams.GetRequest{Seq: after + 1, Next: l.cfg.Names.Log(tenant, aggregate)}
	m, err := l.one(ctx, next, next)
	if err == nil && m != nil {
		m, err = l.last(ctx, tenant, aggregate)
	}
	if err != nil || m == nil {
		return 0, err
	}
	return min(m.Seq, upTo), nil
}

// last reads the message of the last commit of an aggregate, nil if it has none.
func (l *Log) last(ctx context.Context, tenant, aggregate string) (*streams.Message, error) {
	subject := l.cfg.Names.Log(tenant, aggregate)
	return l.one(ctx, streams.GetRequest{Multi: []string{subject}}, streams.GetRequest{Last: subject})
}

// one reads one message, nil if there is none: by a direct get or, on a cluster, from the leader.
func (l *Log) one(ctx context.Context, direct, leader streams.GetRequest) (*streams.Message, error) {
	several, err := l.conn.Replicated(ctx)
	switch {
	case err != nil:
		return nil, err
	case several:
		return l.leader(ctx, leader)
	}
	got, err := l.conn.Direct(ctx, l.cfg.Names.Stream(assets.LogStream), direct)
	if err != nil || len(got) == 0 {
		return nil, err
	}
	return &got[0], nil
}

// Thread reads the commits of an aggregate from a sequence on, in order, those
// that are archived too. It ends at the last one. A commit that cannot be read is a
// *events.BrokenError, and commits that cannot be read from their archive are an
// *ArchiveError; what follows is still yielded.
func (l *Log) Thread(ctx context.Context, tenant, aggregate string, from uint64) iter.Seq2[*events.Commit, error] {
	return func(yield func(*events.Commit, error) bool) {
		for m, err := range l.through(ctx, tenant, aggregate, from) {
			if err == nil {
				if !yield(l.Decode(m)) {
					return
				}
			} else if !yield(nil, err) {
				return
			}
		}
	}
}

// Since reads the commits of an aggregate that were stored at a time or later, as
// Thread does.
func (l *Log) Since(ctx context.Context, tenant, aggregate string, at time.Time) iter.Seq2[*events.Commit, error] {
	return func(yield func(*events.Commit, error) bool) {
		first, err := l.ofLeader(ctx, streams.GetRequest{Next: l.cfg.Names.Log(tenant, aggregate), Start: &at})
		if err != nil {
			yield(nil, err)
		}
		if err != nil || first == nil {
			return
		}
		for c, err := range l.Thread(ctx, tenant, aggregate, first.Seq) {
			if !yield(c, err) {
				return
			}
		}
	}
}

// Raw reads the messages of the log that match a subject from a sequence on, as
// they are stored, including those that are archived: for callers that need what cannot
// be decoded. The subject is of one aggregate, or names.Log with "*" for all of a
// tenant, or of all tenants.
func (l *Log) Raw(ctx context.Context, subject string, from uint64) iter.Seq2[streams.Message, error] {
	tenant, aggregate, ok := l.cfg.Names.ParseLog(subject)
	switch {
	case !ok: // skein.log.>
		return l.merged(ctx, "*", from)
	case aggregate == "*":
		return l.merged(ctx, tenant, from)
	}
	return l.through(ctx, tenant, aggregate, from)
}

// Stored reads what Raw reads, but only what the log itself holds.
func (l *Log) Stored(ctx context.Context, subject string, from uint64) iter.Seq2[streams.Message, error] {
	return l.conn.Messages(ctx, l.cfg.Names.Stream(assets.LogStream), subject, from)
}

// Decode decodes a message that Raw yielded. The error is a *events.BrokenError.
func (l *Log) Decode(m streams.Message) (*events.Commit, error) {
	return l.decode(m.Subject, m.Seq, m.Header, m.Data)
}
