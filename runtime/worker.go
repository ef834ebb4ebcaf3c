package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nuid"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/internal/share"
)

// Config says how a worker works. The zero value of a field means its default.
type Config struct {
	Name         string        // of the worker, in the log; default a random one
	Places       int           // executions at once; default 256
	Shares       *share.Pool   // of the places, by tenant; default a fair share for each
	MostToolTime time.Duration // that a call of a tool may take, whatever its definition says; default DefaultMostToolTime
	Drain        time.Duration // for what is under way when the worker stops; default 5 s
	HistoryBytes int           // of conversations kept in memory; default 64 MiB
	Ping         time.Duration // between two signs of life in a run's stream; default 15 s
	Reactors     Reactors
	Agents       Agents
	ParkAfter    time.Duration // that a run whose reactor no process serves keeps its place; then it waits without one, until Wake, which must run. Default: it keeps it
	Arguments    Arguments
	Hooks        Hooks
	Budget       Budget  // of what models use; default none
	State        State   // of threads, for tools and hooks; default none
	Metrics      Metrics // default none
}

// DefaultMostToolTime is how long a call of a tool may take, unless a worker is
// told otherwise.
const DefaultMostToolTime = time.Hour

// Arguments checks the arguments of calls against the schemas of tools.
type Arguments interface {
	// Check says in one line what of the arguments the schema refuses.
	Check(schema, arguments events.JSON) error
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "w-" + nuid.Next()
	}
	if c.Places == 0 {
		c.Places = 256
	}
	if c.Shares == nil {
		c.Shares = share.New("runs", share.Limit{Total: c.Places}, nil)
	}
	if c.MostToolTime == 0 {
		c.MostToolTime = DefaultMostToolTime
	}
	if c.Drain == 0 {
		c.Drain = 5 * time.Second
	}
	if c.HistoryBytes == 0 {
		c.HistoryBytes = 64 << 20
	}
	if c.Ping == 0 {
		c.Ping = 15 * time.Second
	}
	if c.Metrics == nil {
		c.Metrics = NoMetrics{}
	}
	if c.State == nil {
		c.State = func(string, string, *Execution) ThreadState { return nil }
	}
	return c
}

// Worker runs executions. There may be many, in as many processes.
type Worker struct {
	name      string
	cfg       Config
	log       *eventlog.Log
	commands  *commands.Dispatcher
	reactors  Reactors
	agents    Agents
	arguments Arguments
	history   *history
	crew      crew
	places    chan struct{} // one for each execution at work, and one for the next of the queue
	shares    *share.Pool   // of the places
	parked    parked        // runs that were given back because their tenant has its share
	logger    zerolog.Logger

	mu      sync.Mutex             // guards what follows
	turns   map[string]*turn       // by execution
	stops   map[string]stop        // by execution: of runs that have no turn here
	taking  *taking                // nil: the worker does not run
	held    map[string]*queues.Run // by execution: runs in hand, and runs begun by this process until the queue has delivered them
	running sync.WaitGroup
}

// taking is what a worker that runs takes runs with.
type taking struct {
	ctx   context.Context // ends when no more are taken
	work  context.Context // ends when what is under way is to end
	inbox string          // where the messages of runs go that it has begun by itself
	queue *queues.Receiver
}

// New makes a worker on a log and the dispatcher that writes it.
func New(log *eventlog.Log, dispatcher *commands.Dispatcher, cfg Config, logger zerolog.Logger) *Worker {
	cfg = cfg.withDefaults()
	return &Worker{
		name: cfg.Name, cfg: cfg, log: log, commands: dispatcher, reactors: cfg.Reactors, agents: cfg.Agents,
		arguments: cfg.Arguments, history: newHistory(log, cfg.HistoryBytes), crew: crew(make(chan func())),
		places: make(chan struct{}, cfg.Places), shares: cfg.Shares,
		parked: parked{each: 5 * time.Millisecond, longest: 10 * time.Second},
		logger: logger.With().Str("worker", cfg.Name).Logger(), turns: map[string]*turn{}, stops: map[string]stop{}, held: map[string]*queues.Run{},
	}
}

// Queue puts the executions that a commit asks to be run into the queue, but for
// those that a worker of this process has begun with it. It is for the
// dispatcher's Stored; what is lost there is found by Sweep.
func Queue(log *eventlog.Log, logger zerolog.Logger) func(*events.Commit) {
	return func(c *events.Commit) {
		for i := range c.Events {
			e := &c.Events[i]
			if d, ok := e.Data.(events.RunRequested); ok && !begunWith(c, i) {
				if err := queues.RunsOf(log).Put(c.Tenant, c.Thread, e.Version, e.Subject, d.AgentID); err != nil {
					logger.Warn().Err(err).Str("execution", e.Subject).Msg("a run could not be queued; the sweeper will")
				}
			}
		}
	}
}

