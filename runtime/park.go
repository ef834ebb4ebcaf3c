package runtime

import (
	"sync"
	"time"

	"github.com/skein-threads/skein/eventlog/queues"
)

// parked determines for how long work is released whose tenant has its share: the
// longer, the more of it there is, so that redelivering it takes little time.
type parked struct {
	each    time.Duration // for each recently released one
	longest time.Duration

	mu    sync.Mutex // guards the fields below
	count map[string]int
}

// shortestPark is the pause of the first one.
const shortestPark = 500 * time.Millisecond

// pause counts one more, and returns how long to release it.
func (p *parked) pause(tenant string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == nil {
		p.count = map[string]int{}
	}
	p.count[tenant]++
	pause := min(shortestPark+time.Duration(p.count[tenant])*p.each, p.longest)
	time.AfterFunc(pause, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.count[tenant]--; p.count[tenant] == 0 {
			delete(p.count, tenant)
		}
	})
	return pause
}

// park releases a run until its tenant may have a place. It stays in the queue, and
// other workers may have a place for it.
func (w *Worker) park(job *queues.Run) {
	if err := job.Release(w.parked.pause(job.Tenant)); err != nil {
		w.logger.Warn().Err(err).Str("execution", job.Execution).Msg("cannot settle the message of a run; it is redelivered")
	}
}
