package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/internal/share"
)

// EffectConfig bounds a worker. The zero value of a field means its default.
type EffectConfig struct {
	Concurrency int           // effects run at once; default 64
	Timeout     time.Duration // of one attempt; default 5 minutes
	Drain       time.Duration // for what still runs when the worker is stopped; default 8 s
	// AckWait is how long an effect whose worker died waits for another one;
	// default 8 s, at least 5 s. The worker that started last decides for all.
	AckWait time.Duration
	State   State       // of threads, for effects; default none
	Shares  *share.Pool // of what runs at once, by tenant; default a fair share for each
	// Rate is how many effects of a tenant are begun a second, in the long run; ten
	// seconds' worth may be begun at once. More wait. Default DefaultEffectRate;
	// negative: no limit.
	Rate    float64
	Metrics Metrics          // default none
	Now     func() time.Time // the clock by which effects are due; default time.Now
}

// How many effects run at the same time in a process, and how many of a tenant are
// begun a second, unless it is told otherwise.
const (
	DefaultEffects    = 64
	DefaultEffectRate = 20
)

func (c EffectConfig) withDefaults() EffectConfig {
	if c.Metrics == nil {
		c.Metrics = NoMetrics{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Concurrency <= 0 {
		c.Concurrency = DefaultEffects
	}
	if c.Shares == nil {
		c.Shares = share.New("effects", share.Limit{Total: c.Concurrency}, nil)
	}
	if c.Rate == 0 {
		c.Rate = DefaultEffectRate
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

// EffectWorker runs effects that are due. Several, in one process or many, share
// the work; an effect is run by one of them.
type EffectWorker struct {
	log        *eventlog.Log
	dispatcher *commands.Dispatcher
	find       func(name string) (Effect, bool)
	cfg        EffectConfig
	logger     zerolog.Logger

	hands chan struct{} // one for each effect in hand
	slots chan struct{} // one for each that runs
	rates *share.Rates  // of beginnings, by tenant
	late  parked        // effects that were put off because their tenant has its share

	mu   sync.Mutex // guards what follows
	runs map[uint64]string
}

// NewEffectWorker makes a worker. find gives an effect by its name, such as
// Effects.Effect; the attempts at one that it does not know fail.
func NewEffectWorker(log *eventlog.Log, dispatcher *commands.Dispatcher, find func(string) (Effect, bool), cfg EffectConfig, logger zerolog.Logger) *EffectWorker {
	cfg = cfg.withDefaults()
	return &EffectWorker{
		log: log, dispatcher: dispatcher, find: find, cfg: cfg, logger: logger,
		hands: make(chan struct{}, max(effectsInHand, cfg.Concurrency)), slots: make(chan struct{}, cfg.Concurrency), runs: map[uint64]string{},
		rates: share.NewRates(max(cfg.Rate, 0), int(10*cfg.Rate)),
		late:  parked{each: time.Duration(float64(time.Second) / max(cfg.Rate, 1)), longest: 5 * time.Minute},
	}
}

// How effects are taken in hand. Together with the lead of a timer it is less
// than any AckWait, so that what is only held needs not be kept alive.
const (
	effectsInHand = 1024
	fetchWait     = 5 * time.Second
	fetchPulse    = 500 * time.Millisecond // a server that went away is noticed after two
	longestTie    = 2 * time.Second        // until an effect in hand is due
	patience      = time.Second            // with which one that is due waits for a slot
)

// Run runs effects until ctx ends; then it takes no more, gives back what it has
// not begun, and returns when what runs has ended. What still runs after the
// time to drain is told to end, and goes to another worker.
func (w *EffectWorker) Run(ctx context.Context) {
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var working sync.WaitGroup
	for ctx.Err() == nil {
		if err := w.take(ctx, func(m jetstream.Msg) {
			working.Go(func() {
				defer func() { <-w.hands }()
				w.handle(ctx, running, m)
			})
		}); err != nil && ctx.Err() == nil {
			w.logger.Warn().Err(err).Msg("taking effects that are due was interrupted; it goes on")
			retry.Sleep(ctx, fetchPulse)
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

// take hands over what is due, until ctx ends or the server is gone.
func (w *EffectWorker) take(ctx context.Context, handle func(jetstream.Msg)) error {
	consumer, err := queues.TimersOf(w.log).Due(ctx, w.cfg.AckWait)
	if err != nil {
		return err
	}
	for {
		// Whoever runs all that it can leaves the rest to others.
		for _, places := range []chan struct{}{w.slots, w.hands} {
			select {
			case places <- struct{}{}:
				<-places
			case <-ctx.Done():
				return nil
			}
		}
		fetching, cancel := context.WithTimeout(ctx, fetchWait)
		batch, err := consumer.Fetch(cap(w.hands)-len(w.hands), jetstream.FetchContext(fetching), jetstream.FetchHeartbeat(fetchPulse))
		if err != nil {
			cancel()
			return err
		}
		for m := range batch.Messages() {
			w.hands <- struct{}{} // there is one: this is the only place that takes them
			handle(m)
		}
		cancel()
		switch err := batch.Error(); {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

// handle waits until an effect is due and a slot is free, and runs it.
func (w *EffectWorker) handle(ctx, running context.Context, m jetstream.Msg) {
	tenant, thread, id, ok := queues.TimersOf(w.log).NameOfDue(m)
	var due dueEffect
	if !ok || json.Unmarshal(m.Data(), &due) != nil || !events.ValidTenant(tenant) {
		w.logger.Error().Msg("what was due is no effect and was dropped")
		_ = m.Term()
		return
	}
	meta, err := m.Metadata()
	if err != nil {
		w.logger.Error().Err(err).Msg("what was due has no metadata")
		return
	}
	if tie := due.At.Go().Sub(w.cfg.Now()); tie > longestTie {
		_ = m.NakWithDelay(tie - queues.TimerLead) // the server's clock is ahead of this one
		return
	} else if tie > 0 && !retry.Sleep(ctx, tie) {
		_ = m.Nak()
		return
	}
	waiting, enough := context.WithTimeout(ctx, patience)
	leave, err := w.cfg.Shares.Wait(waiting, tenant)
	enough()
	if err != nil {
		w.putOff(m, tenant, thread, id)
		return
	}
	defer leave()
	if !w.rates.Take(tenant, time.Now()) {
		w.cfg.Shares.Refused(share.Rate)
		w.putOff(m, tenant, thread, id)
		return
	}
	select {
	case w.slots <- struct{}{}:
	default:
		select {
		case w.slots <- struct{}{}:
		case <-time.After(patience):
			_ = m.Nak() // others may have one
			return
		case <-ctx.Done():
			_ = m.Nak()
			return
		}
	}
	defer func() { <-w.slots }()
	if ctx.Err() != nil {
		_ = m.Nak()
		return
	}
	if !w.begin(meta.Sequence.Stream, m.Subject()) {
		_ = m.InProgress() // it came again because the server was away; it still runs here
		return
	}
	defer w.end(meta.Sequence.Stream)
	r := &effectRun{EffectWorker: w, m: m, seq: meta.Sequence.Stream, tenant: tenant, thread: thread, id: id, due: due}
	r.run(running)
}

// putOff sets the timer of an effect again that is due, since its tenant has its
// share. It keeps its time, and is late.
func (w *EffectWorker) putOff(m jetstream.Msg, tenant, thread, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), timerTimeout)
	defer cancel()
	at := time.Now().Add(queues.TimerLead + w.late.pause(tenant))
	err := queues.TimersOf(w.log).Put(ctx, queues.Timer{Tenant: tenant, Thread: thread, ID: id, At: at, Data: m.Data()})
	if err != nil { // the message is still there
		_ = m.NakWithDelay(time.Second)
		return
	}
	_ = m.Ack() // if that is lost it comes twice, and begins once
}

// begin notes that a message is being worked on, and reports whether it was not.
func (w *EffectWorker) begin(seq uint64, subject string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs[seq] == subject {
		return false
	}
	w.runs[seq] = subject
	return true
}

func (w *EffectWorker) end(seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, seq)
}
