package webhooks

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// hook is a webhook: which threads are behind, and how its endpoint does.
type hook struct {
	name   name
	run    *running
	logger zerolog.Logger
	stop   context.CancelFunc
	wake   chan struct{} // of capacity 1: holds something when there may be something to do
	stored uint64        // the revision of its stored state; only the saving goroutine uses it; of a push, mu guards it

	mu      sync.Mutex // guards the fields below
	push    *push      // what is sent instead of events; nil: it is a webhook
	def     events.WebhookDefinition
	raw     events.JSON // def as it is stored
	version int64       // of def
	seq     uint64      // up to which the log was dispatched to this webhook
	full    bool        // nothing is dispatched: the webhook reads the log itself, from seq
	skipped uint64      // the last commit that was not dispatched for that reason
	lanes   map[string]*lane
	due     laneHeap // lanes that wait
	flying  int      // lanes that are being delivered
	scans   bool     // the log is being read
	changed bool     // since it was saved

	delivered int64
	failures  int // in a row, of any thread
	since     events.Time
	lastError string
	probe     time.Time // of the next attempt, if many failed
}

// lane is a thread with events that were not delivered. What is sent is read from the log.
type lane struct {
	thread   string
	next     uint64 // the first commit that may have such events
	head     uint64 // the last one that is known to have some
	done     int    // events of the first commit that were delivered
	failures int
	at       time.Time // when it is due
	place    int       // in the heap; -1: it is being delivered
}

func newHook(r *running, n name, seq uint64) *hook {
	return &hook{
		name: n, run: r, logger: r.hub.logger.With().Str("tenant", n.tenant).Str("webhook", n.hook).Logger(),
		wake: make(chan struct{}, 1), seq: seq, lanes: map[string]*lane{}, changed: true, stop: func() {},
	}
}

// errUnreadable is why a webhook is not sent to whose stored definition this version cannot read.
var errUnreadable = errors.New("the definition of the webhook cannot be read by this version; apply one that it reads")

// define sets the definition, unless a later one is set. It reports whether it is valid.
func (h *hook) define(d events.DefinitionChanged) bool {
	value, err := events.DecodeDefinition(d.Kind, d.Definition)
	def, ok := value.(events.WebhookDefinition)
	if err != nil || !ok || def.HTTP == nil {
		h.logger.Error().Err(err).Msg(errUnreadable.Error())
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.Version > h.version {
		h.def, h.raw, h.version, h.changed = def, d.Definition, d.Version, true
		h.retryAtOnce()
	}
	return true
}

// retryAtOnce makes what failed with an earlier definition due now. h.mu is locked.
func (h *hook) retryAtOnce() {
	h.probe = time.Time{}
	for _, l := range h.lanes {
		if l.place >= 0 {
			l.at = time.Time{}
			heap.Fix(&h.due, l.place)
		}
	}
	h.rouse()
}

func (h *hook) definedAt() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version
}

// rouse makes the scheduler look again.
func (h *hook) rouse() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// takes reports whether the webhook is of an event of a commit, as far as the commit says.
func takes(def events.WebhookDefinition, c *events.Commit) bool {
	if !events.IsThread(c.Thread) && c.Thread != events.TenantAggregate {
		return false
	}
	for i := range c.Events {
		if def.Takes(c.Events[i].Type) {
			return true
		}
	}
	return false
}

// dispatch notes that a commit is to be delivered. It does nothing for one that was
// dispatched before, and none while too many threads are behind.
func (h *hook) dispatch(seq uint64, c *events.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full {
		h.skipped = seq
	}
	if h.full || seq <= h.seq {
		return
	}
	h.full = !h.enqueue(seq, c)
	if h.full {
		h.skipped, h.changed = seq, true
		h.logger.Warn().Int("threads", len(h.lanes)).Msg("so many threads are behind that events wait in the log")
	}
}

// enqueue notes a commit, nil for one that cannot be read. It returns false if too many
// threads are behind.
func (h *hook) enqueue(seq uint64, c *events.Commit) bool {
	if c != nil && (source{h.def, h.push}).takes(c) {
		l := h.lanes[c.Thread]
		if l == nil {
			if len(h.lanes) >= h.run.hub.cfg.MaxBehind {
				return false
			}
			l = &lane{thread: c.Thread, next: seq}
			h.lanes[c.Thread] = l
			heap.Push(&h.due, l)
			h.rouse()
		}
		l.head = seq
		h.changed = true
	}
	h.seq = seq
	return true
}

