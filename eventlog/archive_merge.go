package eventlog

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"iter"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// archived is an object of archived commits, with their sequences in the log.
type archived struct {
	tenant, thread string
	first, last    uint64
}

// archiveIndex knows which objects of archived commits exist. It is filled by the first
// read of several threads together, and then follows the store: some hundred bytes for
// each object.
type archiveIndex struct {
	mu   sync.Mutex           // guards what follows
	upTo uint64               // of the store's stream
	of   map[string]*archived // by name
}

// archivedSince returns the objects of a tenant ("*": of all) that hold commits from a
// sequence on, and up to which of its messages it has read the store. It returns no
// objects if that is seen, which the caller has read before.
func (l *Log) archivedSince(ctx context.Context, tenant string, from, seen uint64) ([]*archived, uint64, error) {
	x := &l.archives
	x.mu.Lock()
	defer x.mu.Unlock()
	for m, err := range l.conn.Messages(ctx, l.archiveStream(), l.archiveSubject("*"), x.upTo+1) {
		if err != nil {
			if err = l.noArchive(ctx, err); err != nil {
				return nil, 0, err
			}
			break
		}
		x.note(m)
	}
	if x.upTo == seen {
		return nil, seen, nil
	}
	var out []*archived
	for _, a := range x.of {
		if (tenant == "*" || a.tenant == tenant) && a.last >= from {
			out = append(out, a)
		}
	}
	return out, x.upTo, nil
}

// note adds an entry of the store to the index.
func (x *archiveIndex) note(m streams.Message) {
	x.upTo = m.Seq
	var e objects.Object
	if json.Unmarshal(m.Data, &e) != nil {
		return // the audit reports it
	}
	tenant, thread, last, ok := parseArchive(e.Name)
	first, err := strconv.ParseUint(e.Metadata[archiveFirst], 10, 64)
	switch {
	case !ok:
	case e.Deleted || err != nil || first > last:
		delete(x.of, e.Name)
	default:
		if x.of == nil {
			x.of = map[string]*archived{}
		}
		x.of[e.Name] = &archived{tenant: tenant, thread: thread, first: first, last: last}
	}
}

// HasArchives reports whether there is any object of archived commits.
func (l *Log) HasArchives(ctx context.Context) (bool, error) {
	list, _, err := l.archivedSince(ctx, "*", 1, 0)
	return len(list) > 0, err
}

// merged reads the messages of all aggregates of a tenant ("*": of all) from a
// sequence on, from the archives and from the log, in the order of the sequences.
// Every object that has commits before and after the current sequence is open, with
// 1 MB of memory each.
//
// What is archived meanwhile is not missed: its object exists before its commits leave
// the log, and the objects are listed after the log was read.
func (l *Log) merged(ctx context.Context, tenant string, from uint64) iter.Seq2[streams.Message, error] {
	return func(yield func(streams.Message, error) bool) {
		g := &merging{log: l, ctx: ctx, tenant: tenant, from: max(from, 1), known: map[archived]bool{}, yield: yield}
		defer g.close()
		stream, subject := l.cfg.Names.Stream(assets.LogStream), l.cfg.Names.Log(tenant, "*")
		for s := l.conn.Scan(stream, subject); ; {
			batch, err := s.Batch(ctx, g.from)
			more := len(batch) > 0 && batch[len(batch)-1].Pending > 0
			if err == nil && !more {
				end := g.from
				if len(batch) > 0 {
					end = batch[len(batch)-1].Seq + 1
				}
				more, err = l.conn.More(ctx, stream, subject, end)
			}
			upTo := uint64(math.MaxUint64)
			if more && len(batch) > 0 {
				upTo = batch[len(batch)-1].Seq
			}
			if err == nil && (!more || len(batch) > 0) {
				err = g.findObjects()
			}
			if err != nil {
				yield(streams.Message{}, err)
				return
			}
			if more && len(batch) == 0 {
				continue
			}
			if !g.mergeBatch(batch, upTo) || !more {
				return
			}
		}
	}
}

