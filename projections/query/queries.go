package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/service"
)

// Config bounds the queries. The zero value of a field means its default.
type Config struct {
	Now      func() time.Time  // the clock of shares; default time.Now
	Wait     time.Duration     // how long a query waits for minSeq or minVersion; default events.FreshWait
	Progress *buckets.Progress // the runner's, if it may run in this process; default one of its own
	Roster   Roster            // knows agents and workers; default: none are known
	Contents Contents          // reads contents of files; default: it is unavailable
	States   States            // reads states that no read model has; default: not_found
	Pairs    Pairs             // reads key-value pairs; default: it is unavailable
	Pushes   Pushes            // reads pushes; default: they are unavailable
	// Cold bounds how many cold threads are folded at once; default DefaultColdPlaces.
	Cold *quota.Pool
	// Past bounds how many queries of a thread's past run at once, since each folds it in memory;
	// default DefaultPast.
	Past *quota.Pool
}

// DefaultPast is how many queries of a thread's past run at once.
const DefaultPast = 4

func (c Config) withDefaults() Config {
	if c.Wait == 0 {
		c.Wait = events.FreshWait
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Progress == nil {
		c.Progress = buckets.NewProgress()
	}
	if c.Roster == nil {
		c.Roster = noRoster{}
	}
	if c.States == nil {
		c.States = noStates{}
	}
	if c.Past == nil {
		c.Past = quota.NewPool("past", quota.Places{Total: DefaultPast}, nil)
	}
	return c
}

// Roster knows which agents and workers there are.
type Roster interface {
	// HasReactor reports whether this process has a reactor of that name.
	HasReactor(name string) bool
	// Knows returns a not_found for an agent that is not defined and that no process serves or
	// ever has served.
	Knows(ctx context.Context, tenant, name string) error
	// Workers returns the workers that serve a tenant's definition now.
	Workers(ctx context.Context, tenant string, of events.DefinitionRef) ([]events.Worker, error)
}

// States reads the current states of threads from the log. The error is a not_found if there is no
// such thread. *commands.Dispatcher implements it.
type States interface {
	// Queued returns the queue of a thread's agent.
	Queued(ctx context.Context, tenant, thread string) (*events.QueueList, error)
	// Values returns the key-value state of a thread, as it is or was.
	Values(ctx context.Context, tenant, thread string, ask events.GetState) (*events.StateValues, error)
}

// noRoster is the default of Config.Roster.
type noRoster struct{}

func (noRoster) HasReactor(string) bool { return false }

func (noRoster) Knows(_ context.Context, _, name string) error { return events.Missing("agent", name) }

func (noRoster) Workers(_ context.Context, _ string, of events.DefinitionRef) ([]events.Worker, error) {
	return nil, events.Missing(string(of.Kind), of.Name)
}

// noStates is the default of Config.States.
type noStates struct{}

func (noStates) Queued(_ context.Context, _, thread string) (*events.QueueList, error) {
	return nil, events.Missing("thread", thread)
}

func (noStates) Values(_ context.Context, _, thread string, _ events.GetState) (*events.StateValues, error) {
	return nil, events.Missing("thread", thread)
}

// Queries answers queries. It is safe for concurrent use.
type Queries struct {
	log        *eventlog.Log
	models     *documents.Models
	pages      *eventlog.Pages
	schema     *schema.Validator
	cfg        Config
	logger     zerolog.Logger
	metrics    Metrics
	directory  *directory
	unreadable unreadable
	cold       *coldReader
	pasts      *pasts
	answers    map[reflect.Type]answer
}

// Metrics receives queries. Its methods must return at once.
type Metrics interface {
	// Query receives a query, how it ended (ok, or an error's code), and how long it
	// took.
	Query(name, result string, seconds float64)
}

type noMetrics struct{}

func (noMetrics) Query(string, string, float64) {}

// New returns the queries on a log. Run must run for them to list threads and to know how far the
// read models are.
func New(log *eventlog.Log, validator *schema.Validator, cfg Config, logger zerolog.Logger, metrics Metrics) *Queries {
	if metrics == nil {
		metrics = noMetrics{}
	}
	q := &Queries{
		log: log, models: documents.NewModels(), pages: eventlog.PagesOn(log.Streams()), schema: validator, cfg: cfg.withDefaults(), logger: logger, metrics: metrics,
		directory: newDirectory(), pasts: newPasts(), answers: answers(),
	}
	q.cold = newColdReader(log, q.models, q.pages, q.cfg.Cold, 0)
	return q
}

// In returns the threads of all tenants with a status, as tenant and id, in no order. It waits
// until the list of threads has been read.
func (q *Queries) In(ctx context.Context, status events.ThreadStatus) ([][2]string, error) {
	if err := q.directory.AwaitLoaded(ctx); err != nil {
		return nil, err
	}
	return q.directory.In(status), nil
}

// Waiting counts the waiting runs of all tenants by what they wait for.
func (q *Queries) Waiting(ctx context.Context) (map[events.RunWaitKind]int, error) {
	if err := q.directory.AwaitLoaded(ctx); err != nil {
		return nil, err
	}
	counts := map[events.RunWaitKind]int{}
	q.directory.EachRun(func(_, _ string, run *events.ThreadRun) {
		for i, w := range run.WaitingFor {
			if !slices.ContainsFunc(run.WaitingFor[:i], func(before events.RunWait) bool { return before.Kind == w.Kind }) {
				counts[w.Kind]++
			}
		}
	})
	return counts, nil
}

// ParkedRun is a run that its worker released because no process serves what it needs.
type ParkedRun struct {
	Tenant, Thread, Execution string
	Workers                   []events.WaitFor // that it waits for
	Until                     events.Time      // how long it waits at most; 0: unknown
}

// Parked returns the runs of all tenants that wait for a reactor or a tool, held by no worker.
func (q *Queries) Parked(ctx context.Context) ([]ParkedRun, error) {
	if err := q.directory.AwaitLoaded(ctx); err != nil {
		return nil, err
	}
	var out []ParkedRun
	q.directory.EachRun(func(tenant, thread string, run *events.ThreadRun) {
		p := ParkedRun{Tenant: tenant, Thread: thread, Execution: run.ExecutionID}
		for _, w := range run.WaitingFor {
			if w.Kind == events.RunWaitsWorker {
				p.Workers = append(p.Workers, events.WaitFor{Kind: w.Worker, Name: w.Name})
			}
		}
		if p.Until, _ = events.ParseTime(run.Until); run.Parked && len(p.Workers) > 0 { // without a time, only a worker resumes the run
			out = append(out, p)
		}
	})
	return out, nil
}

// Names returns the names of the queries that are answered.
func (q *Queries) Names() []string {
	var names []string
	for _, known := range events.Queries() {
		names = append(names, known.Name)
	}
	return names
}

// Handle answers a query of a tenant, with a document or a list, or an
// *events.Error. It is a service.Handler.
func (q *Queries) Handle(ctx context.Context, tenant, name string, body []byte, _ service.Meta) (any, error) {
	start := time.Now()
	out, err := q.decodeAndAnswer(ctx, tenant, name, body)
	if full := (*quota.FullError)(nil); errors.As(err, &full) {
		err = events.Errorf(events.Unavailable, "%s", full)
	}
	result := "ok"
	if err != nil {
		e := events.AsError(err)
		if e.Code == events.Unavailable {
			if ctx.Err() == nil { // otherwise the caller no longer waits
				q.logger.Warn().Err(err).Str("query", name).Msg("a query could not be answered")
			}
			e = unavailable(e)
		}
		result, out, err = string(e.Code), nil, e
	}
	if _, known := events.LookupQuery(name); !known {
		name = "unknown" // clients must not be able to create metric labels
	}
	q.metrics.Query(name, result, time.Since(start).Seconds())
	return out, err
}

// unavailable says what of a query could not be answered. If the store cannot be read, it says from
// which sequence on. Where the server itself has found the damage the error is final already.
func unavailable(e *events.Error) *events.Error {
	if events.IsUnreadable(e) {
		return e
	}
	message := "the query could not be answered now; try again"
	if stream, from, unread := streams.Unread(e.Cause); unread {
		message = fmt.Sprintf("stream %s cannot be read from sequence %d on; if it stays so, a block of it is damaged, which the operator's skein store check names", stream, max(from, 1))
	}
	return &events.Error{Code: events.Unavailable, Message: message, Details: e.Details, Cause: e.Cause}
}

func (q *Queries) decodeAndAnswer(ctx context.Context, tenant, name string, body []byte) (any, error) {
	if err := events.CheckTenant("", tenant); err != nil { // there is no default tenant
		return nil, err
	}
	if _, ok := events.LookupQuery(name); !ok {
		return nil, events.Errorf(events.NotFound, "no such query: %.64s; see docs/queries.md", name)
	}
	data, err := q.decode(name, body)
	if err != nil {
		return nil, err
	}
	row, ok := q.answers[reflect.TypeOf(data)]
	if !ok {
		return nil, events.Errorf(events.NotFound, "no such query: %.64s", name)
	}
	patience := q.cfg.Wait
	for again := false; ; again = true {
		a := &asking{Queries: q, ctx: ctx, tenant: tenant, patience: &patience, leave: func() {}}
		out, unshown, err := a.once(row, data)
		if unshown == 0 || again { // the second answer shows all that was in the log at the first confirmation
			return out, err
		}
		if err := a.awaitSeq(&unshown, false); err != nil {
			return nil, err
		}
	}
}

// once answers a query. It returns the sequence that the read models must show first, as confirmed
// does.
func (a *asking) once(row answer, data any) (out any, unshown int64, err error) {
	defer func() { a.leave() }()
	shown := a.cfg.Progress.Seq()
	out, err = row.ask(a, data)
	unshown, err = a.confirmed(err, shown)
	return out, unshown, err
}

// answers lists the function that answers each query.
func answers() map[reflect.Type]answer {
	return indexed(
		answersWith(getThread),
		answersWith(listThreads),
		answersWith(getThreadDocument),
		answersWith(listThreadHistory),
		answersWith(listShares),
		answersWith(readShared),
		answersWith(getContext),
		answersWith(listContexts),
		answersWith(getItem),
		answersWith(listItems),
		answersWith(getMessage),
		answersWith(listMessages),
		answersWith(listLogs),
		answersWith(getExecution),
		answersWith(listExecutions),
		answersWith(listSteps),
		answersWith(listParts),
		answersWith(getDefinition),
		answersWith(listDefinitions),
		answersWith(getAgent),
		answersWith(listEvents),
		answersWith(listEffects),
		answersWith(getHistory),
		answersWith(listHistory),
		answersWith(listChunks),
		answersWith(createConsumer),
		answersWith(nextOfConsumer),
		answersWith(settleConsumer),
		answersWith(deleteConsumer),
		answersWith(listWebhooks),
		answersWith(listRuns),
		answersWith(listApprovals),
		answersWith(listQueue),
		answersWith(getState),
		answersWith(getKV),
		answersWith(listKV),
		answersWith(listPushes),
		answersWith(statFile),
		answersWith(listFiles),
		answersWith(countFiles),
		answersWith(findFiles),
		answersWith(grepFiles),
		answersWith(getThumbnail),
		answersWith(listRelationships),
		answersWith(listWorkers),
	)
}

// answer is a row of answers: a query, and the function that answers it.
type answer struct {
	of   reflect.Type // of the query's data
	with reflect.Type // of the answer
	ask  func(*asking, any) (any, error)
}

// answersWith returns the row for the query with data of type D.
func answersWith[D, A any](ask func(*asking, D) (*A, error)) answer {
	return answer{of: reflect.TypeFor[D](), with: reflect.TypeFor[A](), ask: func(a *asking, data any) (any, error) { return ask(a, data.(D)) }}
}

func indexed(rows ...answer) map[reflect.Type]answer {
	index := make(map[reflect.Type]answer, len(rows))
	for _, r := range rows {
		index[r.of] = r
	}
	return index
}

// asking is one query while it is answered.
type asking struct {
	*Queries
	ctx    context.Context //nolint:containedctx // it lives as long as the query
	tenant string
	thread string // its id, once it is known
	fresh  bool   // minSeq or minVersion was given
	past   bool   // the source is the thread at a past version or time
	// patience is how much longer the query may wait for the read models.
	patience *time.Duration
	source   source
	leave    func() // ends the use of a past, if one is used
}

// about prepares a query about a thread. ref is its id or key; it is empty if the query names
// none. With at, the source is the thread at that version or time.
func (a *asking) about(ref string, at *events.At, fresh events.Fresh) error {
	if ref == "" {
		switch {
		case at != nil:
			return events.Invalid("/threadId", "a look back needs a threadId")
		case fresh.MinVersion != nil:
			return events.Invalid("/threadId", "minVersion is a thread's, and needs a threadId; minSeq does not")
		}
	}
	if err := a.awaitSeq(fresh.MinSeq, ref != ""); err != nil {
		return err
	}
	a.source, a.fresh = a.inheriting(&live{q: a.Queries}), at == nil && (fresh.MinSeq != nil || fresh.MinVersion != nil)
	if ref == "" {
		return a.awaitStart(math.MaxUint64)
	}
	if err := a.resolve(ref); err != nil {
		return err
	}
	if err := a.awaitThread(at); err != nil {
		return err
	}
	if at == nil {
		if err := a.awaitLast(a.thread, fresh.MinSeq); err != nil {
			return err
		}
	}
	if err := a.awaitVersion(fresh.MinVersion); err != nil {
		return err
	}
	if at == nil {
		return nil
	}
	past, err := a.lookBack(ref, *at)
	a.source, a.past = a.inheriting(past), true
	return err
}

// resolve sets the thread that a reference names.
func (a *asking) resolve(ref string) error {
	id, key := events.ThreadRef(ref)
	a.thread = id
	if key == "" {
		return nil
	}
	last, err := a.log.Last(a.ctx, a.tenant, events.KeyAggregate(key))
	if err != nil {
		return err
	}
	if last != nil {
		if held, ok := last.Events[len(last.Events)-1].Data.(events.KeyClaimed); ok && held.Key == key {
			a.thread = held.ThreadID
			return nil
		}
	}
	return events.Missing("thread", ref)
}

// name returns the thread's name in documents.Place.
func (a *asking) name() string { return documents.ThreadName(a.tenant, a.thread) }

// place returns a place in the thread.
func (a *asking) place(k documents.Kind, id string) documents.Place {
	return documents.Place{Kind: k, Thread: a.name(), ID: id}
}
