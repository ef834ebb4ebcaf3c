package commands

import "sync"

// shareLimiter limits how many of a tenant's submitted commands run at the same time. It is safe
// for concurrent use.
type shareLimiter struct {
	most func() int // the number that may run now; 0: any number

	mu      sync.Mutex // guards the fields below
	running int
	ended   *sync.Cond
}

func newShareLimiter(most func() int) *shareLimiter {
	t := &shareLimiter{most: most}
	t.ended = sync.NewCond(&t.mu)
	return t
}

// acquire waits until another command may run.
func (t *shareLimiter) acquire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for most := t.most(); most > 0 && t.running >= most; most = t.most() {
		t.ended.Wait()
	}
	t.running++
}

// release ends what acquire began.
func (t *shareLimiter) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.ended.Broadcast() // the limit may have grown: wake all
}

// submittedShare returns how many submitted commands of a tenant may run at the same time; 0 means
// any number. It records that the tenant is active.
func (d *Dispatcher) submittedShare(tenant string) int {
	return d.cfg.Fair.Share(tenant)
}
