package cleanup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// Config bounds a cleaner.
type Config struct {
	EraseTurn time.Duration // the length of a purged thread's first turn of erasing; later turns are longer
	Ahead     int           // how many commands to delete worker threads may wait per tenant; default 1,000
	Contents  Eraser        // erases the contents of purged threads' files; default: the collector deletes them later
}

// Eraser erases contents of files for good.
type Eraser interface {
	// Erase overwrites the contents with the given digests, except those that a thread's history
	// still names. Content that may be about to be named stays, too; then Erase returns after how
	// long it must be called again.
	Erase(ctx context.Context, tenant string, digests []string) (again time.Duration, err error)
	// ErasePages is Erase for the pages that were made of a thread's history for its forks.
	ErasePages(ctx context.Context, tenant, thread string) (again time.Duration, err error)
}

// Metrics receives the progress of the cleanup. Its methods must return at once.
type Metrics interface {
	// Ends receives how many deletions are not finished.
	Ends(open int)
}

// Cleaner finishes the deletion of threads, alongside the runner. It is safe for
// concurrent use.
type Cleaner struct {
	log     *eventlog.Log
	models  *documents.Models
	cfg     Config
	logger  zerolog.Logger
	metrics Metrics
	queue   *queue
}

// New returns the cleaner of a log and its read models.
func New(log *eventlog.Log, models *documents.Models, cfg Config, logger zerolog.Logger, metrics Metrics) *Cleaner {
	if cfg.Ahead == 0 {
		cfg.Ahead = 1000
	}
	return &Cleaner{log: log, models: models, cfg: cfg, logger: logger, metrics: metrics, queue: newQueue()}
}

// Reset drops the records of which threads work for which, because documents may have been lost,
// and the number that Expect has set.
func (c *Cleaner) Reset() { c.queue.reset(newWorkers()) }

// Add adds a deletion after the thread's documents were purged. A deletion that was added before
// is ignored.
func (c *Cleaner) Add(d buckets.Deletion) { c.queue.add(d) }

// Expect sets how many deletions will be added. They count as open, too.
func (c *Cleaner) Expect(n int) { c.metrics.Ends(c.queue.expect(n)) }

// queue holds the deletions that are not finished. It erases one purged thread at a time, since
// several would use up the server's disk bandwidth. A waiting deletion takes an entry here and no
// goroutine. The notes in the bucket of threads are authoritative: after a restart the queue is
// read again from them. It is safe for concurrent use.
type queue struct {
	wake chan struct{} // of capacity 1: something changed

	mu      sync.Mutex // guards what follows
	open    map[string]*openDeletion
	coming  int      // deletions that will be added
	erasing bool     // a purged thread is being erased
	workers *workers // as known to the runner's current session
}

// openDeletion is a deletion that is not finished.
type openDeletion struct {
	buckets.Deletion
	due      time.Time
	pause    time.Duration // before the next look at the timeline
	working  bool
	dropped  bool // its snapshot is removed
	sent     int  // how many of its worker threads the delete command was submitted for
	cascaded bool // its worker threads are deleted; its own contents are next
	emptied  bool // the contents of its files are erased
	turns    int  // the number of turns it had to erase the rest
}

func (o *openDeletion) erases() bool { return o.cascaded && o.Purge }

const (
	cleanedAtOnce = 4                // deletions that are worked on at once
	retryAfter    = 30 * time.Second // after a failure
)

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), open: map[string]*openDeletion{}, workers: newWorkers()}
}

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add adds a deletion, unless it was added before.
func (q *queue) add(d buckets.Deletion) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[d.Key()] == nil {
		q.open[d.Key()] = &openDeletion{Deletion: d, due: time.Now()}
		q.poke()
	}
}

// expect sets how many deletions will be added, and returns how many are open.
func (q *queue) expect(n int) (open int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.coming = n
	return len(q.open) + q.coming
}

// reset replaces the record of which threads work for which.
func (q *queue) reset(w *workers) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers, q.coming = w, 0
}

// known returns the record of which threads work for which.
func (q *queue) known() *workers {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.workers
}

