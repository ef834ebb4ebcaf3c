package audit

import (
	"sync"

	"github.com/skein-threads/skein/internal/lru"
)

// recalled keeps what was read of threads, of the last ones that were asked for. It is safe for
// concurrent use.
type recalled[V any] struct {
	most int64
	size func(V) int64

	mu    sync.Mutex // guards known; held while a thread is read
	known *lru.Cache[aggregate, V]
}

// recall returns a recalled that keeps values of that size in all. One that is larger alone is kept
// until the next one is.
func recall[V any](most int64, size func(V) int64) *recalled[V] {
	return &recalled[V]{most: most, size: size, known: lru.New[aggregate, V](most)}
}

// of returns the cached value of a thread, or calls read and caches its result.
func (r *recalled[V]) of(a aggregate, read func() (V, error)) (V, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.known.Get(a)
	if ok {
		return found, nil
	}
	found, err := read()
	if err == nil {
		r.known.Put(a, found, min(r.size(found), r.most))
	}
	return found, err
}
