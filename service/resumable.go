package service

import (
	"context"
	"slices"
	"sync"
	"time"
)

// ResumableBounds say how much a Resumable keeps. The zero value of a field sets no bound.
type ResumableBounds struct {
	Values int           // at most
	Weight int64         // of all of them, in the unit of those who put them back; the last one may have more
	For    time.Duration // after it was put back
}

// Resumable keeps the last few values that are costly to make, for the next caller that needs them. It is
// safe for concurrent use.
//
// Each value has one user at a time. A request that runs out of time puts back what it has made of
// its value, and the repeat, which waits for it, goes on from there: what takes longer than a
// request may is done at last.
//
// It promises that no two users have the value of one key, and that it never keeps more than its
// bounds say, but for the value put back last. It does not promise to keep any value.
type Resumable[K comparable, V any] struct {
	bounds ResumableBounds

	mu    sync.Mutex          // guards what follows
	kept  []*value[K, V]      // the one put back last is the last
	taken map[K]chan struct{} // closed when the value is put back
}

type value[K comparable, V any] struct {
	key    K
	value  V
	weight int64
}

// NewResumable returns an empty Resumable.
func NewResumable[K comparable, V any](bounds ResumableBounds) *Resumable[K, V] {
	return &Resumable[K, V]{bounds: bounds, taken: map[K]chan struct{}{}}
}

// Take returns the value of a key, for one user: the zero value if none is kept. It waits while
// another user has it. The error is that of ctx; without one, the caller must call Put or Drop.
func (k *Resumable[K, V]) Take(ctx context.Context, key K) (V, error) {
	for {
		v, wait := k.takeNow(key)
		if wait == nil {
			return v, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
}

// takeNow returns the value, or what is closed when it is put back.
func (k *Resumable[K, V]) takeNow(key K) (v V, wait <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if wait, taken := k.taken[key]; taken {
		return v, wait
	}
	k.taken[key] = make(chan struct{})
	if i := slices.IndexFunc(k.kept, func(e *value[K, V]) bool { return e.key == key }); i >= 0 {
		v = k.kept[i].value
		k.kept = slices.Delete(k.kept, i, i+1)
	}
	return v, nil
}

// Put ends the use of a key, and keeps its value for the next one.
func (k *Resumable[K, V]) Put(key K, v V, weight int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.release(key)
	e := &value[K, V]{key, v, weight}
	k.kept = append(k.kept, e)
	for len(k.kept) > 1 && k.exceeds() {
		k.kept = slices.Delete(k.kept, 0, 1)
	}
	if k.bounds.For > 0 {
		time.AfterFunc(k.bounds.For, func() { k.forget(e) })
	}
}

// Drop ends the use of a key, and keeps nothing.
func (k *Resumable[K, V]) Drop(key K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.release(key)
}

// release lets the next one have a key. The caller holds the lock.
func (k *Resumable[K, V]) release(key K) {
	close(k.taken[key])
	delete(k.taken, key)
}

// exceeds reports whether more is kept than may be. The caller holds the lock.
func (k *Resumable[K, V]) exceeds() bool {
	sum := int64(0)
	for _, e := range k.kept {
		sum += e.weight
	}
	b := k.bounds
	return b.Values > 0 && len(k.kept) > b.Values || b.Weight > 0 && sum > b.Weight
}

// forget drops a value whose time is over.
func (k *Resumable[K, V]) forget(e *value[K, V]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.Index(k.kept, e); i >= 0 {
		k.kept = slices.Delete(k.kept, i, i+1)
	}
}
