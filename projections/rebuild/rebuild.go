package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// Kinds of differences between the live documents and the log.
const (
	Missing   = "missing"   // the log says that there is a document
	Extra     = "extra"     // the log says that there is none
	Different = "different" // the document is not what the log says of its sequence
)

// Difference is a document that is not what the log says.
type Difference struct {
	Projection string `json:"projection"`
	Bucket     string `json:"bucket"`
	Key        string `json:"key"`
	Kind       string `json:"kind"`
	LiveSeq    uint64 `json:"liveSeq,omitzero"` // the sequence that the live document bears
	LogSeq     uint64 `json:"logSeq,omitzero"`  // of the last commit in the log that changes it
}

// Report is the result of a rebuild.
type Report struct {
	Projections []string     `json:"projections"`
	Threads     int64        `json:"threads"`   // in the log
	Documents   int64        `json:"documents"` // that were compared
	Broken      int64        `json:"broken"`    // commits that cannot be read
	Found       int64        `json:"found"`     // differences
	Repaired    int64        `json:"repaired"`
	Differences []Difference `json:"differences"` // the first of them
}

// reportedDifferences bounds what a report lists; Found counts all.
const reportedDifferences = 1000

// UnknownProjectionError means that there is no read model of that name.
type UnknownProjectionError struct {
	Name  string
	Known []string
}

func (e *UnknownProjectionError) Error() string {
	return fmt.Sprintf("there is no projection %.64q; there are %v", e.Name, e.Known)
}

// rebuilding is one Verify, Repair or Rewrite.
type rebuilding struct {
	log     *eventlog.Log
	models  *documents.Models
	pages   *eventlog.Pages
	kinds   documents.Mask
	scope   Scope
	tell    Progress
	repair  bool
	alone   bool // no runner runs meanwhile
	writer  *repairer
	rewrite [documents.Kinds]uint64 // documents up to this sequence of their bucket are written again; see Rewrite

	mu     sync.Mutex // guards what follows
	report Report
	upTo   [documents.Kinds]uint64 // the sequence that each live read model certainly shows
}

// rebuildWorkers is how many threads are folded at once.
const rebuildWorkers = 4

// newRebuilding returns one of the read models with these names, of all if none is named.
func newRebuilding(log *eventlog.Log, names []string) (*rebuilding, error) {
	b := &rebuilding{log: log, models: documents.NewModels(), pages: eventlog.PagesOn(log.Streams())}
	return b, b.choose(names)
}

// Progress receives how many threads and documents were compared so far, from one goroutine at a
// time. Its methods are the functions of this package with a progress. It may be nil.
type Progress func(threads, documents int64)

// Repair folds the log again, compares the live documents of the named read models (all
// if none is named), and repairs those that differ.
func Repair(ctx context.Context, log *eventlog.Log, names ...string) (Report, error) {
	return Progress(nil).Repair(ctx, log, names...)
}

// Repair is the function [Repair], with a progress.
func (p Progress) Repair(ctx context.Context, log *eventlog.Log, names ...string) (Report, error) {
	return p.repairWhile(ctx, log, false, names)
}

// RepairAlone is Repair while no runner runs, to which it would have to leave time.
func RepairAlone(ctx context.Context, log *eventlog.Log, names ...string) (Report, error) {
	return Progress(nil).repairWhile(ctx, log, true, names)
}

func (p Progress) repairWhile(ctx context.Context, log *eventlog.Log, alone bool, names []string) (Report, error) {
	b, err := newRebuilding(log, names)
	if err != nil {
		return Report{}, err
	}
	b.repair, b.alone, b.tell = true, alone, p
	return b.compare(ctx)
}

// Scope limits which threads are verified: those of a tenant, or some of them.
// The zero value means all.
type Scope struct {
	Tenant  string
	Threads []string      // of the tenant
	Wait    time.Duration // for a runner that is about to start; default 15 s
}

func (s Scope) has(n threadName) bool {
	return (s.Tenant == "" || n.tenant == s.Tenant) && (len(s.Threads) == 0 || slices.Contains(s.Threads, n.thread))
}

// Verify compares the documents of some threads with the log, those of the named read
// models or of all, and changes nothing.
func Verify(ctx context.Context, log *eventlog.Log, scope Scope, names ...string) (Report, error) {
	return Progress(nil).Verify(ctx, log, scope, names...)
}

// Verify is the function [Verify], with a progress.
func (p Progress) Verify(ctx context.Context, log *eventlog.Log, scope Scope, names ...string) (Report, error) {
	b, err := newRebuilding(log, names)
	if err != nil {
		return Report{}, err
	}
	b.scope, b.tell = scope, p
	if err := b.awaitRunner(ctx); err != nil {
		return Report{}, err
	}
	return b.compare(ctx)
}

