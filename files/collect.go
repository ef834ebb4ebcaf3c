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
	"github.com/skein-threads/skein/events"
)

// MinGrace is the least age of what the collector may take: a writer that found
// content younger than touchAfter names it long before.
const MinGrace = 2 * touchAfter

// CollectOptions says what to collect.
type CollectOptions struct {
	Grace  time.Duration // how old what is taken must be; default 1 h, at least MinGrace
	Delete bool          // else it is only told
	Found  func(Garbage) // told of each thing; may be nil
}

// Garbage is what nothing refers to.
type Garbage struct {
	Tenant string    `json:"tenant,omitzero"` // of an object
	Digest string    `json:"digest,omitzero"`
	Upload string    `json:"upload,omitzero"` // of pieces without an object: what a broken upload left
	Bytes  int64     `json:"bytes"`
	Since  time.Time `json:"since"`
	Taken  bool      `json:"taken"`
}

// Collected sums up.
type Collected struct {
	Objects      int64 `json:"objects"` // that the store has
	Bytes        int64 `json:"bytes"`
	Garbage      int64 `json:"garbage"` // objects and uploads to which nothing refers
	GarbageBytes int64 `json:"garbageBytes"`
	Taken        int64 `json:"taken"`
}

// Collect finds the objects that no thread's history names, and the pieces of
// uploads that broke off, and takes them if it is told to. It is safe beside
// writers, and beside another collector. The histories of deleted threads name
// nothing.
func (s *Store) Collect(ctx context.Context, log *eventlog.Log, o CollectOptions) (Collected, error) {
	c := collector{store: s, options: o, old: map[string]kept{}, owned: map[string]bool{}}
	if o.Grace == 0 {
		c.options.Grace = time.Hour
	}
	if c.options.Grace < MinGrace {
		return c.sum, events.Invalid("/grace", "the grace is %v; writers need at least %v", o.Grace, MinGrace)
	}
	c.before = s.now().Add(-c.options.Grace)
	// In this order: what is written meanwhile is young, or is named by the log.
	pieces, err := s.subjects(ctx, s.pieceSubject("*"))
	if err == nil {
		err = c.list(ctx)
	}
	if err == nil {
		err = c.unname(ctx, log)
	}
	for _, name := range slices.Sorted(maps.Keys(c.old)) {
		if err == nil {
			err = c.object(ctx, c.old[name])
		}
	}
	for _, subject := range pieces {
		if err == nil {
			err = c.upload(ctx, subject)
		}
	}
	return c.sum, err
}

// subjects lists the subjects that the store has, in order.
func (s *Store) subjects(ctx context.Context, filter string) ([]string, error) {
	info, err := s.stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("listing the store of contents: %w", err)
	}
	return slices.Sorted(maps.Keys(info.State.Subjects)), nil
}

// collector is one collection.
type collector struct {
	store   *Store
	options CollectOptions
	before  time.Time
	old     map[string]kept // objects that are old enough, by name
	owned   map[string]bool // uploads that have an object
	tenant  string          // whose threads may name what is looked at; all if empty
	eraser  *eventlog.Log   // overwrites what is taken; nil: it is only removed
	sum     Collected
}

// kept is an object's entry as it was found.
type kept struct {
	*object
	subject string
	seq     uint64
}

// list reads all entries.
func (c *collector) list(ctx context.Context) error {
	names, err := c.store.subjects(ctx, "$O."+c.store.bucket+".M.*")
	if err != nil {
		return err
	}
	for _, subject := range names {
		m, err := c.store.stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the store of contents: %w", err)
		}
		o, err := decodeEntry(m.Data)
		if err != nil {
			return fmt.Errorf("entry %d of the store of contents: %w", m.Sequence, err) // its pieces cannot be told from garbage
		}
		if o.entry.Deleted {
			continue
		}
		o.written = m.Time
		c.owned[o.entry.NUID] = true
		c.sum.Objects++
		c.sum.Bytes += o.entry.Size
		if o.written.Before(c.before) {
			c.old[o.entry.Name] = kept{o, subject, m.Sequence}
		}
	}
	return nil
}

