package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// A thread's commits may be in two places: the older ones in an object of the store
// [assets.ArchiveBucket], and the others in the log. Between them stands a record, a
// commit with the one event lifecycle.archived. What is missing in the log lies
// directly before the record, since a purge goes backwards from it: a reader needs to
// know nothing else. The first commit in an object may be a record itself, of an
// earlier archive.

// ArchiveError says that commits cannot be read, because the object that a record
// names does not exist, or does not match the record.
type ArchiveError struct {
	Tenant, Thread string
	Object         string
	Missing        bool // it does not exist
	Cause          error
}

func (e *ArchiveError) Error() string {
	if e.Missing {
		return fmt.Sprintf("the archive %s of %s/%s is not in the object store; restore it from a backup", e.Object, e.Tenant, e.Thread)
	}
	return fmt.Sprintf("the archive %s of %s/%s cannot be read: %v; restore it from a backup", e.Object, e.Tenant, e.Thread, e.Cause)
}

func (e *ArchiveError) Unwrap() error { return e.Cause }

// archiveObject returns the name of the object with the commits of a thread up to a
// sequence. The name determines the content.
func archiveObject(tenant, thread string, last uint64) string {
	return tenant + "/" + thread + "/" + strconv.FormatUint(last, 10)
}

// parseArchive parses an object's name.
func parseArchive(name string) (tenant, thread string, last uint64, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || !events.ValidTenant(parts[0]) || !events.ValidThreadID(parts[1]) {
		return "", "", 0, false
	}
	last, err := strconv.ParseUint(parts[2], 10, 64)
	return parts[0], parts[1], last, err == nil && last > 0 && archiveObject(parts[0], parts[1], last) == name
}

// recordMark occurs in the body of every record, and of few other commits.
const recordMark = `"` + string(events.LifecycleArchivedType) + `"`

// recordBytes is more than the size of any record.
const recordBytes = 8 << 10

// Record returns the data of a commit that is a record, and reports whether it is one.
func Record(c *events.Commit) (events.LifecycleArchived, bool) {
	if c == nil || len(c.Events) != 1 || !events.IsThread(c.Thread) {
		return events.LifecycleArchived{}, false
	}
	d, ok := c.Events[0].Data.(events.LifecycleArchived)
	return d, ok
}

// record decodes a message of the log that is a record, nil if it is none.
func (l *Log) record(m streams.Message) (*events.Commit, events.LifecycleArchived) {
	if len(m.Data) > recordBytes || !bytes.Contains(m.Data, []byte(recordMark)) {
		return nil, events.LifecycleArchived{}
	}
	c, err := l.Decode(m)
	if err != nil {
		return nil, events.LifecycleArchived{}
	}
	d, ok := Record(c)
	if !ok || uint64(d.LastSeq) >= m.Seq { // of another log, from which it was imported
		return nil, d
	}
	return c, d
}

const archiveFirst = "first" // in an entry's metadata: the sequence of the first commit

func (l *Log) archiveBucket() string { return l.cfg.Names.Bucket(assets.ArchiveBucket) }

func (l *Log) archiveStream() string { return objects.Stream(l.archiveBucket()) }

func (l *Log) archiveStore() objects.Store { return objects.On(l.conn, l.archiveBucket()) }

// archiveSubject returns the subject of the entry of an object; of all for "*".
func (l *Log) archiveSubject(name string) string {
	if name == "*" {
		return objects.Entries(l.archiveBucket()) + "*"
	}
	return objects.Entry(l.archiveBucket(), name)
}

// archiveEntry reads the entry of an object, nil if there is none.
func (l *Log) archiveEntry(ctx context.Context, name string) (*objects.Object, error) {
	o, err := l.archiveStore().Find(ctx, name)
	var damaged *objects.DamagedError
	switch {
	case errors.As(err, &damaged):
		return nil, nil
	case err != nil:
		return nil, l.noArchive(ctx, err)
	case !o.Exists():
		return nil, nil
	}
	return &o.Object, nil
}

// noArchive returns nil for an error that only means that there is no store of archives.
func (l *Log) noArchive(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound): // a patient read has looked
		return nil
	case !errors.Is(err, nats.ErrNoResponders):
		return err
	}
	if _, lookErr := l.conn.JetStream().Stream(ctx, l.archiveStream()); errors.Is(lookErr, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}

// Commit reads the commit of an aggregate with that sequence, from the log or from
// where it is archived. Nil if there is none (any more).
func (l *Log) Commit(ctx context.Context, tenant, aggregate string, seq uint64) (*events.Commit, error) {
	c, err := l.Get(ctx, seq)
	switch {
	case err != nil || seq == 0:
		return nil, err
	case c != nil && c.Tenant == tenant && c.Thread == aggregate:
		return c, nil
	}
	for m, err := range l.through(ctx, tenant, aggregate, seq) {
		if err != nil || m.Seq != seq {
			return nil, err
		}
		return l.Decode(m)
	}
	return nil, nil
}
