package eventlog

import (
	"cmp"
	"context"
	"slices"

	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Archives returns the names of the objects of a thread that end with one of some sequences, the
// oldest first, and of those that end before the last of them and of which a killed writer left
// only pieces: no record will ever name them, since the thread was written to after them.
func (l *Log) Archives(ctx context.Context, tenant, thread string, last []uint64) ([]string, error) {
	if len(last) == 0 {
		return nil, nil
	}
	out, err := l.archiveStore().WithPieces(ctx, tenant+"/"+thread)
	if err != nil {
		return nil, l.noArchive(ctx, err)
	}
	asked, newest := slices.Clone(last), slices.Max(last)
	out = slices.DeleteFunc(out, func(name string) bool {
		_, _, seq, ok := parseArchive(name)
		if !ok || seq > newest {
			return true
		}
		asked = append(asked, seq)
		return false
	})
	slices.Sort(asked)
	for part := range slices.Chunk(slices.Compact(asked), 512) {
		q := streams.GetRequest{Multi: make([]string, len(part))}
		for i, seq := range part {
			q.Multi[i] = l.archiveSubject(archiveObject(tenant, thread, seq))
		}
		got, _, err := l.conn.Latest(ctx, l.archiveStream(), q)
		if err != nil {
			return nil, l.noArchive(ctx, err)
		}
		for _, m := range got {
			if e, ok := objects.Parse(m.Data); ok {
				out = slices.DeleteFunc(out, func(name string) bool { return name == e.Name })
				if _, _, seq, _ := parseArchive(e.Name); slices.Contains(last, seq) {
					out = append(out, e.Name)
				}
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
	return l.archiveStore().Drop(ctx, name)
}

// EraseArchives removes the objects of a thread that end with one of some sequences, the oldest
// first, since each names the one before it, and whatever else the store holds of the thread. The
// server overwrites it.
func (l *Log) EraseArchives(ctx context.Context, tenant, thread string, last []uint64) error {
	names, err := l.Archives(ctx, tenant, thread, last)
	for _, name := range names {
		if err == nil {
			err = l.DropArchive(ctx, name)
		}
	}
	if err == nil {
		err = l.noArchive(ctx, l.archiveStore().ErasePieces(ctx, tenant+"/"+thread))
	}
	return err
}
