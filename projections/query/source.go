package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// found is a document and its size in an answer. doc is nil if there is none.
type found struct {
	place documents.Place
	doc   any
	seq   uint64
	bytes int
}

// source is where a query finds documents: the buckets, or a thread at a past version or time.
type source interface {
	// get returns the documents at places of one kind, in that order.
	get(ctx context.Context, places ...documents.Place) ([]found, error)
	// find returns the documents of a kind whose keys match a pattern.
	find(ctx context.Context, k documents.Kind, pattern string) ([]found, error)
}

// live reads the buckets and, for cold threads, the log. It is used for one query.
type live struct {
	q *Queries

	name   string      // the thread that was read last
	frozen *coldThread // nil: it is not cold
	sure   bool        // frozen follows the thread's own document, not the list of threads
	list   bool        // for a list over several threads: unreadable documents are left out
}

func (l *live) get(ctx context.Context, places ...documents.Place) ([]found, error) {
	if name, one := threadOfAll(places); one && documents.ColdKinds.Has(places[0].Kind) {
		if t, err := l.coldThread(ctx, name, false); t != nil || err != nil {
			out := make([]found, len(places))
			for i, p := range places {
				out[i].place = p
			}
			if err == nil {
				err = l.fromLog(ctx, out, false)
			}
			return out, err
		}
	}
	out, err := l.stored(ctx, places)
	if err == nil {
		err = l.fromLog(ctx, out, true)
	}
	return out, err
}

// stored returns documents from the buckets.
func (l *live) stored(ctx context.Context, places []documents.Place) ([]found, error) {
	out := make([]found, len(places))
	at := make(map[string]int, len(places))
	keys := make([]string, len(places))
	for i, p := range places {
		keys[i] = p.Key()
		at[keys[i]] = i
		out[i].place = p
	}
	for len(keys) > 0 {
		part := keys[:min(len(keys), documentsAtOnce)]
		keys = keys[len(part):]
		got, err := l.q.log.Bucket(l.q.models.Of(places[0].Kind).Bucket).Get(ctx, part...)
		if err != nil {
			return nil, fmt.Errorf("reading documents: %w", err)
		}
		for _, m := range got {
			if i, ok := at[m.Subject]; ok {
				if err := l.read(ctx, &out[i], m); err != nil && !l.leavesOut(err) {
					return nil, err
				}
			}
		}
	}
	return out, l.hideDeleted(ctx, out)
}

func (l *live) find(ctx context.Context, k documents.Kind, pattern string) ([]found, error) {
	name, ofThread := threadOfPattern(pattern)
	if !documents.ColdKinds.Has(k) {
		return l.findStored(ctx, k, pattern)
	}
	if !ofThread {
		out, err := l.findStored(ctx, k, pattern)
		if len(out) > 0 || err != nil {
			return out, err
		}
		return l.search(ctx, k, pattern)
	}
	t, err := l.coldThread(ctx, name, false)
	if t == nil && err == nil {
		out, err := l.findStored(ctx, k, pattern)
		if len(out) > 0 || err != nil {
			return out, err
		}
		if t, err = l.coldThread(ctx, name, true); t == nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	return l.foundIn(t, k, pattern)
}

// findStored returns the documents in a bucket that match a pattern.
func (l *live) findStored(ctx context.Context, k documents.Kind, pattern string) ([]found, error) {
	got, err := l.q.log.Bucket(l.q.models.Of(k).Bucket).All(ctx, pattern)
	if err != nil {
		return nil, fmt.Errorf("reading documents: %w", err)
	}
	_, ofThread := threadOfPattern(pattern)
	out := make([]found, 0, len(got))
	for _, m := range got {
		p, ok := documents.ParsePlace(k, m.Subject)
		if !ok {
			continue
		}
		f := found{place: p}
		if err := l.read(ctx, &f, m); err != nil && (ofThread || !unreadableIs(err)) {
			return nil, err
		}
		out = append(out, f)
	}
	if err := l.hideDeleted(ctx, out); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(f found) bool { return f.doc == nil }), nil
}

// hideDeleted removes the documents of deleted threads. A bucket only holds such documents if a
// server that was killed has restored them.
func (l *live) hideDeleted(ctx context.Context, got []found) error {
	var last string
	var exists bool
	for i := range got {
		f := &got[i]
		if f.doc == nil || f.place.Kind == documents.Threads || f.place.Kind == documents.Definitions {
			continue
		}
		if f.place.Thread != last {
			var err error
			if exists, err = l.q.exists(ctx, f.place.Thread); err != nil {
				return err
			}
			last = f.place.Thread
		}
		if !exists {
			*f = found{place: f.place}
		}
	}
	return nil
}

// exists reports whether a thread exists and was not deleted. If the directory does not list it,
// exists reads the log, because the directory may be behind.
func (q *Queries) exists(ctx context.Context, name string) (bool, error) {
	tenant, thread := documents.CutThreadName(name)
	if q.directory.Has(tenant, thread) {
		return true, nil
	}
	last, err := q.log.Last(ctx, tenant, thread)
	var broken *events.BrokenError
	switch {
	case errors.As(err, &broken):
		return true, nil // a tombstone can be read
	case err != nil:
		return false, fmt.Errorf("reading the last commit of %s/%s: %w", tenant, thread, err)
	}
	return last != nil && !buckets.Deletes(last), nil
}

// read decodes a document. The error is a projection_behind if the document is too large for its
// read model, or if the replica does not have all its pieces yet: a partial document is never
// returned.
func (l *live) read(ctx context.Context, f *found, m streams.Message) error {
	model := l.q.models.Of(f.place.Kind)
	raw, err := buckets.Whole(ctx, f.place, m, func(ctx context.Context, keys ...string) ([]streams.Message, error) {
		return l.q.log.Bucket(model.Bucket).Get(ctx, keys...)
	})
	var unstored *buckets.UnstoredError
	var missing *buckets.MissingPieceError
	if errors.As(err, &unstored) || errors.As(err, &missing) {
		return l.q.behind("%s %s cannot be shown: %w", model.Name, f.place.Key(), err)
	}
	if err != nil {
		return err
	}
	f.doc, f.seq, err = l.q.decodeDocument(f.place, raw)
	f.bytes = len(raw)
	return err
}

// leavesOut reports whether an error concerns one document of a list, which is then shown without
// it.
func (l *live) leavesOut(err error) bool { return l.list && unreadableIs(err) }

func unreadableIs(err error) bool {
	var u *unreadableError
	return errors.As(err, &u)
}

// matches reports whether a key matches a pattern. Tokens of the pattern may be *.
func matches(key, pattern string) bool {
	k, p := strings.Split(key, "."), strings.Split(pattern, ".")
	if len(k) != len(p) {
		return false
	}
	for i := range k {
		if p[i] != "*" && p[i] != k[i] {
			return false
		}
	}
	return true
}
