package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Archives returns the names of the objects of a thread that end with one of some
// sequences, the oldest first.
func (l *Log) Archives(ctx context.Context, tenant, thread string, last []uint64) ([]string, error) {
	var out []string
	for len(last) > 0 {
		part := last[:min(len(last), 512)]
		last = last[len(part):]
		q := streams.GetRequest{Multi: make([]string, len(part))}
		for i, seq := range part {
			q.Multi[i] = l.archiveSubject(archiveObject(tenant, thread, seq))
		}
		got, _, err := l.conn.Latest(ctx, l.archiveStream(), q)
		if err != nil {
			return nil, l.noArchive(ctx, err)
		}
		for _, m := range got {
			if e, ok := streams.ParseObject(m.Data); ok {
				out = append(out, e.Name)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { // as their numbers
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return out, nil
}

// DropArchive removes an object of archived commits, and the server overwrites it. It is no
// error if there is none.
func (l *Log) DropArchive(ctx context.Context, name string) error {
	bucket := l.cfg.Names.Bucket(assets.ArchiveBucket)
	store, err := l.conn.JetStream().ObjectStore(ctx, bucket)
	if err == nil {
		err = l.conn.EraseObject(ctx, store, bucket, name)
	}
	if err == nil {
		err = store.Delete(ctx, name)
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("dropping the archive %s: %w", name, err)
	}
	return nil
}