// clear drops everything, because another process may become the runner.
func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.open)
	q.erasing, q.coming = false, 0
}

// next removes and returns the deletion that has been due for longest. If none is due, it returns
// how long to wait.
func (q *queue) next(now time.Time) (first *openDeletion, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range q.open {
		if o.working || o.erases() && q.erasing {
			continue
		}
		if first == nil || o.due.Before(first.due) {
			first = o
		}
	}
	if first == nil {
		return nil, time.Hour
	}
	if first.due.After(now) {
		return nil, first.due.Sub(now)
	}
	first.working = true
	q.erasing = q.erasing || first.erases()
	return first, 0
}

// stepResult is the result of one step of a deletion's cleanup.
type stepResult struct {
	cascaded bool
	finished bool
	again    time.Duration // how long until it is due again, if it is not finished
}

// done removes a finished deletion, or schedules its next step. It returns how many are open.
func (q *queue) done(o *openDeletion, r stepResult) (open int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o.erases() {
		q.erasing = false
	}
	o.working, o.cascaded, o.due = false, o.cascaded || r.cascaded, time.Now().Add(r.again)
	if r.finished {
		delete(q.open, o.Key())
	}
	q.poke()
	return len(q.open) + q.coming
}

// Run finishes deletions until ctx ends, and then drops the rest.
func (c *Cleaner) Run(ctx context.Context) {
	defer c.metrics.Ends(0)
	defer c.queue.clear()
	places := make(chan struct{}, cleanedAtOnce)
	var working sync.WaitGroup
	defer working.Wait()
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		o, wait := c.queue.next(time.Now())
		if o == nil {
			<-places
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-c.queue.wake:
			case <-ctx.Done():
			}
			timer.Stop()
			if ctx.Err() != nil {
				return
			}
			continue
		}
		working.Go(func() {
			defer func() { <-places }()
			result, err := c.step(ctx, o)
			if err != nil && ctx.Err() == nil {
				c.logger.Error().Err(err).Str("tenant", o.Tenant).Str("thread", o.Thread).
					Msg("the deletion of a thread could not be finished; it is tried again")
				result.again = retryAfter
			}
			if ctx.Err() == nil {
				c.metrics.Ends(c.queue.done(o, result))
			}
		})
	}
}

// step performs the next step of a deletion.
func (c *Cleaner) step(ctx context.Context, o *openDeletion) (stepResult, error) {
	switch {
	case !o.cascaded:
		if err := c.dropSnapshot(ctx, o); err != nil {
			return stepResult{}, err
		}
		if again, err := c.cascade(ctx, o); err != nil || again > 0 {
			return stepResult{again: again}, err
		}
		if o.Purge {
			return stepResult{cascaded: true}, nil
		}
	case o.Purge:
		if again, err := c.erase(ctx, o); err != nil || again > 0 {
			return stepResult{again: again}, err
		}
	}
	if err := c.removeNote(ctx, o.Deletion); err != nil {
		return stepResult{cascaded: true}, err
	}
	return stepResult{finished: true}, nil
}

// dropSnapshot removes the snapshot of a deleted thread, once.
func (c *Cleaner) dropSnapshot(ctx context.Context, o *openDeletion) error {
	if o.dropped {
		return nil
	}
	err := eventlog.SnapshotsOn(c.log.Streams()).Drop(ctx, o.Tenant, o.Thread)
	o.dropped = err == nil
	return err
}

// removeNote removes the note of a deletion that is finished.
func (c *Cleaner) removeNote(ctx context.Context, d buckets.Deletion) error {
	bucket := c.log.Bucket(c.models.Of(documents.Threads).Bucket)
	stream, err := c.log.Streams().Stream(ctx, bucket.Stream())
	if err == nil {
		err = streams.Purge(ctx, stream, jetstream.WithPurgeSubject(bucket.Subject(d.Key())))
	}
	if err != nil {
		return fmt.Errorf("removing the note of the deletion of %s/%s: %w", d.Tenant, d.Thread, err)
	}
	return nil
}
