package eventlog

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// through reads the messages of one aggregate from a sequence on, from its archives and
// from the log, in order. An *ArchiveError takes the place of commits that cannot be read,
// and what follows is still yielded.
func (l *Log) through(ctx context.Context, tenant, aggregate string, from uint64) iter.Seq2[streams.Message, error] {
	subject := l.cfg.Names.Log(tenant, aggregate)
	if !events.IsThread(aggregate) {
		return l.Stored(ctx, subject, from)
	}
	return func(yield func(streams.Message, error) bool) {
		t := &throughReader{log: l, ctx: ctx, tenant: tenant, thread: aggregate, last: max(from, 1) - 1, yield: yield}
		for m, err := range l.Stored(ctx, subject, from) {
			if err != nil {
				yield(streams.Message{}, err)
				return
			}
			if !t.yieldMessage(m) {
				return
			}
		}
	}
}

// throughReader is one read of a thread.
type throughReader struct {
	log            *Log
	ctx            context.Context //nolint:containedctx // it lives as long as the read
	tenant, thread string
	last           uint64 // yielded, or before the first that is wanted
	version        string // of the thread after the last message that was yielded; empty: none was
	yield          func(streams.Message, error) bool
}

// yieldMessage yields a message, and before a record the commits that are missing there.
func (t *throughReader) yieldMessage(m streams.Message) bool {
	if c, d := t.log.record(m); c != nil && uint64(d.LastSeq) > t.last && t.version != strconv.FormatInt(c.First(), 10) && !t.yieldArchived(c, d) {
		return false
	}
	if m.Seq <= t.last {
		return true
	}
	t.last, t.version = m.Seq, m.Header.Get(events.HeaderVersion)
	return t.yield(m, nil)
}

// yieldArchived yields the commits of a record's object that were not yielded yet.
func (t *throughReader) yieldArchived(c *events.Commit, d events.LifecycleArchived) bool {
	for m, err := range t.log.archivedCommits(t.ctx, t.tenant, t.thread, d) {
		var bad *ArchiveError
		switch {
		case err == nil:
			if !t.yieldMessage(m) {
				return false
			}
			continue
		case errors.As(err, &bad) && bad.Missing:
			whole, lookErr := t.logHasAll(c)
			if lookErr != nil {
				err = lookErr
			} else if whole {
				return true
			}
		}
		if !t.yield(streams.Message{}, err) || bad == nil {
			return false
		}
	}
	return true
}

// logHasAll reports whether the log has every commit before a record: the thread was
// imported together with what it had archived elsewhere.
func (t *throughReader) logHasAll(record *events.Commit) (bool, error) {
	version := ""
	for m, err := range t.log.Stored(t.ctx, t.log.cfg.Names.Log(t.tenant, t.thread), 1) {
		if err != nil {
			return false, err
		}
		if m.Seq >= record.Seq {
			break
		}
		version = m.Header.Get(events.HeaderVersion)
	}
	return version == strconv.FormatInt(record.First(), 10), nil
}
