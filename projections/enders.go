package projections

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/projections/documents"
)

// enders finishes the ends of threads beside the runner: the threads that work for
// one are deleted too, and then what a purged one held is erased, of one thread at a
// time: the server writes so much for it that several would leave nothing of the disk
// to others. An end that has to wait for something costs an entry here and no
// goroutine. The notes in the bucket of threads are the truth: what stands here is
// lost with the process, and comes back from them. It is safe for concurrent use.
type enders struct {
	wake chan struct{} // of capacity 1: something changed

	mu      sync.Mutex // guards what follows
	open    map[string]*openEnd
	erasing bool // what a thread held is being erased
	kin     *kin // as the session that runs now knows it
}

// openEnd is an end that is not finished.
type openEnd struct {
	ending
	due      time.Time
	pause    time.Duration // before the next look at the timeline
	working  bool
	cascaded bool // the threads that worked for it are dealt with; what it held comes next
	emptied  bool // the contents of its files are erased
	turns    int  // that it has had to erase the rest
}

func (o *openEnd) erases() bool { return o.cascaded && o.Purge }

// endingAtOnce is how many ends are worked at at once, and endAgain when one that
// failed is tried again.
const (
	endingAtOnce = 4
	endAgain     = 30 * time.Second
)

func newEnders() *enders {
	return &enders{wake: make(chan struct{}, 1), open: map[string]*openEnd{}, kin: newKin()}
}

func (n *enders) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// add takes an end, unless it is there.
func (n *enders) add(e ending) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open[e.key()] == nil {
		n.open[e.key()] = &openEnd{ending: e, due: time.Now()}
		n.poke()
	}
}

// begin is called when a session begins.
func (n *enders) begin(k *kin) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kin = k
}

// clear forgets all: another process may be the runner from now on.
func (n *enders) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.open)
	n.erasing = false
}

// next takes the end that has been due for longest, or says when one will be.
func (n *enders) next(now time.Time) (end *openEnd, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.open {
		if o.working || o.erases() && n.erasing {
			continue
		}
		if end == nil || o.due.Before(end.due) {
			end = o
		}
	}
	if end == nil {
		return nil, time.Hour
	}
	if end.due.After(now) {
		return nil, end.due.Sub(now)
	}
	end.working = true
	n.erasing = n.erasing || end.erases()
	return end, 0
}

// did says how work at an end went.
type did struct {
	cascaded bool
	finished bool
	again    time.Duration // when it is due again, if it is not finished
}

// done puts an end away, or back until it is due again, and gives how many are open.
func (n *enders) done(o *openEnd, d did) (open int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if o.erases() {
		n.erasing = false
	}
	o.working, o.cascaded, o.due = false, o.cascaded || d.cascaded, time.Now().Add(d.again)
	if d.finished {
		delete(n.open, o.key())
	}
	n.poke()
	return len(n.open)
}

// finishEnds works until ctx ends.
func (r *Runner) finishEnds(ctx context.Context) {
	defer r.metrics.Ends(0)
	defer r.enders.clear()
	places := make(chan struct{}, endingAtOnce)
	var working sync.WaitGroup
	defer working.Wait()
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		o, wait := r.enders.next(time.Now())
		if o == nil {
			<-places
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-r.enders.wake:
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
			d, err := r.finishEnd(ctx, o)
			if err != nil && ctx.Err() == nil {
				r.logger.Error().Err(err).Str("tenant", o.Tenant).Str("thread", o.Thread).
					Msg("the end of a thread could not be finished; it is tried again")
				d.again = endAgain
			}
			if ctx.Err() == nil {
				r.metrics.Ends(r.enders.done(o, d))
			}
		})
	}
}

// finishEnd does the next part of an end.
func (r *Runner) finishEnd(ctx context.Context, o *openEnd) (did, error) {
	switch {
	case !o.cascaded:
		if err := r.cascade(ctx, o.ending); err != nil {
			return did{}, err
		}
		if o.Purge {
			return did{cascaded: true}, nil
		}
	case o.Purge:
		if again, err := r.erase(ctx, o); err != nil || again > 0 {
			return did{again: again}, err
		}
	}
	if err := r.forgetEnd(ctx, o.ending); err != nil {
		return did{cascaded: true}, err
	}
	return did{finished: true}, nil
}

// forgetEnd takes the note away: the end is finished.
func (r *Runner) forgetEnd(ctx context.Context, e ending) error {
	bucket := r.models.Of(documents.Threads).Bucket
	stream, err := r.log.JetStream().Stream(ctx, "KV_"+r.log.Config().Names.Bucket(bucket))
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(r.subjectOf(bucket, e.key())))
	}
	if err != nil {
		return fmt.Errorf("the note of the end of %s/%s: %w", e.Tenant, e.Thread, err)
	}
	return nil
}
