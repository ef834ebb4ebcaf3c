package eventlog

import (
	"errors"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Of archivers at the same time each succeeds, and the store has the pieces of one.
func TestPutArchive_AtOnce(t *testing.T) {
	l := start(t)
	must(t, l.Ensure(t.Context()))
	s, err := l.Streams().Stream(t.Context(), l.archiveStream())
	must(t, err)
	for n := range 5 {
		a := newAuthor(n)
		a.write(t, l, 3, 2)
		list := history(t, l)
		first, last := list[len(list)-3], list[len(list)-1]
		d := events.LifecycleArchived{FirstSeq: int64(first.Seq), LastSeq: int64(last.Seq), Commits: 3, Chain: last.Chain}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				whole, err := l.PutArchive(t.Context(), last.Tenant, last.Thread, d)
				if err == nil {
					err = l.CheckArchive(t.Context(), last.Tenant, last.Thread, whole)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(objects.Pieces(l.archiveBucket(), ">")))
		must(t, err)
		if len(info.State.Subjects) != n+1 {
			t.Errorf("%d objects, and pieces on %v", n+1, info.State.Subjects)
		}
	}
}

// Whenever another archiver erases the commits, before they are read to be digested or before
// they are read to be written, what is in the object store stays.
func TestPutArchive_CommitsAreGone(t *testing.T) {
	l := start(t)
	must(t, l.Ensure(t.Context()))
	a := newAuthor(1)
	a.write(t, l, 3, 2)
	list := history(t, l)
	first, last := list[0], list[2]
	d := events.LifecycleArchived{FirstSeq: int64(first.Seq), LastSeq: int64(last.Seq), Commits: 3, Chain: last.Chain}
	whole, err := l.PutArchive(t.Context(), last.Tenant, last.Thread, d)
	must(t, err, l.CheckArchive(t.Context(), last.Tenant, last.Thread, whole))
	s, err := l.Streams().Stream(t.Context(), l.cfg.Names.Stream(assets.LogStream))
	must(t, err)
	for _, erase := range []func() error{ // the last commits are erased first
		func() error { return streams.EraseOne(t.Context(), s, last.Seq) },
		func() error {
			return streams.Purge(t.Context(), s, jetstream.WithPurgeSubject(l.cfg.Names.Log(last.Tenant, last.Thread)))
		},
	} {
		must(t, erase())
		if got, err := l.PutArchive(t.Context(), last.Tenant, last.Thread, d); !errors.Is(err, ErrCommitsGone) || got.Object != whole.Object {
			t.Errorf("to be digested: %+v, %v", got, err)
		}
		if err := l.putArchive(t.Context(), last.Tenant, last.Thread, whole); !errors.Is(err, ErrCommitsGone) {
			t.Errorf("to be written: %v", err)
		}
		must(t, l.CheckArchive(t.Context(), last.Tenant, last.Thread, whole))
	}
}