// schedule delivers lanes as they become due, until ctx ends.
func (h *hook) schedule(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	for ctx.Err() == nil {
		l, pause := h.pick(time.Now())
		if l != nil {
			work.Go(func() { h.runLane(ctx, l) })
			continue
		}
		if h.scansNow() {
			work.Go(func() { h.scan(ctx) })
		}
		var timer <-chan time.Time
		if pause > 0 {
			timer = time.After(pause)
		}
		select {
		case <-h.wake:
		case <-timer:
		case <-ctx.Done():
		}
	}
}

// pick takes the lane that is due first, if one is and may be delivered. Otherwise it
// returns how long to wait; 0: until something changes.
func (h *hook) pick(now time.Time) (*lane, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := h.run.hub.cfg.PerHook
	var earliest time.Time
	if h.failures >= h.run.hub.cfg.ManyFailed {
		most, earliest = 1, h.probe
	}
	if h.flying >= most || len(h.due) == 0 {
		return nil, 0
	}
	if h.due[0].at.After(earliest) {
		earliest = h.due[0].at
	}
	if pause := earliest.Sub(now); pause > 0 {
		return nil, pause
	}
	l, _ := heap.Pop(&h.due).(*lane)
	h.flying++
	return l, 0
}

// runLane delivers a lane, when its tenant has a place.
func (h *hook) runLane(ctx context.Context, l *lane) {
	leave, err := h.run.hub.cfg.Places.Wait(ctx, h.name.tenant)
	if err == nil {
		err = h.deliver(ctx, l)
		leave()
	}
	var full *quota.FullError
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.rouse()
	h.flying--
	h.changed = true
	now := time.Now()
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errLagging), errors.As(err, &full):
		l.at = now.Add(lagPause)
	case err != nil:
		l.failures++
		after := max(h.run.hub.cfg.Backoff.Delay(l.failures), askedPause(err))
		l.at = now.Add(after)
		h.failed(err, now)
		if h.push != nil && l.failures >= h.run.hub.cfg.PushAttempts {
			h.logger.Warn().Msg("the updates of a run are sent no more: its endpoint has not accepted any for too long")
			h.run.work.Go(h.endPush)
		}
	case l.head < l.next:
		delete(h.lanes, l.thread)
		return
	default: // there is more
		l.at = now
	}
	heap.Push(&h.due, l)
}

// failed notes an attempt that failed.
func (h *hook) failed(err error, now time.Time) {
	if h.failures++; h.failures == 1 {
		h.since = events.TimeOf(now)
	}
	h.probe = now.Add(h.run.hub.cfg.Probe.Delay(max(1, h.failures-h.run.hub.cfg.ManyFailed+1)))
	text := err.Error()
	if text != h.lastError {
		h.logger.Warn().Str("error", text).Int("failures", h.failures).Msg("a webhook's endpoint did not accept an event; it is sent again")
	}
	h.lastError = text
}

// succeeded notes that an event was accepted.
func (h *hook) succeeded(l *lane, next uint64, done int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.next, l.done, l.failures = next, done, 0
	h.failures, h.since, h.lastError, h.changed = 0, 0, "", true
	h.delivered++
}

// passed notes that a commit of a lane has nothing more to deliver.
func (h *hook) passed(l *lane, next uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.next, l.done, h.changed = next, 0, true
}

// laneHeap orders lanes by when they are due.
type laneHeap []*lane

func (q laneHeap) Len() int           { return len(q) }
func (q laneHeap) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q laneHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements heap.Interface.
func (q *laneHeap) Push(x any) {
	l, _ := x.(*lane)
	l.place = len(*q)
	*q = append(*q, l)
}

// Pop implements heap.Interface.
func (q *laneHeap) Pop() any {
	last := len(*q) - 1
	l := (*q)[last]
	(*q)[last] = nil
	*q, l.place = (*q)[:last], -1
	return l
}