// unname leaves in old what no thread's history names.
func (c *collector) unname(ctx context.Context, log *eventlog.Log) error {
	if len(c.old) == 0 {
		return nil
	}
	users := map[string]map[string]bool{}  // threads that name an object
	naming := map[string]map[string]bool{} // objects that a thread names
	for m, err := range log.Raw(ctx, log.Config().Names.Log(cmp.Or(c.tenant, "*"), "*"), 1) {
		if err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		if !bytes.Contains(m.Data, []byte(events.FileWrittenType)) && !bytes.Contains(m.Data, []byte(events.LifecycleDeletedType)) {
			continue
		}
		commit, err := log.Decode(m)
		if err != nil {
			c.suspect(m.Data)
			continue
		}
		thread := commit.Tenant + "." + commit.Thread
		for i := range commit.Events {
			switch d := commit.Events[i].Data.(type) {
			case events.FileWritten:
				name := objectName(commit.Tenant, d.Digest)
				if _, old := c.old[name]; old && d.Digest != "" {
					note(users, name, thread)
					note(naming, thread, name)
				}
			case events.LifecycleDeleted:
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

// suspect keeps whatever a commit that cannot be read may name.
func (c *collector) suspect(body []byte) {
	for name := range c.old {
		if _, digest, _ := strings.Cut(name, "/"); bytes.Contains(body, []byte(digest)) {
			delete(c.old, name)
		}
	}
}

// object deals with an object that nothing names.
func (c *collector) object(ctx context.Context, k kept) error {
	tenant, digest, _ := strings.Cut(k.entry.Name, "/")
	g := Garbage{Tenant: tenant, Digest: digest, Bytes: k.entry.Size, Since: k.written}
	if c.options.Delete {
		taken, err := c.take(ctx, tenant, digest, k)
		if err != nil {
			return err
		}
		g.Taken = taken
	}
	c.found(g)
	return nil
}

// take takes an object, unless its entry was written again. The order matters:
// an object without its pieces must not be found.
func (c *collector) take(ctx context.Context, tenant, digest string, k kept) (bool, error) {
	marker := entry{Name: k.entry.Name, Bucket: k.entry.Bucket, NUID: k.entry.NUID, ModTime: noTime, Deleted: true}
	m, err := marker.message(k.subject)
	if err != nil {
		return false, err
	}
	ack, err := c.store.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(k.seq))
	if conflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("taking %s: %w", k.entry.Name, err)
	}
	c.store.forget(tenant, digest)
	pieces := c.store.pieceSubject(k.entry.NUID)
	if c.eraser != nil {
		err = c.eraser.Streams().Erase(ctx, "OBJ_"+c.store.bucket, pieces, 0)
	} else {
		err = c.store.stream.Purge(ctx, jetstream.WithPurgeSubject(pieces))
	}
	if err == nil { // the marker itself, but not what a writer put after it
		err = c.store.stream.Purge(ctx, jetstream.WithPurgeSubject(k.subject), jetstream.WithPurgeSequence(ack.Sequence+1))
	}
	if err != nil {
		return true, fmt.Errorf("taking the pieces of %s: %w", k.entry.Name, err)
	}
	return true, nil
}

// upload deals with pieces that belong to no object.
func (c *collector) upload(ctx context.Context, subject string) error {
	nuid := subject[strings.LastIndexByte(subject, '.')+1:]
	if c.owned[nuid] {
		return nil
	}
	m, err := c.store.stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the store of contents: %w", err)
	}
	if !m.Time.Before(c.before) {
		return nil
	}
	info, err := c.store.stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return fmt.Errorf("reading the store of contents: %w", err)
	}
	n := int64(info.State.Subjects[subject])
	g := Garbage{Upload: nuid, Bytes: (n-1)*events.FilePieceBytes + int64(len(m.Data)), Since: m.Time}
	if c.options.Delete {
		if err := c.store.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return fmt.Errorf("taking the pieces of upload %s: %w", nuid, err)
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
