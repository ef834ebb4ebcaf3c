package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/lru"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/quota"
)

// Defaults of a reader.
const (
	DefaultColdPlaces = 4        // the number of threads that are folded at once
	DefaultColdBytes  = 64 << 20 // of cached documents
	foldTime          = time.Minute
)

// coldReader reads cold threads. It is safe for concurrent use.
type coldReader struct {
	log    *eventlog.Log
	models *documents.Models
	pages  *eventlog.Pages
	places *quota.Pool
	limit  int

	mu      sync.Mutex // guards what follows
	kept    *lru.Cache[key, *coldThread]
	folding map[key]*fold
}

// key identifies a thread at a sequence. Its documents never change.
type key struct {
	thread string
	seq    uint64
}

// fold is a fold in progress. Several readers may wait for it.
type fold struct {
	done   chan struct{} // closed when the fields below are set
	thread *coldThread
	err    error
}

// newColdReader returns a reader. places bounds how many threads are folded at once, bytes how many
// bytes of documents are cached; nil and 0: the defaults.
func newColdReader(log *eventlog.Log, models *documents.Models, reader *eventlog.Pages, places *quota.Pool, bytes int) *coldReader {
	if places == nil {
		places = quota.NewPool("cold", quota.Places{Total: DefaultColdPlaces}, nil)
	}
	limit := cmp.Or(bytes, DefaultColdBytes)
	return &coldReader{
		log: log, models: models, pages: reader, places: places, limit: limit,
		kept: lru.New[key, *coldThread](int64(limit)), folding: map[key]*fold{},
	}
}

// coldDocument is a document as its bucket would hold it.
type coldDocument struct {
	Place documents.Place
	Raw   []byte
	Seq   uint64
}

// coldThread holds the documents of a cold thread. It is immutable.
type coldThread struct {
	key    key
	bytes  int
	byID   [documents.Kinds]map[string]coldDocument
	sorted [documents.Kinds][]coldDocument // in the order in which they were changed last
}

// Get returns a document of the thread, and reports whether there is one.
func (t *coldThread) Get(p documents.Place) (coldDocument, bool) {
	d, ok := t.byID[p.Kind][p.ID]
	return d, ok
}

// All returns the documents of a read model, ordered by their last change. The caller must not
// change the list.
func (t *coldThread) All(k documents.Kind) []coldDocument { return t.sorted[k] }

// Read returns the documents of a thread, named {tenant}.{thread}, as of the sequence that the
// thread's own document shows.
func (r *coldReader) Read(ctx context.Context, thread string, seq uint64) (*coldThread, error) {
	at := key{thread, seq}
	r.mu.Lock()
	if t, ok := r.kept.Get(at); ok {
		r.mu.Unlock()
		return t, nil
	}
	f, ok := r.folding[at]
	if !ok {
		f = &fold{done: make(chan struct{})}
		r.folding[at] = f
		// The caller may give up while others still wait for the fold.
		alone, cancel := context.WithTimeout(context.WithoutCancel(ctx), foldTime)
		go func() {
			defer cancel()
			r.run(alone, at, f)
		}()
	}
	r.mu.Unlock()
	select {
	case <-f.done:
		return f.thread, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run folds a thread, and caches the result.
func (r *coldReader) run(ctx context.Context, at key, f *fold) {
	f.thread, f.err = r.fold(ctx, at)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.folding, at)
	if f.err == nil && f.thread.bytes <= r.limit/2 {
		r.kept.Put(at, f.thread, int64(f.thread.bytes))
	}
	close(f.done)
}

// fold waits for a place for the tenant, and folds a thread.
func (r *coldReader) fold(ctx context.Context, at key) (*coldThread, error) {
	tenant, thread := documents.CutThreadName(at.thread)
	leave, err := r.places.Wait(ctx, tenant)
	if full := (*quota.FullError)(nil); errors.As(err, &full) {
		return nil, events.Errorf(events.Unavailable, "%s", full)
	}
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "the places for cold threads were taken for too long; try again")
	}
	defer leave()
	ctx = quota.Placed(ctx)
	memory, err := r.models.Fold(r.log.Thread(ctx, tenant, thread, 1), documents.Until{Seq: at.seq}, r.pages.In(ctx))
	if err != nil {
		return nil, fmt.Errorf("reading the cold thread %s: %w", at.thread, err)
	}
	if memory.Seq != at.seq {
		return nil, events.Errorf(events.ProjectionBehind, "the log shows the thread up to %d, not yet %d", memory.Seq, at.seq)
	}
	t := &coldThread{key: at}
	for _, slot := range memory.All(documents.ColdKinds) {
		raw, err := documents.Encode(slot.Doc)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", slot.Place.Key(), err)
		}
		k := slot.Place.Kind
		if t.byID[k] == nil {
			t.byID[k] = map[string]coldDocument{}
		}
		d := coldDocument{Place: slot.Place, Raw: raw, Seq: slot.Seq}
		t.byID[k][slot.Place.ID] = d
		t.sorted[k] = append(t.sorted[k], d)
		t.bytes += len(raw) + documentBytes
	}
	for _, list := range t.sorted {
		slices.SortStableFunc(list, func(a, b coldDocument) int {
			return cmp.Or(cmp.Compare(a.Seq, b.Seq), strings.Compare(a.Place.ID, b.Place.ID))
		})
	}
	return t, nil
}

// documentBytes is roughly what a cached document takes in addition to its JSON.
const documentBytes = 300
