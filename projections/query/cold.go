package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// coldThread returns the documents of a cold thread, nil if the thread is not cold. Unless sure is
// set, it relies on the list of threads if that says so.
func (l *live) coldThread(ctx context.Context, name string, sure bool) (*coldThread, error) {
	if l.name == name && (l.sure || !sure) {
		return l.frozen, nil
	}
	if !sure && l.q.directory.Warm(documents.CutThreadName(name)) {
		l.name, l.frozen, l.sure = name, nil, false
		return nil, nil
	}
	got, err := l.q.log.Bucket(l.q.models.Of(documents.Threads).Bucket).Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading documents: %w", err)
	}
	l.name, l.frozen, l.sure = name, nil, true
	if len(got) == 0 || !buckets.MarkOf(got[0].Header).Cold {
		return nil, nil
	}
	_, seq, err := l.q.models.Of(documents.Threads).Decode(got[0].Data)
	if err == nil {
		l.frozen, err = l.q.cold.Read(ctx, name, seq)
	}
	if err != nil {
		l.name = "" // look it up again
	}
	return l.frozen, err
}

// fromLog reads, of cold threads, the documents that the buckets do not have.
func (l *live) fromLog(ctx context.Context, out []found, sure bool) error {
	for i := range out {
		f := &out[i]
		if f.doc != nil || !documents.ColdKinds.Has(f.place.Kind) {
			continue
		}
		t, err := l.coldThread(ctx, f.place.Thread, sure)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		if d, ok := t.Get(f.place); ok {
			if *f, err = l.decoded(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// decoded decodes a document of a cold thread.
func (l *live) decoded(d coldDocument) (f found, err error) {
	f.place, f.bytes = d.Place, len(d.Raw)
	f.doc, f.seq, err = l.q.models.Of(d.Place.Kind).Decode(d.Raw)
	return f, err
}

// threadOfAll returns the thread of the places, if all are in the same one.
func threadOfAll(places []documents.Place) (name string, one bool) {
	for _, p := range places {
		if p.Thread != places[0].Thread {
			return "", false
		}
	}
	if len(places) == 0 {
		return "", false
	}
	return places[0].Thread, true
}

// threadOfPattern returns the thread that a pattern names, if it names one.
func threadOfPattern(pattern string) (name string, one bool) {
	tenant, rest, _ := strings.Cut(pattern, ".")
	thread, _, more := strings.Cut(rest, ".")
	return documents.ThreadName(tenant, thread), more && thread != "*"
}

// foundIn returns the documents of a cold thread that match a pattern.
func (l *live) foundIn(t *coldThread, k documents.Kind, pattern string) ([]found, error) {
	var out []found
	for _, d := range t.All(k) {
		if !matches(d.Place.Key(), pattern) {
			continue
		}
		f, err := l.decoded(d)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// Bounds of a search for an id in the cold threads of a tenant.
const (
	coldSearched  = 64               // threads that are folded
	commitsLooked = 4096             // commits that are read from the time of the id on
	idBefore      = 2 * time.Second  // how much older than the previous commit an id may be, since clocks differ
	idAfter       = 60 * time.Second // how long after an id was made its commit may have been stored
)

// search returns the documents of a tenant's cold threads that match a pattern without a thread.
// Few cold threads are all folded. If there are many, search reads the log around the time at
// which Skein made the id in the pattern. For any other id it returns an error: the caller has to
// name the thread.
func (l *live) search(ctx context.Context, k documents.Kind, pattern string) ([]found, error) {
	tenant, rest, _ := strings.Cut(pattern, ".")
	if err := l.q.directory.AwaitLoaded(ctx); err != nil {
		return nil, err
	}
	ids, more := l.q.directory.Cold(tenant, 0, coldSearched)
	complete := more == 0
	if !complete {
		var err error
		if ids, err = l.threadsNear(ctx, tenant, rest); err != nil {
			return nil, err
		}
	}
	var out []found
	for _, id := range ids {
		t, err := l.coldThread(ctx, documents.ThreadName(tenant, id), true)
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		some, err := l.foundIn(t, k, pattern)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	if len(out) == 0 && !complete {
		return nil, events.Invalid("/threadId", "none of the threads in use has it, and the tenant has too many cold ones to search; name the thread")
	}
	return out, nil
}

// threadsNear returns the threads of a tenant with a commit that contains the id of the pattern.
// It reads the log around the time in the id.
func (l *live) threadsNear(ctx context.Context, tenant, pattern string) ([]string, error) {
	id, at, ok := timedID(pattern)
	if !ok {
		return nil, nil
	}
	from, subject := at.Add(-idBefore), l.q.log.Config().Names.Log(tenant, "*")
	first, err := l.q.log.Streams().Leader(ctx, l.q.log.Config().Names.Stream(assets.LogStream), streams.GetRequest{Next: subject, Start: &from})
	if errors.Is(err, streams.ErrNoMessage) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the log at the time of %s: %w", id, err)
	}
	var ids []string
	looked := 0
	for m, err := range l.q.log.Raw(ctx, subject, first.Seq) {
		if err != nil {
			return nil, err
		}
		if looked++; looked > commitsLooked {
			break
		}
		c, err := l.q.log.Decode(m)
		if err != nil || !events.IsThread(c.Thread) {
			continue
		}
		if c.Events[0].Time.Go().After(at.Add(idAfter)) {
			break
		}
		if bytes.Contains(c.Body, []byte(id)) && !slices.Contains(ids, c.Thread) {
			ids = append(ids, c.Thread)
		}
	}
	return ids, nil
}

// timedID returns the first id of a pattern that contains its time: a prefix and a version 7 UUID
// without dashes.
func timedID(pattern string) (id string, at time.Time, ok bool) {
	for part := range strings.SplitSeq(pattern, ".") {
		_, digits, ok := strings.Cut(part, "_")
		if u, err := uuid.Parse(digits); ok && err == nil && len(digits) == 32 && u.Version() == 7 {
			sec, nsec := u.Time().UnixTime()
			return part, time.Unix(sec, nsec), true
		}
	}
	return "", time.Time{}, false
}

// Tenants returns the tenants that have threads. It waits until the list of threads has been read.
func (q *Queries) Tenants(ctx context.Context) ([]string, error) {
	if err := q.directory.AwaitLoaded(ctx); err != nil {
		return nil, err
	}
	return q.directory.Tenants(), nil
}

// Warm returns the ids of threads that have not changed since until and are not cold. It begins
// after a place in the list, and returns the place to continue after; 0: there are no more.
func (q *Queries) Warm(tenant string, until time.Time, after uint64, most int) (ids []string, next uint64) {
	return q.directory.Unchanged(tenant, events.TimeOf(until), after, most)
}

// Marked is Warm for cold threads, without those for which the removal of documents has begun.
func (q *Queries) Marked(tenant string, after uint64, most int) (ids []string, next uint64) {
	return q.directory.Marked(tenant, after, most)
}

// Claimed returns, by tenant, the threads for which the removal of documents began after since:
// the latest, at most [claimsKept].
func (q *Queries) Claimed(since time.Time) map[string][]string { return q.directory.Claimed(since) }
