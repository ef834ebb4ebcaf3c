package commands

import "sync"

// turns limits how many of a tenant's submitted commands run at the same time to its share. It
// is safe for concurrent use.
type turns struct {
	most func() int // the number that may run now; 0: any number

	mu      sync.Mutex // guards the fields below
	running int
	ended   *sync.Cond
}

func newTurns(most func() int) *turns {
	t := &turns{most: most}
	t.ended = sync.NewCond(&t.mu)
	return t
}

// take waits for a turn.
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

// submittedShare returns how many submitted commands of a tenant may run at the same time now;
// 0 is any number. It records that the tenant is active.
func (d *Dispatcher) submittedShare(tenant string) int {
	return d.cfg.Fair.Share(tenant)
}
