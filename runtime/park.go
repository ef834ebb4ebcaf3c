package runtime

import (
	"sync"
	"time"

	"github.com/skein-threads/skein/eventlog/queues"
)

// parked says for how long work is given back whose tenant has its share: the
// longer, the more of it there is, so that it takes little time to hand round.
type parked struct {
	each    time.Duration // for each that was given back lately
	longest time.Duration

	mu    sync.Mutex // guards what follows
	count map[string]int
}

// shortestPark is how long the first is given back.
const shortestPark = 500 * time.Millisecond

// pause counts one more, and returns for how long it is to be given back.
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

// park gives a run back until its tenant may have a place. It stays in the queue,
// and other workers may have one for it.
func (w *Worker) park(job *queues.Run) {
	if err := job.Release(w.parked.pause(job.Tenant)); err != nil {
		w.logger.Warn().Err(err).Str("execution", job.Execution).Msg("the queue of runs was not told; the run comes again")
	}
}