// merging is one read of several aggregates.
type merging struct {
	log    *Log
	ctx    context.Context //nolint:containedctx // it lives as long as the read
	tenant string
	from   uint64 // the next message has at least this sequence
	seen   uint64 // how far the store of archives was read
	known  map[archived]bool
	closed []*archived // by first; not opened yet
	open   []*openArchive
	yield  func(streams.Message, error) bool
}

// openArchive is an object that is open for reading.
type openArchive struct {
	*archived
	head streams.Message // the next message of it
	next func() (streams.Message, error, bool)
	stop func()
}

func (g *merging) close() {
	for _, o := range g.open {
		o.stop()
	}
}

// findObjects lists the objects that were added since the last call.
func (g *merging) findObjects() error {
	all, seen, err := g.log.archivedSince(g.ctx, g.tenant, g.from, g.seen)
	if err != nil {
		return err
	}
	g.seen = seen
	for _, a := range all {
		if !g.known[*a] {
			g.known[*a] = true
			g.closed = append(g.closed, a)
		}
	}
	slices.SortFunc(g.closed, func(a, b *archived) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last)) })
	return nil
}

// mergeBatch yields a batch of the log and what is archived up to a sequence, in order and
// each once: between the record and the purge a commit is in both.
func (g *merging) mergeBatch(batch []streams.Message, upTo uint64) bool {
	for {
		at := uint64(math.MaxUint64)
		if len(batch) > 0 {
			at = batch[0].Seq
		}
		for _, o := range g.open {
			at = min(at, o.head.Seq)
		}
		if len(g.closed) > 0 && max(g.closed[0].first, g.from) <= min(at, upTo) {
			a := g.closed[0]
			g.closed = g.closed[1:]
			if !g.openObject(a) {
				return false
			}
			continue
		}
		if at > upTo || at == math.MaxUint64 {
			return true
		}
		var m streams.Message
		if len(batch) > 0 && batch[0].Seq == at {
			m, batch = batch[0], batch[1:]
		} else {
			for _, o := range g.open {
				if o.head.Seq == at {
					m = o.head
				}
			}
		}
		g.from = at + 1
		if !g.advance() || !g.yield(m, nil) {
			return false
		}
	}
}

// openObject opens an object.
func (g *merging) openObject(a *archived) bool {
	o := &openArchive{archived: a}
	o.next, o.stop = iter.Pull2(g.log.frames(g.ctx, a.tenant, a.thread, archiveObject(a.tenant, a.thread, a.last), fnv.New64a()))
	g.open = append(g.open, o)
	return g.advance()
}

// advance moves every open object to its next message, and closes those that have none.
func (g *merging) advance() bool {
	var failed error
	g.open = slices.DeleteFunc(g.open, func(o *openArchive) bool {
		for o.head.Seq < g.from {
			m, err, ok := o.next()
			if ok && err == nil {
				o.head = m
				continue
			}
			o.stop()
			var bad *ArchiveError
			if errors.As(err, &bad) {
				gone, lookErr := g.mayBeMissing(o.archived)
				if lookErr == nil && gone {
					return true
				}
				err = errors.Join(err, lookErr)
			}
			failed = errors.Join(failed, err)
			return true
		}
		return false
	})
	return failed == nil || g.yield(streams.Message{}, failed)
}

// mayBeMissing reports whether an object may be missing: it was abandoned before its
// record was appended, so the log has its commits, or its thread was erased.
func (g *merging) mayBeMissing(a *archived) (bool, error) {
	if c, err := g.log.Get(g.ctx, a.last); c != nil || err != nil {
		return c != nil, err
	}
	last, err := g.log.Newest(g.ctx, a.tenant, a.thread)
	if err != nil || last == nil {
		return false, err
	}
	d, ok := last.Events[len(last.Events)-1].Data.(events.LifecycleDeleted)
	return ok && d.Purge, nil
}
