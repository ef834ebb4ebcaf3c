package files

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// MinGrace is the minimum age of content that the collector may delete. A writer that finds
// content younger than touchAfter does not write its entry again, and names it long before it is
// this old.
const MinGrace = 2 * touchAfter

// CollectOptions configures a collection.
type CollectOptions struct {
	Grace  time.Duration // minimum age of what is deleted; default 1 h, at least MinGrace
	Delete bool          // otherwise only report
	Found  func(Garbage) // called with each thing found; may be nil
}

// Garbage is content that no history refers to.
type Garbage struct {
	Tenant string    `json:"tenant,omitzero"` // of an object
	Digest string    `json:"digest,omitzero"`
	Upload string    `json:"upload,omitzero"` // the id of an aborted upload that left pieces without an object
	Bytes  int64     `json:"bytes"`
	Since  time.Time `json:"since"`
	Taken  bool      `json:"taken"`
}

// Collected is the summary of a collection.
type Collected struct {
	Objects      int64 `json:"objects"` // in the store
	Bytes        int64 `json:"bytes"`
	Garbage      int64 `json:"garbage"` // unreferenced objects and uploads
	GarbageBytes int64 `json:"garbageBytes"`
	Taken        int64 `json:"taken"`
}

// Collect finds the objects that no thread's history names, and the pieces of aborted uploads, and
// deletes them if Options.Delete is set. It is safe to run concurrently with writers and other
// collectors. Histories of deleted threads do not count.
func (s *Store) Collect(ctx context.Context, log *eventlog.Log, o CollectOptions) (Collected, error) {
	c := collector{store: s, options: o, old: map[string]kept{}, owned: map[string]bool{}}
	if o.Grace == 0 {
		c.options.Grace = time.Hour
	}
	if c.options.Grace < MinGrace {
		return c.sum, events.Invalid("/grace", "the grace is %v; writers need at least %v", o.Grace, MinGrace)
	}
	c.before = s.now().Add(-c.options.Grace)
	// The order matters: pieces are listed first, so that anything written meanwhile is young, or
	// named by the log.
	pieces, err := s.subjects(ctx, objects.Pieces(s.bucket, "*"))
	if err == nil {
		err = c.listObjects(ctx)
	}
	if err == nil {
		err = c.spareNamed(ctx, log)
	}
	for _, name := range slices.Sorted(maps.Keys(c.old)) {
		if err == nil {
			err = c.collectObject(ctx, c.old[name])
		}
	}
	for _, subject := range pieces {
		if err == nil {
			err = c.collectUpload(ctx, subject)
		}
	}
	return c.sum, err
}

// subjects returns the subjects of the store's stream, sorted.
func (s *Store) subjects(ctx context.Context, filter string) ([]string, error) {
	info, err := s.stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("list content store: %w", err)
	}
	return slices.Sorted(maps.Keys(info.State.Subjects)), nil
}

// collector is the state of one collection.
type collector struct {
	store   *Store
	options CollectOptions
	before  time.Time
	old     map[string]kept // objects that are old enough, by name
	owned   map[string]bool // uploads that have an object
	tenant  string          // only threads of this tenant can name the objects; empty: threads of all tenants
	eraser  *eventlog.Log   // overwrites what is deleted on disk; nil: objects are only deleted
	sum     Collected
}

// kept is an object's entry as it was read.
type kept struct {
	*objects.Found
	subject string
}

// listObjects counts all objects, and fills old and owned.
func (c *collector) listObjects(ctx context.Context) error {
	return c.entries(ctx, func(k kept) {
		c.owned[k.NUID] = true
		c.sum.Objects++
		c.sum.Bytes += k.Size
		if k.Stored.Before(c.before) {
			c.old[k.Name] = k
		}
	})
}

// entries calls tell with the entry of each object of the store.
func (c *collector) entries(ctx context.Context, tell func(kept)) error {
	names, err := c.store.subjects(ctx, objects.Entries(c.store.bucket)+"*")
	if err != nil {
		return err
	}
	for _, subject := range names {
		m, err := c.store.stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read content store: %w", err)
		}
		o, err := objects.Decode(m.Data)
		if err != nil {
			return fmt.Errorf("read entry %d of the content store: %w", m.Sequence, err) // without the entry its pieces would look like garbage
		}
		if !o.Deleted {
			tell(kept{&objects.Found{Object: *o, Seq: m.Sequence, Stored: m.Time}, subject})
		}
	}
	return nil
}

