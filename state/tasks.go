package state

import (
	"context"
	"sync"
)

// tasks counts the requests and the background work in progress.
type tasks struct {
	mu       sync.Mutex // guards the rest
	n        int
	draining chan struct{} // closed when n is 0; nil until Shutdown
}

// beginRequest reports whether a request may begin, and counts it.
func (t *tasks) beginRequest() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.draining != nil {
		return false
	}
	t.n++
	return true
}

// begin counts background work of a request that is counted itself.
func (t *tasks) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.n == 0 && t.draining != nil {
		close(t.draining)
	}
}

// drain blocks until nothing is in progress or ctx ends, and returns how much is left.
func (t *tasks) drain(ctx context.Context) int {
	t.mu.Lock()
	if t.draining == nil {
		t.draining = make(chan struct{})
		if t.n == 0 {
			close(t.draining)
		}
	}
	idle := t.draining
	t.mu.Unlock()
	select {
	case <-idle:
		return 0
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}
