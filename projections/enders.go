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
// one are deleted too, and what a purged one held is erased. An end that has to
// wait for something costs an entry here and no goroutine. The notes in the bucket
// of threads are the truth: what stands here is lost with the process, and comes
// back from them. It is safe for concurrent use.
type enders struct {
	wake chan struct{} // of capacity 1: something changed

	mu   sync.Mutex // guards what follows
	open map[string]*openEnd
	kin  *kin // as the session that runs now knows it
}

// openEnd is an end that is not finished.
type openEnd struct {
	ending
	due      time.Time
	pause    time.Duration // before the next look at the timeline
	working  bool
	cascaded bool
}

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
		n.open[e.key()] = &openEnd{ending: e}
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
}

// next takes an end that is due, or says when one will be.
func (n *enders) next(now time.Time) (end *openEnd, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	wait = time.Hour
	for _, o := range n.open {
		switch {
		case o.working:
		case !o.due.After(now):
			o.working = true
			return o, 0
		default:
			wait = min(wait, o.due.Sub(now))
		}
	}
	return nil, wait
}

// done puts an end away, or back until it is due again.
func (n *enders) done(o *openEnd, again time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o.working = false
	if again == 0 {
		delete(n.open, o.key())
	}
	o.due = time.Now().Add(again)
	n.poke()
}

// finishEnds works until ctx ends.
func (r *Runner) finishEnds(ctx context.Context) {
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
			again, err := r.finishEnd(ctx, o)
			if err != nil && ctx.Err() == nil {
				r.logger.Error().Err(err).Str("tenant", o.Tenant).Str("thread", o.Thread).
					Msg("the end of a thread could not be finished; it is tried again")
				again = endAgain
			}
			if ctx.Err() == nil {
				r.enders.done(o, again)
			}
		})
	}
}

// finishEnd does what is left of an end, or says when to try again.
func (r *Runner) finishEnd(ctx context.Context, o *openEnd) (again time.Duration, err error) {
	if !o.cascaded {
		if err := r.cascade(ctx, o.ending); err != nil {
			return 0, err
		}
		o.cascaded = true
	}
	if o.Purge {
		if again, err := r.erase(ctx, o); err != nil || again > 0 {
			return again, err
		}
	}
	return 0, r.forgetEnd(ctx, o.ending)
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
