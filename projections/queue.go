package projections

import (
	"github.com/skein-threads/skein/events"
)

// listQueue returns what waits for a thread's agent. It is read from the log and
// from no read model, so that whoever waits for a queued message sees it leave the
// queue.
func (a *asking) listQueue(d events.ListQueue) (*events.QueueList, error) {
	if err := a.about(d.ThreadID, nil, d.Fresh); err != nil {
		return nil, err
	}
	return a.cfg.Queue(a.ctx, a.tenant, a.thread)
}