// spareNamed removes from old the objects that the history of a thread names.
func (c *collector) spareNamed(ctx context.Context, log *eventlog.Log) error {
	if len(c.old) == 0 {
		return nil
	}
	users := map[string]map[string]bool{}  // threads that name an object
	naming := map[string]map[string]bool{} // objects that a thread names
	for m, err := range log.Raw(ctx, log.Config().Names.Log(cmp.Or(c.tenant, "*"), "*"), 1) {
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if !bytes.Contains(m.Data, []byte(events.FileWrittenType)) && !bytes.Contains(m.Data, []byte(events.HistoryInheritedType)) &&
			!bytes.Contains(m.Data, []byte(events.LifecycleDeletedType)) {
			continue
		}
		commit, err := log.Decode(m)
		if err != nil {
			c.spareSuspected(m.Data)
			continue
		}
		thread := commit.Tenant + "." + commit.Thread
		for i := range commit.Events {
			e := &commit.Events[i]
			for digest := range e.Contents() {
				name := objectName(commit.Tenant, digest)
				if _, old := c.old[name]; old {
					note(users, name, thread)
					note(naming, thread, name)
				}
			}
			if e.Type == events.LifecycleDeletedType {
				for name := range naming[thread] {
					delete(users[name], thread)
				}
				delete(naming, thread)
			}
		}
	}
	for name, threads := range users {
		if len(threads) > 0 {
			delete(c.old, name)
		}
	}
	return nil
}

func note(in map[string]map[string]bool, key, value string) {
	if in[key] == nil {
		in[key] = map[string]bool{}
	}
	in[key][value] = true
}

// spareSuspected spares all objects that a commit that cannot be decoded may name.
func (c *collector) spareSuspected(body []byte) {
	for name := range c.old {
		if _, digest, _ := strings.Cut(name, "/"); bytes.Contains(body, []byte(digest)) {
			delete(c.old, name)
		}
	}
}

// collectObject reports, and deletes if asked to, an object that no history names.
func (c *collector) collectObject(ctx context.Context, k kept) error {
	tenant, digest, _ := strings.Cut(k.Name, "/")
	g := Garbage{Tenant: tenant, Digest: digest, Bytes: k.Size, Since: k.Stored}
	if c.options.Delete {
		taken, err := c.deleteObject(ctx, tenant, digest, k)
		if err != nil {
			return err
		}
		g.Taken = taken
	}
	c.found(g)
	return nil
}

// deleteObject deletes an object, unless its entry was written again. It deletes the entry first, so that
// nobody finds an object without its pieces.
func (c *collector) deleteObject(ctx context.Context, tenant, digest string, k kept) (bool, error) {
	m, err := objects.Removed(k.Name, k.NUID).Message(c.store.bucket)
	if err != nil {
		return false, err
	}
	ack, err := c.store.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(k.Seq))
	if conflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete content %s: %w", k.Name, err)
	}
	c.store.forget(tenant, digest)
	pieces := objects.Pieces(c.store.bucket, k.NUID)
	if c.eraser != nil {
		err = c.eraser.Streams().Erase(ctx, objects.Stream(c.store.bucket), pieces, 0)
	} else {
		err = streams.Purge(ctx, c.store.stream, jetstream.WithPurgeSubject(pieces))
	}
	if err == nil { // purge the deletion marker, but no entry that a writer stored after it
		err = streams.Purge(ctx, c.store.stream, jetstream.WithPurgeSubject(k.subject), jetstream.WithPurgeSequence(ack.Sequence+1))
	}
	if err != nil {
		return true, fmt.Errorf("delete pieces of %s: %w", k.Name, err)
	}
	return true, nil
}

// collectUpload reports, and deletes if asked to, pieces that belong to no object.
func (c *collector) collectUpload(ctx context.Context, subject string) error {
	nuid := subject[strings.LastIndexByte(subject, '.')+1:]
	if c.owned[nuid] {
		return nil
	}
	m, err := c.store.stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read content store: %w", err)
	}
	if !m.Time.Before(c.before) {
		return nil
	}
	info, err := c.store.stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return fmt.Errorf("read content store: %w", err)
	}
	n := int64(info.State.Subjects[subject])
	g := Garbage{Upload: nuid, Bytes: (n-1)*events.FilePieceBytes + int64(len(m.Data)), Since: m.Time}
	if c.options.Delete {
		if err := streams.Purge(ctx, c.store.stream, jetstream.WithPurgeSubject(subject)); err != nil {
			return fmt.Errorf("delete pieces of upload %s: %w", nuid, err)
		}
		g.Taken = true
	}
	c.found(g)
	return nil
}

func (c *collector) found(g Garbage) {
	c.sum.Garbage++
	c.sum.GarbageBytes += g.Bytes
	if g.Taken {
		c.sum.Taken++
	}
	if c.options.Found != nil {
		c.options.Found(g)
	}
}
