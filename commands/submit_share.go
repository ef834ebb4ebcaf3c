package commands

import "sync"

// turns lets so many of a tenant's submitted commands be done at the same time as
// its share allows. It is safe for concurrent use.
type turns struct {
	most func() int // that may run now; 0: any number

	mu      sync.Mutex // guards what follows
	running int
	ended   *sync.Cond
}

func newTurns(most func() int) *turns {
	t := &turns{most: most}
	t.ended = sync.NewCond(&t.mu)
	return t
}

// take waits for a turn. There is always one that ends, unless there is one to take.
func (t *turns) take() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for most := t.most(); most > 0 && t.running >= most; most = t.most() {
		t.ended.Wait()
	}
	t.running++
}

// give ends a turn.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.ended.Broadcast() // more may run than before
}

// submittedShare returns how many submitted commands of a tenant may be done at the
// same time now; 0 is any number. It notes that the tenant is active.
func (d *Dispatcher) submittedShare(tenant string) int {
	return d.cfg.Fair.Share(tenant, d.cfg.Activity, d.cfg.Floods)
}