// compare compares, and repairs if that is wanted.
func (b *rebuilding) compare(ctx context.Context) (Report, error) {
	if err := b.position(ctx, true); err != nil {
		return Report{}, err
	}
	b.writer = &repairer{rebuilding: b, alone: b.alone}
	known := map[uint64]struct{}{}
	err := b.workOn(ctx, func(ctx context.Context, work chan<- threadName) error {
		for _, id := range b.scope.Threads {
			work <- threadName{b.scope.Tenant, id}
		}
		if len(b.scope.Threads) > 0 {
			return nil
		}
		return b.listThreads(ctx, known, work)
	})
	if err == nil && len(b.scope.Threads) == 0 {
		err = b.unknownDocuments(ctx, func(thread string) bool { _, ok := known[hashName(thread)]; return ok })
	}
	if err == nil && b.repair {
		err = b.writer.finish(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.report, err
}

// workOn compares the threads that list sends, several at once.
func (b *rebuilding) workOn(ctx context.Context, list func(context.Context, chan<- threadName) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan threadName, 64)
	var workers sync.WaitGroup
	for range rebuildWorkers {
		workers.Go(func() {
			for names := nextGroup(work); len(names) > 0; names = nextGroup(work) {
				if err := b.threads(ctx, names); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := list(ctx, work)
	close(work)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return err
}

// threads compares some threads, one after the other.
func (b *rebuilding) threads(ctx context.Context, names []threadName) error {
	g, err := b.readGroup(ctx, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := b.thread(ctx, name, g); err != nil {
			return err
		}
		delete(g.docs, name)
	}
	return nil
}

// choose selects the read models by their names.
func (b *rebuilding) choose(names []string) error {
	var known []string
	for _, p := range b.models.List() {
		known = append(known, p.Name)
	}
	for _, name := range names {
		p, ok := b.models.Named(name)
		if !ok {
			return &UnknownProjectionError{Name: name, Known: known}
		}
		b.kinds = b.kinds.With(p.Kind)
	}
	if b.kinds == 0 {
		b.kinds = documents.AllKinds
	}
	b.report = Report{Projections: []string{}, Differences: []Difference{}}
	for _, p := range b.models.List() {
		if b.kinds.Has(p.Kind) {
			b.report.Projections = append(b.report.Projections, p.Name)
		}
	}
	return nil
}

// runnerWait is how long it takes until a runner has its lease and has written its
// first checkpoints.
const runnerWait = 15 * time.Second

// awaitRunner blocks until a runner has started with every read model to compare, if one
// is about to: before its first checkpoints a missing document may only be late. On a log
// without a runner it waits in vain.
func (b *rebuilding) awaitRunner(ctx context.Context) error {
	end, err := b.log.LastSeq(ctx)
	if err != nil || end == 0 {
		return err
	}
	for attempts := (retry.Policy{First: 50 * time.Millisecond, Limit: cmp.Or(b.scope.Wait, runnerWait)}).Start(); ; {
		missing := false
		for _, p := range b.models.List() {
			if !b.kinds.Has(p.Kind) || missing {
				continue
			}
			c, err := buckets.ReadCheckpoint(ctx, b.log, p)
			if err != nil {
				return err
			}
			missing = c.Checkpoint == nil
		}
		if !missing {
			return nil
		}
		switch err := attempts.Wait(ctx); {
		case errors.Is(err, retry.ErrExhausted):
			return nil
		case err != nil:
			return err
		}
	}
}

// position reads how far the live read models certainly are. At first, one that is
// not filled yet is assumed to show all of the log.
func (b *rebuilding) position(ctx context.Context, first bool) error {
	end, err := b.log.LastSeq(ctx)
	if err != nil {
		return err
	}
	var upTo [documents.Kinds]uint64
	passed := uint64(0) // by the runner: the checkpoint of threads comes after all that it covers
	for _, p := range b.models.List() {
		c, err := buckets.ReadCheckpoint(ctx, b.log, p)
		if err != nil {
			return err
		}
		known := c.Checkpoint != nil
		if known && p.Kind == documents.Threads && !first {
			passed = min(c.Seq, end)
		}
		switch {
		case known && (c.Version != 0 || !first):
			upTo[p.Kind] = max(min(c.Seq, end), passed)
		case first:
			upTo[p.Kind] = end
		default:
			upTo[p.Kind] = passed
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range upTo {
		b.upTo[k] = max(b.upTo[k], upTo[k])
	}
	return nil
}

// certainSeqs returns the sequences that the live read models certainly show.
func (b *rebuilding) certainSeqs() [documents.Kinds]uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.upTo
}

// note counts a difference.
func (b *rebuilding) note(d Difference) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report.Found++
	if len(b.report.Differences) < reportedDifferences {
		b.report.Differences = append(b.report.Differences, d)
	}
}

func (b *rebuilding) count(threads, docs, broken, repaired int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report.Threads += threads
	b.report.Documents += docs
	b.report.Broken += broken
	b.report.Repaired += repaired
	if b.tell != nil {
		b.tell(b.report.Threads, b.report.Documents)
	}
}
