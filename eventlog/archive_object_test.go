package eventlog

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

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
