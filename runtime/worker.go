package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/quota"
)

// Config configures a worker. The zero value of a field means its default.
type Config struct {
	Name         string        // of the worker, in the log; default a random one
	Places       int           // concurrent executions; default 256
	Shares       *quota.Pool   // of the places, by tenant; default a fair share for each
	MostToolTime time.Duration // limit of a call of a tool, whatever its definition says; default DefaultMostToolTime
	Drain        time.Duration // time for current operations when the worker stops; default 5 s
	HistoryBytes int           // of conversations kept in memory; default 64 MiB
	Ping         time.Duration // interval of pings in a run's stream; default 15 s
	Reactors     Reactors
	Agents       Agents
	ParkAfter    time.Duration // how long a run keeps its place while no process serves its reactor; then it is parked until Wake resumes it, so some process must call Wake. Default: it keeps its place
	Arguments    Arguments
	Hooks        Hooks
	Budget       Budget  // of the usage of models; default none
	State        State   // of threads, for tools and hooks; default none
	Metrics      Metrics // default none
}

// DefaultMostToolTime is the default limit of a call of a tool.
const DefaultMostToolTime = time.Hour

// Arguments validates the arguments of calls against the schemas of tools.
type Arguments interface {
	// Check returns an error that says, in one line, why the schema refuses the arguments.
	Check(schema, arguments events.JSON) error
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "w-" + rand.Text()
	}
	if c.Places == 0 {
		c.Places = 256
	}
	if c.Shares == nil {
		c.Shares = quota.NewPool("runs", quota.Places{Total: c.Places}, nil)
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

// Worker runs executions. There may be many, in any number of processes.
type Worker struct {
	name      string
	cfg       Config
	log       *eventlog.Log
	commands  *commands.Dispatcher
	reactors  Reactors
	agents    Agents
	arguments Arguments
	history   *viewCache
	places    chan struct{} // one for each active execution, and one for the next of the queue
	shares    *quota.Pool   // of the places
	parked    *quota.Pauses // runs that were released because their tenant's share is used up
	logger    zerolog.Logger

	mu      sync.Mutex // guards the fields below
	turns   map[runRef]*turn
	stops   map[runRef]stop           // of runs that have no turn here
	intake  *intake                   // nil: the worker does not run
	held    map[queuedRef]*queues.Run // active runs, and runs begun by this process until the queue has delivered them
	running sync.WaitGroup
}

// runRef names a run. The id of its execution may be its client's choice: it is unique in its thread only.
type runRef struct{ tenant, thread, execution string }

// queuedRef names a run as the queue does, and a worker that hands a message of it over.
type queuedRef struct{ tenant, execution string }

// intake holds what a running worker needs to accept runs.
type intake struct {
	ctx   context.Context // ends when no more runs are accepted
	work  context.Context // ends when current work must end
	inbox string          // where messages of runs that it has begun are forwarded to
	queue *queues.Receiver
}

// New returns a worker on a log and the dispatcher that writes it.
func New(log *eventlog.Log, dispatcher *commands.Dispatcher, cfg Config, logger zerolog.Logger) *Worker {
	cfg = cfg.withDefaults()
	return &Worker{
		name: cfg.Name, cfg: cfg, log: log, commands: dispatcher, reactors: cfg.Reactors, agents: cfg.Agents,
		arguments: cfg.Arguments, history: newViewCache(log, cfg.HistoryBytes),
		places: make(chan struct{}, cfg.Places), shares: cfg.Shares,
		parked: quota.NewPauses(5*time.Millisecond, 10*time.Second),
		logger: logger.With().Str("worker", cfg.Name).Logger(), turns: map[runRef]*turn{}, stops: map[runRef]stop{}, held: map[queuedRef]*queues.Run{},
	}
}

// Queue returns a function that queues the executions that a commit requests, except those that a
// worker of this process has begun with it. Sweep queues executions that could not be queued.
func Queue(log *eventlog.Log, logger zerolog.Logger) func(*events.Commit) {
	return func(c *events.Commit) {
		for i := range c.Events {
			e := &c.Events[i]
			if d, ok := e.Data.(events.RunRequested); ok && !begunWith(c, i) {
				if err := queues.RunsOf(log).Put(c.Tenant, c.Thread, e.Version, e.Subject, d.AgentID); err != nil {
					logger.Warn().Err(err).Str("execution", e.Subject).Msg("cannot queue a run; the sweeper will")
				}
			}
		}
	}
}

// Stored receives the commits that the dispatcher of this process has stored, so that the worker
// does not have to read them.
func (w *Worker) Stored(c *events.Commit) {
	for i := range c.Events {
		switch c.Events[i].Type {
		case events.ThreadCreatedType, events.RunRequestedType: // a turn follows, or may follow
			w.history.Note(c)
			return
		case events.LifecycleDeletedType:
			w.history.Forget(c.Tenant, c.Thread)
		}
	}
}

// Run takes executions and runs them until ctx ends. Active executions then have Config.Drain to
// reach their next boundary. They are released, and continue in another worker.
func (w *Worker) Run(ctx context.Context) error {
	stop, err := w.subscribeStops()
	if err != nil {
		return err
	}
	defer stop()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(w.cfg.Drain, cancel) })()
	inbox, unsubscribe, err := queues.RunsOf(w.log).Handed(w.consumeHeld)
	if err != nil {
		return err
	}
	defer unsubscribe()
	defer w.running.Wait()
	unfollow, err := w.followStops(ctx)
	if err != nil {
		return err
	}
	defer unfollow()
	defer w.setIntake(nil) // deferred last, so that no more runs begin during the wait
	for ctx.Err() == nil {
		queue, err := queues.RunsOf(w.log).Receive(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.logger.Warn().Err(err).Msg("cannot open the queue of runs; it is retried")
				retry.Sleep(ctx, time.Second)
			}
			continue
		}
		t := &intake{ctx: ctx, work: work, inbox: inbox, queue: queue}
		w.setIntake(t)
		w.takeRuns(t)
		w.setIntake(nil)
		queue.Close()
	}
	return nil
}

