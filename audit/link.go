package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// suspect is a key and a thread that did not know of one another when they were
// read. They may have been read from a replica that was behind: the end of the
// check asks again.
type suspect struct {
	at      aggregate // who says that the thread holds the key
	seq     uint64
	key     string
	thread  string
	confirm func(ctx context.Context) (bool, error)
	detail  string
}

// mostSuspects bounds how many are kept to be asked again; further ones are told
// at once.
const mostSuspects = 1000

// suspect checks that the thread at hand holds the key that it claims, or that
// the key at hand is held by a thread that is there.
func (v *verifier) suspect(ctx context.Context) error {
	j := v.judge
	if j.key == "" {
		return nil
	}
	s := suspect{at: j.at, seq: j.keySeq, key: j.key, thread: j.holder}
	if events.IsThread(j.at.id) {
		s.confirm = func(ctx context.Context) (bool, error) { return v.holds(ctx, s.at.tenant, s.key, s.thread) }
		s.detail = fmt.Sprintf("it says that it holds the key %.80q, and the key's own record does not say so", s.key)
	} else {
		s.confirm = func(ctx context.Context) (bool, error) { return v.there(ctx, s.at.tenant, s.thread) }
		s.detail = fmt.Sprintf("the key %.80q is held by thread %.80s, which is not in the log", s.key, s.thread)
	}
	right, err := s.confirm(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the key of %s/%s: %w", s.at.tenant, s.at.id, err)
	case right:
	case len(v.suspects) < mostSuspects:
		v.suspects = append(v.suspects, s)
	default:
		v.find(Finding{Kind: KindLink, Tenant: s.at.tenant, Thread: s.at.id, Seq: s.seq, Detail: s.detail})
	}
	return nil
}

// claims asks again about those that did not know of one another.
func (v *verifier) claims(ctx context.Context) error {
	for _, s := range v.suspects {
		right, err := s.confirm(ctx)
		if err != nil {
			return fmt.Errorf("the key of %s/%s: %w", s.at.tenant, s.at.id, err)
		}
		if !right {
			v.find(Finding{Kind: KindLink, Tenant: s.at.tenant, Thread: s.at.id, Seq: s.seq, Detail: s.detail})
		}
	}
	v.suspects = nil
	return nil
}

// holds reports whether the key's own record says that the thread holds it, or
// was written since the check began.
func (v *verifier) holds(ctx context.Context, tenant, key, thread string) (bool, error) {
	last, err := v.log.Last(ctx, tenant, events.KeyAggregate(key))
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken):
		return true, nil // which is told where it stands
	case err != nil || last == nil:
		return false, err
	}
	d, ok := last.Events[len(last.Events)-1].Data.(events.KeyClaimed)
	return ok && d.Key == key && d.ThreadID == thread || last.Seq > v.last, nil
}

// there reports whether the log has a thread.
func (v *verifier) there(ctx context.Context, tenant, thread string) (bool, error) {
	if !events.ValidThreadID(thread) {
		return false, nil
	}
	last, err := v.log.Last(ctx, tenant, thread)
	var broken *events.BrokenError
	if errors.As(err, &broken) {
		return true, nil
	}
	return last != nil, err
}

// namedGaps bounds how many gaps are named one by one.
const namedGaps = 100

// sequence checks that no message is missing from the log, unless purged threads
// explain it, each erased commit had at least one version, or archives.
func (v *verifier) sequence(ctx context.Context) error {
	if v.options.Tenant != "" || !v.options.Range.whole() {
		return nil
	}
	missing := int64(v.begun.LastSeq - v.begun.Msgs) // a thread that is purged meanwhile is not among them
	if missing <= v.erased+v.archived {
		return nil
	}
	if v.erased+v.archived > 0 {
		v.find(Finding{Kind: KindSequence, Detail: fmt.Sprintf(
			"%d messages are missing, and the tombstones of purged threads explain %d of them at most, and archives %d", missing, v.erased, v.archived)})
	}
	stream, err := v.log.JetStream().Stream(ctx, v.log.Config().Names.Stream(eventlog.LogStream))
	if err != nil {
		return fmt.Errorf("the log: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return fmt.Errorf("the log's gaps: %w", err)
	}
	if info.State.FirstSeq > 1 {
		v.gap(1, info.State.FirstSeq-1)
	}
	named := 0
	for i, list := 0, info.State.Deleted; i < len(list); named++ {
		from := i
		for i++; i < len(list) && list[i] == list[i-1]+1; i++ {
		}
		if named == namedGaps {
			v.find(Finding{Kind: KindSequence, Detail: fmt.Sprintf("and %d messages more", len(list)-from)})
			break
		}
		v.gap(list[from], list[i-1])
	}
	return nil
}

// gap tells of missing messages.
func (v *verifier) gap(from, to uint64) {
	detail := "the log holds no message with this sequence"
	if to > from {
		detail = fmt.Sprintf("the log holds no messages from here to %d", to)
	}
	if v.erased+v.archived > 0 {
		detail += "; it may be of a thread that was purged or archived, or not"
	} else {
		detail += ", and no tombstone of a purged thread explains it"
	}
	v.find(Finding{Kind: KindSequence, Seq: from, Detail: detail})
}
