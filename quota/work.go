package quota

import (
	"context"
	"sync"
	"time"
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
	long   *Pool // nil: long reads need no place
	charge func(tenant string, units float64, now time.Time) time.Duration

	entering chan struct{} // has room for the one read of the request that waits for its place

	mu    sync.Mutex // guards what follows
	done  float64    // units
	paid  float64    // of them
	waits bool       // for a place
	ended bool
	leave func() // frees the place; nil: it has none
}

// NewWork returns the work of a request that begins. charge counts units of its tenant, those beyond
// the first one, and returns how long the tenant must wait for all that was counted; see [Queue.Spend].
// End it.
func NewWork(tenant string, long *Pool, charge func(tenant string, units float64, now time.Time) time.Duration) *Work {
	return &Work{tenant: tenant, long: long, charge: charge, paid: 1, entering: make(chan struct{}, 1)}
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

// count counts work, and reports whether it is more than the first unit.
func (w *Work) count(units float64) bool {
	w.mu.Lock()
	w.done += units
	owed := max(0, w.done-w.paid)
	w.paid += owed
	w.mu.Unlock()
	if owed > 0 {
		w.charge(w.tenant, owed, time.Now())
	}
	return owed > 0
}

// settle blocks until the tenant may do more.
func (w *Work) settle(ctx context.Context) error {
	return pause(ctx, w.charge(w.tenant, 0, time.Now()))
}

// enterNow reports whether a request may do so much more: it needs no place for that, has one, or
// takes one that is free.
func (w *Work) enterNow(units float64, placed bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.long == nil || w.leave != nil || w.ended || placed || w.done+units < longWork {
		return true
	}
	if w.waits {
		return false
	}
	w.leave = w.long.takeFree(w.tenant)
	return w.leave != nil
}

// enter waits for a place, unless the request has one.
func (w *Work) enter(ctx context.Context) error {
	select {
	case w.entering <- struct{}{}:
		defer func() { <-w.entering }()
	case <-ctx.Done():
		return ctx.Err()
	}
	w.mu.Lock()
	w.waits = w.leave == nil && !w.ended
	waits := w.waits
	w.mu.Unlock()
	if !waits {
		return nil
	}
	leave, err := w.long.Wait(ctx, w.tenant)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waits = false; err == nil && w.ended {
		leave()
	} else if err == nil {
		w.leave = leave
	}
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

// Continue returns the context to with the tenant's work that from has. Reads and writes with it
// count as that tenant's after the request of from was answered. They need no place for long reads.
func Continue(from, to context.Context) context.Context {
	in, _ := from.Value(workKey{}).(inWork)
	if in.work == nil {
		return to
	}
	return NewWork(in.work.tenant, nil, in.work.charge).In(to)
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

// Read blocks until the tenant may do more, calls read, and counts the messages that it has read and
// their bytes, for which the next one waits. Where they need a place and none is free, it calls drop,
// which forgets what was read, and reads again when it has one: those who wait hold nothing. In a
// context that belongs to no work it only calls read. The error is that of read, that of ctx, or a
// *FullError.
func Read(ctx context.Context, read func() (messages, bytes int, err error), drop func()) error {
	in, _ := ctx.Value(workKey{}).(inWork)
	for {
		if in.work != nil {
			if err := in.work.settle(ctx); err != nil {
				return err
			}
		}
		messages, bytes, err := read()
		if err != nil || in.work == nil {
			return err
		}
		units := float64(messages)/unitMessages + float64(bytes)/unitBytes
		if in.work.enterNow(units, in.placed) {
			in.work.count(units)
			return nil
		}
		drop()
		if err := in.work.enter(ctx); err != nil {
			return err
		}
	}
}

// SpendRequests counts what is work like so many requests, of so many bytes in all, and blocks until
// the tenant may do it. The error is that of ctx, or a *FullError.
func SpendRequests(ctx context.Context, requests, bytes int) error {
	in, _ := ctx.Value(workKey{}).(inWork)
	if in.work == nil {
		return nil
	}
	if !in.work.count(float64(requests) + float64(bytes)/unitSent) {
		return nil
	}
	if !in.work.enterNow(0, in.placed) {
		if err := in.work.enter(ctx); err != nil {
			return err
		}
	}
	return in.work.settle(ctx)
}
