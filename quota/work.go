package quota

import (
	"context"
	"sync"
)

// A request may do one unit of work at its start. What it does beyond that is work like so many
// further requests.
const (
	unitMessages = 2       // read from a stream: to decode and to show them takes longer than to read them
	unitBytes    = 2 << 10 // of them
	unitSent     = 8 << 10 // bytes of commands and of files
	longWork     = 64      // units from which on a request needs a place for long reads
)

// Work measures what one request of a tenant does, so that one that reads much takes no more from
// other tenants than as many small ones. It is safe for concurrent use.
type Work struct {
	tenant string
	long   *Pool                                                         // nil: long reads need no place
	pace   func(ctx context.Context, tenant string, units float64) error // blocks until so much may be done

	mu    sync.Mutex // guards what follows
	done  float64    // units
	paid  float64    // of them
	ended bool
	leave func() // frees the place; nil: it has none
}

// NewWork returns the work of a request that begins. pace blocks until its tenant may do so many
// units, which is called with those beyond the first one. End it.
func NewWork(tenant string, long *Pool, pace func(ctx context.Context, tenant string, units float64) error) *Work {
	return &Work{tenant: tenant, long: long, pace: pace, paid: 1}
}

// End frees the place of a request that has ended.
func (w *Work) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.leave != nil {
		w.leave()
	}
}

// spend counts work, and blocks until more may be done.
func (w *Work) spend(ctx context.Context, units float64, placed bool) error {
	w.mu.Lock()
	w.done += units
	owed := w.done - w.paid
	if owed <= 0 {
		w.mu.Unlock()
		return nil
	}
	w.paid += owed
	err := w.enter(ctx, placed)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	return w.pace(ctx, w.tenant, owed)
}

// enter takes a place for a request that does much. Hold w.mu: the reads of one request wait for it
// together.
func (w *Work) enter(ctx context.Context, placed bool) (err error) {
	if w.long == nil || w.leave != nil || w.ended || placed || w.done < longWork {
		return nil
	}
	w.leave, err = w.long.Wait(ctx, w.tenant)
	return err
}

// inWork is the work that a context belongs to.
type inWork struct {
	work   *Work
	placed bool
}

type workKey struct{}

// In returns a context whose reads are this work.
func (w *Work) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, workKey{}, inWork{work: w})
}

// Continue returns to as a context whose reads and writes are work of the same tenant as those of
// from, which go on after the request of from was answered. They need no place for long reads.
func Continue(from, to context.Context) context.Context {
	in, _ := from.Value(workKey{}).(inWork)
	if in.work == nil {
		return to
	}
	return NewWork(in.work.tenant, nil, in.work.pace).In(to)
}

// Placed returns a context for reads that have a place of another kind: they take none for long
// reads, since those who have one may wait for that other kind.
func Placed(ctx context.Context) context.Context {
	in, _ := ctx.Value(workKey{}).(inWork)
	in.placed = true
	return context.WithValue(ctx, workKey{}, in)
}

// Unmeasured returns a context whose reads belong to no work.
func Unmeasured(ctx context.Context) context.Context {
	return context.WithValue(ctx, workKey{}, inWork{})
}

// Spend counts messages, and bytes of them, that were read, and blocks until their tenant may do more. It does nothing in a context that belongs to no work. The error is that
// of ctx, or a *FullError.
func Spend(ctx context.Context, messages, bytes int) error {
	return spend(ctx, float64(messages)/unitMessages+float64(bytes)/unitBytes)
}

// SpendRequests is Spend for what is work like so many requests, of so many bytes in all.
func SpendRequests(ctx context.Context, requests, bytes int) error {
	return spend(ctx, float64(requests)+float64(bytes)/unitSent)
}

func spend(ctx context.Context, units float64) error {
	in, _ := ctx.Value(workKey{}).(inWork)
	if in.work == nil {
		return nil
	}
	return in.work.spend(ctx, units, in.placed)
}
