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

	entering chan struct{} // has room for the one read of the request that waits for its place

	mu    sync.Mutex // guards what follows
	done  float64    // units
	paid  float64    // of them
	waits bool       // for a place
	ended bool
	leave func() // frees the place; nil: it has none
}

// NewWork returns the work of a request that begins. pace blocks until its tenant may do so many
// units, which is called with those beyond the first one. End it.
func NewWork(tenant string, long *Pool, pace func(ctx context.Context, tenant string, units float64) error) *Work {
	return &Work{tenant: tenant, long: long, pace: pace, paid: 1, entering: make(chan struct{}, 1)}
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
	owed := max(0, w.done-w.paid)
	w.paid += owed
	w.mu.Unlock()
	if owed == 0 {
		return nil
	}
	if !w.enterNow(0, placed) {
		if err := w.enter(ctx); err != nil {
			return err
		}
	}
	return w.pace(ctx, w.tenant, owed)
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

// Read calls read, counts the messages that it has read and their bytes, and blocks until their
// tenant may do more. Where that needs a place and none is free, it calls drop, which forgets what
// was read, so that those who wait hold nothing, and read again when it has one. In a context that
// belongs to no work it only calls read. The error is that of read, that of ctx, or a *FullError.
func Read(ctx context.Context, read func() (messages, bytes int, err error), drop func()) error {
	in, _ := ctx.Value(workKey{}).(inWork)
	for {
		messages, bytes, err := read()
		if err != nil || in.work == nil {
			return err
		}
		units := float64(messages)/unitMessages + float64(bytes)/unitBytes
		if in.work.enterNow(units, in.placed) {
			return in.work.spend(ctx, units, in.placed)
		}
		drop()
		if err := in.work.enter(ctx); err != nil {
			return err
		}
	}
}

// SpendRequests counts what is work like so many requests, of so many bytes in all, and blocks as
// Read does.
func SpendRequests(ctx context.Context, requests, bytes int) error {
	in, _ := ctx.Value(workKey{}).(inWork)
	if in.work == nil {
		return nil
	}
	return in.work.spend(ctx, float64(requests)+float64(bytes)/unitSent, in.placed)
}
