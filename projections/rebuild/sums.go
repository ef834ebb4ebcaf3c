package rebuild

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// mostDiffering bounds how many threads a Verification compares one by one. If more differ,
// it compares all.
const mostDiffering = 4096

// Verification compares the documents of the threads of a scope with the log, of which its caller
// reads every one of these threads. It reads each bucket once, in the order in which it is stored, and keeps a
// digest of each thread's documents. Only threads whose fold has another digest are compared
// as [Verify] does, so that every difference that it reports is one that Verify finds.
//
// It holds some forty bytes of each thread in memory, and the documents of the threads that
// are folded.
type Verification struct {
	*rebuilding
	pages documents.Pages
	seed  maphash.Seed
	all   bool // the buckets could not be read: every thread is compared

	sums    sync.Mutex         // guards what follows
	live    map[uint64]liveSum // by the digest of the thread's name
	strange bool               // a bucket has what belongs to no thread
	differs []threadName
}

// liveSum is the sums of the digests of a thread's live documents, in any order.
type liveSum struct {
	sum  uint64 // of those that a cold thread does not have
	own  uint64 // of all others
	cold bool   // documents may be absent, see buckets.Mark
	seen bool   // the thread was folded
}

// add adds the digest of a document.
func (s *liveSum) add(k documents.Kind, digest uint64) {
	if documents.ColdKinds.Has(k) {
		s.sum += digest
	} else {
		s.own += digest
	}
}

// shows reports whether the live documents are what the fold of a log says.
func (s liveSum) shows(fold liveSum) bool {
	return s.own == fold.own && (s.sum == fold.sum || s.cold && s.sum == 0)
}

// Begin reads the live documents of the named read models, or of all. Fold what the log has
// of every thread of the scope afterwards, so that it has all that the documents show.
func Begin(ctx context.Context, log *eventlog.Log, scope Scope, names ...string) (*Verification, error) {
	b, err := newRebuilding(log, names)
	if err != nil {
		return nil, err
	}
	b.scope = scope
	if err := b.awaitRunner(ctx); err != nil {
		return nil, err
	}
	v := &Verification{rebuilding: b, pages: b.pages.In(ctx), seed: maphash.MakeSeed(), live: map[uint64]liveSum{}}
	if err := v.readAll(ctx); err != nil {
		return nil, err
	}
	return v, nil
}

// readers is how many buckets are read at once: while one waits for the server, the messages of
// others are digested.
const readers = 3

// readAll adds the documents of all read models.
func (v *Verification) readAll(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	var failed atomic.Bool
	models := make(chan documents.Projection)
	for range readers {
		running.Go(func() {
			for p := range models {
				for _, pattern := range v.scope.keys(p.Kind) {
					if v.read(reading, p, pattern) != nil {
						failed.Store(true)
						stop()
						break
					}
				}
			}
		})
	}
	for _, p := range v.models.List() {
		if v.kinds.Has(p.Kind) || p.Kind == documents.Threads {
			models <- p
		}
	}
	close(models)
	running.Wait()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("reading documents: %w", context.Cause(ctx))
	case failed.Load(): // which the comparison of all threads reports, if it remains
		v.all, v.live = true, nil
	}
	return nil
}