// takeRuns runs the executions that the queue delivers, until it is closed.
func (w *Worker) takeRuns(t *intake) {
	for {
		select {
		case w.places <- struct{}{}:
		case <-t.ctx.Done():
			return
		}
		// Half of the free places are reserved for runs that this process begins by itself.
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
		if w.consumeHeld(job) || w.forward(job, t.inbox) {
			<-w.places
			continue
		}
		leave, err := w.shares.Try(job.Tenant)
		if err != nil {
			<-w.places
			w.park(job)
			continue
		}
		w.holdMessages(job)
		w.running.Add(1)
		go w.runOne(t, &turn{w: w, job: job, leave: leave})
	}
}

// runOne runs one execution. It keeps the queue message alive meanwhile, and frees the place
// afterwards.
func (w *Worker) runOne(taking *intake, t *turn) {
	defer w.running.Done()
	defer func() {
		t.leave()
		<-w.places
	}()
	ctx, job := taking.work, t.job
	t.taking, t.scratch = taking.ctx, &sync.Map{}
	t.logger = w.logger.With().Str("tenant", job.Tenant).Str("execution", job.Execution).Logger()
	rest := every(queues.RunWait/3, func() bool { return w.stillHolds(ctx, t) }, func() { // once the run is lost, its new worker keeps the message alive
		if err := job.Working(); err != nil {
			t.logger.Warn().Err(err).Msg("cannot keep a run alive in the queue")
		}
	})
	err := t.execute(ctx)
	rest()
	defer w.stopHolding(job, func() bool { return job.Delivered() || !job.Settled() }) // not settled: lost to another worker
	if err = w.settle(ctx, t, err); err != nil {
		t.logger.Warn().Err(err).Msg("cannot settle the message of a run; it is redelivered")
	}
	if t.titled {
		if err := w.writeTitle(ctx, t); err != nil {
			t.logger.Info().Err(err).Str("thread", job.Thread).Msg("no agent wrote the title of a thread; it keeps the beginning of its first message")
		}
	}
}

// every calls do at intervals while holds reports true, until stop is called. When stop
// has returned, do is not running and is not called again; stop does not wait for
// holds.
func every(interval time.Duration, holds func() bool, do func()) (stop func()) {
	var mu sync.Mutex // guards the variables below, and do
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

// Places returns how many executions the worker may run concurrently.
func (w *Worker) Places() int { return cap(w.places) }

// settle settles the queue message of a run.
func (w *Worker) settle(ctx context.Context, t *turn, err error) error {
	if result := t.result(err); result != "" {
		w.cfg.Metrics.Run(result, time.Since(t.run.Begun.Go()))
	}
	refused := events.AsError(err)
	switch {
	case err == nil:
		return t.job.Done()
	case isLost(err):
		t.logger.Info().Err(err).Msg("a run was lost to another worker")
		return nil // the other worker has the message now
	case refused.Code == events.NotFound: // the thread, or the run, is deleted
		return t.job.Done()
	case ctx.Err() != nil, errors.Is(err, errStopping):
		return t.job.Release(0)
	}
	t.logger.Warn().Err(err).Msg("a run was interrupted; it is redelivered")
	return t.job.Release(time.Second)
}