// Stored is for the dispatcher's Stored, if it is this worker's: it spares the
// worker to read what this process wrote.
func (w *Worker) Stored(c *events.Commit) {
	for i := range c.Events {
		switch c.Events[i].Type {
		case events.ThreadCreatedType, events.RunRequestedType: // a turn will come, or may
			w.history.stored(c)
			return
		case events.LifecycleDeletedType:
			w.history.forget(c.Tenant, c.Thread)
		}
	}
}

// Run takes executions and runs them until ctx ends. What is under way then gets
// Drain to reach its next boundary, is given back, and goes on with another
// worker.
func (w *Worker) Run(ctx context.Context) error {
	stop, err := w.listen()
	if err != nil {
		return err
	}
	defer stop()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(w.cfg.Drain, cancel) })()
	inbox, deaf, err := queues.RunsOf(w.log).Handed(func(m *queues.Run) { w.keeps(m) })
	if err != nil {
		return err
	}
	defer deaf()
	defer w.running.Wait()
	defer w.takes(nil) // before the wait: nothing is begun any more
	for ctx.Err() == nil {
		queue, err := queues.RunsOf(w.log).Receive(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.logger.Warn().Err(err).Msg("the queue of runs could not be opened; it is tried again")
				retry.Sleep(ctx, time.Second)
			}
			continue
		}
		t := &taking{ctx: ctx, work: work, inbox: inbox, queue: queue}
		w.takes(t)
		w.take(t)
		w.takes(nil)
		queue.Close()
	}
	return nil
}

// take runs what the queue gives until it is closed.
func (w *Worker) take(t *taking) {
	for {
		select {
		case w.places <- struct{}{}:
		case <-t.ctx.Done():
			return
		}
		// Half of what is free is for the runs that this process begins by itself.
		job, err := t.queue.Next(t.ctx, (cap(w.places)-len(w.places))/2+1)
		if err != nil {
			<-w.places
			switch {
			case t.ctx.Err() != nil:
				return
			case errors.Is(err, queues.ErrClosed):
				w.logger.Warn().Msg("the queue of runs was closed; it is opened again")
				retry.Sleep(t.ctx, 100*time.Millisecond)
				return
			}
			w.logger.Warn().Err(err).Msg("reading the queue of runs was interrupted")
			retry.Sleep(t.ctx, time.Second)
			continue
		}
		if w.keeps(job) || w.handsOver(job, t.inbox) {
			<-w.places
			continue
		}
		leave, err := w.shares.Try(job.Tenant)
		if err != nil {
			<-w.places
			w.park(job)
			continue
		}
		w.hold(job)
		w.running.Add(1)
		w.crew.do(func() { w.runOne(t, &turn{w: w, job: job, leave: leave}) })
	}
}

// runOne runs one execution, kept alive in the queue meanwhile, and frees its
// place.
func (w *Worker) runOne(taking *taking, t *turn) {
	defer w.running.Done()
	defer func() {
		t.leave()
		<-w.places
	}()
	ctx, job := taking.work, t.job
	t.taking, t.scratch = taking.ctx, &sync.Map{}
	t.logger = w.logger.With().Str("tenant", job.Tenant).Str("execution", job.Execution).Logger()
	rest := every(queues.RunWait/3, func() bool { return w.holds(ctx, t) }, func() { // the worker that holds it keeps it alive
		if err := job.Working(); err != nil {
			t.logger.Warn().Err(err).Msg("a run could not be kept alive in the queue")
		}
	})
	err := t.do(ctx)
	rest()
	defer w.forget(job, func() bool { return job.Delivered() || !job.Settled() }) // not settled: lost to another worker
	if err = w.finish(ctx, t, err); err != nil {
		t.logger.Warn().Err(err).Msg("the queue of runs was not told; the run comes again")
	}
}

// every calls do again and again while holds reports true, until stop is called.
// When stop has returned, do does not run and is not called again; it does not
// wait for holds.
func every(interval time.Duration, holds func() bool, do func()) (stop func()) {
	var mu sync.Mutex // guards what follows, and do
	var timer *time.Timer
	over := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(interval, func() {
		if !holds() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		do()
		timer.Reset(interval)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}

// Places returns how many executions the worker may work at.
func (w *Worker) Places() int { return cap(w.places) }

// finish tells the queue what became of a run.
func (w *Worker) finish(ctx context.Context, t *turn, err error) error {
	if result := t.result(err); result != "" {
		w.cfg.Metrics.Run(result, time.Since(t.run.Begun.Go()))
	}
	refused := events.AsError(err)
	switch {
	case err == nil:
		return t.job.Done()
	case lost(err):
		t.logger.Info().Err(err).Msg("a run was lost to another worker")
		return nil // which has the message now
	case refused.Code == events.NotFound: // the thread, or the run, is gone
		return t.job.Done()
	case ctx.Err() != nil, errors.Is(err, errStopping):
		return t.job.Release(0)
	}
	t.logger.Warn().Err(err).Msg("a run was interrupted; it comes again")
	return t.job.Release(time.Second)
}
