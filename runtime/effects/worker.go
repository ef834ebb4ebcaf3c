package effects

import (
	"context"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/runtime"
)

// Config configures an Worker. The zero value of a field means its default.
type Config struct {
	Concurrency int           // effects run concurrently; default 64
	Timeout     time.Duration // of one attempt; default 5 minutes
	Drain       time.Duration // for running effects when the worker is stopped; default 8 s
	// AckWait is the time after which an effect whose worker died is redelivered;
	// default 8 s, at least 5 s. The worker that started last decides for all.
	AckWait time.Duration
	State   runtime.State //  of threads, for effects; default none
	Shares  *quota.Pool   // of concurrent effects, by tenant; default a fair share for each
	// Rate is how many effects of a tenant are started per second, in the long run,
	// with bursts of ten seconds' worth. Further ones wait. Default DefaultRate;
	// negative: no limit.
	Rate    float64
	Metrics runtime.Metrics  // default none
	Now     func() time.Time // the clock by which effects are due; default time.Now
}

// Default limits: concurrent effects in a process, and effects of a tenant started per
// second.
const (
	DefaultConcurrency = 64
	DefaultRate        = 20
)

func (c Config) withDefaults() Config {
	if c.Metrics == nil {
		c.Metrics = runtime.NoMetrics{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Concurrency <= 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Shares == nil {
		c.Shares = quota.NewPool("effects", quota.Places{Total: c.Concurrency}, nil)
	}
	if c.Rate == 0 {
		c.Rate = DefaultRate
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Minute
	}
	if c.Drain <= 0 {
		c.Drain = 8 * time.Second
	}
	if c.AckWait == 0 {
		c.AckWait = 8 * time.Second
	}
	c.AckWait = max(c.AckWait, 5*time.Second)
	return c
}

// Worker runs effects that are due. Several, in one process or many, share the
// work; each effect is run by one of them.
type Worker struct {
	log        *eventlog.Log
	dispatcher *commands.Dispatcher
	find       func(name string) (runtime.Effect, bool)
	cfg        Config
	logger     zerolog.Logger

	hands chan struct{} // one for each effect in hand
	slots chan struct{} // one for each running effect
	rates *quota.Rates  // of starts, by tenant
	late  *quota.Pauses // effects that were postponed because their tenant has its share

	mu   sync.Mutex // guards the fields below
	runs map[uint64]string
}

// New returns a worker. find returns an effect by its name, such as
// runtime.Effects.Effect; attempts at an unknown one fail.
func New(log *eventlog.Log, dispatcher *commands.Dispatcher, find func(string) (runtime.Effect, bool), cfg Config, logger zerolog.Logger) *Worker {
	cfg = cfg.withDefaults()
	return &Worker{
		log: log, dispatcher: dispatcher, find: find, cfg: cfg, logger: logger,
		hands: make(chan struct{}, max(effectsInHand, cfg.Concurrency)), slots: make(chan struct{}, cfg.Concurrency), runs: map[uint64]string{},
		rates: quota.NewRates(cfg.Rate, 10*cfg.Rate),
		late:  quota.NewPauses(time.Duration(float64(time.Second)/max(cfg.Rate, 1)), 5*time.Minute),
	}
}

// How effects are received. Together with the lead of a timer the times are less than any
// AckWait, so a message that only waits need not be kept alive.
const (
	effectsInHand = 1024
	receiveAgain  = 500 * time.Millisecond // after the server was unavailable
	longestTie    = 2 * time.Second        // until a received effect is due
	patience      = time.Second            // how long a due effect waits for a slot
)

// Run runs effects until ctx ends; then it takes no more, releases those it has not
// started, and returns when the running ones have ended. What still runs after the time
// to drain is cancelled, and goes to another worker.
func (w *Worker) Run(ctx context.Context) {
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var working sync.WaitGroup
	for ctx.Err() == nil {
		err := w.receiveDue(ctx, &working, func(due *queues.Due) {
			defer func() { <-w.hands }()
			w.handleDue(ctx, running, due)
		})
		if err != nil && ctx.Err() == nil {
			w.logger.Warn().Err(err).Msg("receiving due effects was interrupted; it continues")
			retry.Sleep(ctx, receiveAgain)
		}
	}
	done := make(chan struct{})
	go func() {
		working.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(w.cfg.Drain):
		end()
		<-done
	}
}

// receiveDue passes due effects to handle, until ctx ends or the server is unavailable.
func (w *Worker) receiveDue(ctx context.Context, working *sync.WaitGroup, handle func(*queues.Due)) error {
	queue, err := queues.TimersOf(w.log).Receive(ctx, w.cfg.AckWait)
	if err != nil {
		return err
	}
	defer working.Go(queue.Close)
	for {
		due, err := queue.Next(ctx, func() int { return w.room(ctx) })
		if err != nil {
			return err
		}
		w.hands <- struct{}{} // never blocks: only this goroutine sends
		working.Go(func() { handle(due) })
	}
}

// room waits until an effect may be started, and returns how many the worker may take in hand; 0
// if ctx ends. A busy worker leaves further effects to others.
func (w *Worker) room(ctx context.Context) int {
	for _, places := range []chan struct{}{w.slots, w.hands} {
		select {
		case places <- struct{}{}:
			<-places
		case <-ctx.Done():
			return 0
		}
	}
	return cap(w.hands) - len(w.hands)
}

// handleDue waits until an effect is due and a slot is free, and runs it.
func (w *Worker) handleDue(ctx, running context.Context, m *queues.Due) {
	var due dueEffect
	if json.Unmarshal(m.Data, &due) != nil || !events.ValidTenant(m.Tenant) {
		w.logger.Error().Msg("a due message is not an effect and was dropped")
		_ = m.Drop()
		return
	}
	if tie := due.At.Go().Sub(w.cfg.Now()); tie > longestTie {
		_ = m.Release(tie - queues.TimerLead) // the server's clock is ahead of this one
		return
	} else if tie > 0 && !retry.Sleep(ctx, tie) {
		_ = m.Release(0)
		return
	}
	waiting, enough := context.WithTimeout(ctx, patience)
	leave, err := w.cfg.Shares.Wait(waiting, m.Tenant)
	enough()
	if err != nil {
		w.putOff(m)
		return
	}
	defer leave()
	if !w.rates.Take(m.Tenant, time.Now()) {
		w.cfg.Shares.Refused(quota.WhyRate)
		w.putOff(m)
		return
	}
	select {
	case w.slots <- struct{}{}:
	default:
		select {
		case w.slots <- struct{}{}:
		case <-time.After(patience):
			_ = m.Release(0) // other workers may have a slot
			return
		case <-ctx.Done():
			_ = m.Release(0)
			return
		}
	}
	defer func() { <-w.slots }()
	if ctx.Err() != nil {
		_ = m.Release(0)
		return
	}
	if !w.markHandled(m) {
		_ = m.Working() // redelivered because the server was unavailable; it still runs here
		return
	}
	defer w.unmarkHandled(m)
	r := &attempt{Worker: w, m: m, due: due}
	r.runAttempt(running)
}

// putOff sets the timer of a due effect again, because its tenant has its share. The
// effect keeps its time, and is late.
func (w *Worker) putOff(m *queues.Due) {
	ctx, cancel := context.WithTimeout(context.Background(), timerTimeout)
	defer cancel()
	at := time.Now().Add(queues.TimerLead + w.late.Next(m.Tenant))
	err := queues.TimersOf(w.log).Put(ctx, queues.Timer{Tenant: m.Tenant, Thread: m.Thread, ID: m.ID, At: at, Data: m.Data})
	if err != nil { // the message is redelivered
		_ = m.Release(time.Second)
		return
	}
	_ = m.Done() // if that is lost, it is delivered twice, and started once
}

// markHandled notes that a message is being handled, and reports whether it was not before.
func (w *Worker) markHandled(m *queues.Due) bool {
	name := m.Tenant + "." + m.Thread + "." + m.ID
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs[m.Seq] == name {
		return false
	}
	w.runs[m.Seq] = name
	return true
}

func (w *Worker) unmarkHandled(m *queues.Due) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, m.Seq)
}
