package query

import (
	"errors"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

const (
	eventsUsual = 100     // events of a list if the query does not say
	scanEvents  = 10_000  // events that one query looks at
	scanBytes   = 8 << 20 // of commits that one query reads
)

// listEvents returns a thread's events as they are in the log. It needs no read model. A commit
// that cannot be read is skipped, as it is everywhere. It examines a limited number of events, so
// a page may have few even if more follow.
func listEvents(a *asking, d events.ListEvents) (*events.EventList, error) {
	if err := a.awaitSeq(d.MinSeq, true); err != nil {
		return nil, err
	}
	if err := a.resolve(d.ThreadID); err != nil {
		return nil, err
	}
	if err := a.awaitVersion(d.MinVersion); err != nil {
		return nil, err
	}
	log, err := a.checkLog(d.Log)
	if err != nil {
		return nil, err
	}
	from := int64(1)
	if d.FromVersion != nil {
		from = *d.FromVersion
	}
	start, err := a.seqOf(from)
	if err != nil {
		return nil, err
	}
	list := &events.EventList{Events: []events.JSON{}, Log: log}
	most, room, last := limit(d.Limit, eventsUsual), a.answerBytes(), int64(0)
	looked, read := 0, 0
	for m, err := range a.log.Raw(a.ctx, a.log.Config().Names.Log(a.tenant, a.thread), start) {
		if err != nil {
			return nil, err
		}
		if last = versionOf(m); last < from {
			continue
		}
		commit, err := a.log.Decode(m)
		if err != nil {
			continue
		}
		if looked >= scanEvents || read >= scanBytes {
			if next := max(from, commit.Events[0].Version); d.ToVersion == nil || next <= *d.ToVersion {
				list.NextVersion = next
			}
			return list, nil
		}
		looked, read = looked+len(commit.Events), read+len(m.Data)
		for i := range commit.Events {
			e := &commit.Events[i]
			if d.ToVersion != nil && e.Version > *d.ToVersion {
				return list, nil
			}
			if e.Version < from || !wanted(d.Types, e.Type) {
				continue
			}
			if room -= len(e.Raw()) + 1; len(list.Events) == most || room < 0 && len(list.Events) > 0 {
				list.NextVersion = e.Version
				return list, nil
			}
			list.Events, list.Seq = append(list.Events, e.Raw()), int64(m.Seq)
		}
	}
	if last < from-1 || last == 0 {
		return list, a.checkReached(d.ThreadID, from-1, log)
	}
	return list, nil
}

// checkReached returns a not_found if there is no such thread, and a position_ahead if the thread
// has not reached a version. It asks the leader, because the read before may have been from a
// lagging replica.
func (a *asking) checkReached(thread string, version int64, log string) error {
	last, err := a.log.Newest(a.ctx, a.tenant, a.thread)
	switch {
	case errors.As(err, new(*events.BrokenError)):
		return nil
	case err != nil:
		return err
	case last == nil:
		return events.Missing("thread", thread)
	case last.Version < version:
		return events.VersionAhead(thread, version, last.Version, log)
	}
	return nil
}

// versionOf returns the thread's version after a commit, 0 if it does not say.
func versionOf(m streams.Message) int64 {
	v, err := strconv.ParseInt(m.Header.Get(events.HeaderVersion), 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// wanted reports whether the type of an event matches a list of types such as item.created, item.*
// or *. An empty list matches all.
func wanted(types []string, t events.Type) bool {
	return len(types) == 0 || slices.ContainsFunc(types, func(want string) bool {
		return want == string(t) || want == "*" || want == t.Entity()+".*"
	})
}

// seqOf returns a sequence in the log at or before the thread's event of a version. It bisects the
// log by the versions in the headers of the thread's commits.
func (a *asking) seqOf(version int64) (uint64, error) {
	const near = 512 // reading this many events is faster than searching on
	if version <= near {
		return 1, nil
	}
	names := a.log.Config().Names
	stream, err := a.log.JetStream().Stream(a.ctx, names.Stream(assets.LogStream))
	if err != nil {
		return 0, err
	}
	low, high := uint64(1), stream.CachedInfo().State.LastSeq
	for low < high {
		middle := low + (high-low)/2
		m, err := stream.GetMsg(a.ctx, middle, jetstream.WithGetMsgSubject(names.Log(a.tenant, a.thread)))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			high = middle
			continue
		case err != nil:
			return 0, err
		}
		if v, _ := strconv.ParseInt(m.Header.Get(events.HeaderVersion), 10, 64); v < version {
			low = m.Sequence + 1
		} else {
			high = middle
		}
	}
	return low, nil
}