// keys returns the patterns of the keys in a bucket that the threads of a scope have.
func (s Scope) keys(k documents.Kind) (patterns []string) {
	switch {
	case s.Tenant == "":
		return []string{">"}
	case len(s.Threads) == 0:
		return []string{s.Tenant + ".>"}
	}
	for _, id := range s.Threads {
		if pattern, _ := keysOf(k, threadName{s.Tenant, id}); pattern != "" {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// read adds the documents of one read model under the keys of a pattern.
func (v *Verification) read(ctx context.Context, p documents.Projection, pattern string) error {
	bucket := v.log.Bucket(p.Bucket)
	for m, err := range v.log.Streams().Delivered(ctx, bucket.Stream(), bucket.Subject(pattern)) {
		if err != nil {
			return err
		}
		key := bucket.Key(m.Subject)
		if noDocument(key, m) {
			continue
		}
		thread, ok := threadOf(p.Kind, key)
		if !ok {
			v.sums.Lock()
			v.strange = true
			v.sums.Unlock()
			continue
		}
		v.add(p.Kind, thread, v.digest(p.Kind, key, m.Data), p.Kind == documents.Threads && buckets.MarkOf(m.Header).Cold)
	}
	return nil
}

// add adds the digest of a live document of a thread, which says whether the thread is cold.
func (v *Verification) add(k documents.Kind, thread string, digest uint64, cold bool) {
	name := maphash.String(v.seed, thread)
	v.sums.Lock()
	defer v.sums.Unlock()
	at := v.live[name]
	at.cold = at.cold || cold
	if v.kinds.Has(k) {
		at.add(k, digest)
	}
	v.live[name] = at
}

// noDocument reports whether a message of a bucket is the runner's own, or a marker.
func noDocument(key string, m streams.Message) bool {
	own := key == buckets.CheckpointKey || key == buckets.IncarnationKey || key == buckets.FillerKey || strings.HasPrefix(key, buckets.DeletionPrefix) || strings.HasPrefix(key, buckets.RemovalPrefix)
	return own || m.Header.Get(buckets.HeaderOperation) != ""
}

// threadOf returns the name of the thread that a document, or a piece of one, belongs to.
func threadOf(k documents.Kind, key string) (name string, ok bool) {
	if name, piece := documents.ParsePiece(key); piece {
		return name, true
	}
	place, ok := documents.ParsePlace(k, key)
	return place.Thread, ok
}

// digest returns the digest of a document under its key.
func (v *Verification) digest(k documents.Kind, key string, doc []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(v.seed)
	_ = h.WriteByte(byte(k))
	_, _ = h.WriteString(key)
	_ = h.WriteByte(0)
	_, _ = h.Write(doc)
	return h.Sum64()
}

// Fold folds the log of one thread. One goroutine uses it.
type Fold struct {
	v      *Verification
	name   threadName
	memory *documents.Memory
	unread bool // a page that the thread has inherited could not be read
}

// Thread begins to fold a thread, or another aggregate. It is safe for concurrent use.
func (v *Verification) Thread(tenant, aggregate string) *Fold {
	f := &Fold{v: v, name: threadName{tenant, aggregate}}
	if !v.all && documents.Folds(aggregate) && v.scope.has(f.name) {
		f.memory = v.models.NewMemory(v.pages)
	}
	return f
}

// Commit folds the next commit that can be decoded.
func (f *Fold) Commit(c *events.Commit) {
	if f.memory != nil && !f.unread {
		f.unread = f.memory.Apply(c) != nil
	}
}

// End compares the fold with the live documents.
func (f *Fold) End() error {
	if f.memory == nil {
		return nil
	}
	v, sum := f.v, liveSum{seen: true}
	slots := f.memory.All(v.kinds)
	for _, slot := range slots {
		raw, err := documents.Encode(slot.Doc)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", slot.Place.Key(), err)
		}
		sum.add(slot.Place.Kind, v.digest(slot.Place.Kind, slot.Place.Key(), raw))
	}
	f.memory = nil
	v.sums.Lock()
	name := maphash.String(v.seed, f.name.String())
	right := v.live[name].shows(sum) && !f.unread
	v.live[name] = sum
	if !right && len(v.differs) <= mostDiffering {
		v.differs = append(v.differs, f.name)
	}
	v.sums.Unlock()
	if right {
		threads := int64(1)
		if !events.IsThread(f.name.thread) {
			threads = 0
		}
		v.count(threads, int64(len(slots)), 0, 0)
	}
	return nil
}

// End compares what differs, and reports what it found.
func (v *Verification) End(ctx context.Context) (Report, error) {
	if v.all || len(v.differs) > mostDiffering {
		v.report.Threads, v.report.Documents = 0, 0
		return v.compare(ctx)
	}
	strange := v.strange
	for _, at := range v.live {
		strange = strange || !at.seen
	}
	err := v.compareSome(ctx, v.differs, func() error {
		if !strange {
			return nil
		}
		return v.unknownDocuments(ctx, func(thread string) bool { return v.live[maphash.String(v.seed, thread)].seen })
	})
	return v.report, err
}

// compareSome compares some threads one by one, and then what rest adds.
func (v *Verification) compareSome(ctx context.Context, names []threadName, rest func() error) error {
	if len(names) > 0 {
		if err := v.position(ctx, true); err != nil {
			return err
		}
	}
	err := v.workOn(ctx, func(_ context.Context, work chan<- threadName) error {
		for _, name := range names {
			work <- name
		}
		return nil
	})
	if err != nil {
		return err
	}
	return rest()
}
