package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/schema"
)

const tenant = "acme"

// testPatience is how long a test waits for what must happen, on a machine with much else
// to do.
const testPatience = 5 * time.Minute

// patient returns how logs are opened for tests, in which a server that stands still is
// none that fails.
func patient() eventlog.Config { return eventlog.Config{Patience: testPatience} }

// world is a server with a dispatcher and workers.
type world struct {
	t        testing.TB
	server   *embedded.Server
	nc       *nats.Conn
	log      *eventlog.Log
	d        *commands.Dispatcher
	reactors reactorMap
	agents   agentMap
	seen     chan *events.Commit
	defined  commands.Definitions // nil: none

	mu    sync.Mutex
	known []*Worker
}

type reactorMap map[string]Reactor

func (m reactorMap) Reactor(name string) (Reactor, error) {
	if r, ok := m[name]; ok {
		return r, nil
	}
	return nil, events.Missing("reactor", name)
}

type agentMap struct {
	agents map[string]*Agent
	tools  map[string]Tool
}

func (m agentMap) Agent(_ context.Context, _, name string) (*Agent, error) {
	if a, ok := m.agents[name]; ok {
		return a, nil
	}
	return nil, events.Missing("agent", name)
}

func (m agentMap) Tool(_ context.Context, _, name string) (Tool, error) {
	if t, ok := m.tools[name]; ok {
		return t, nil
	}
	return nil, events.Missing("tool", name)
}

type anyArguments struct{}

func (anyArguments) Check(schema, arguments events.JSON) error {
	if strings.Contains(string(schema), "refuse") {
		return errors.New("/n: it is refused")
	}
	return nil
}

func newWorld(t testing.TB) *world { return newWorldOn(t) }

func newWorldOn(t testing.TB, opts ...natstest.Option) *world {
	t.Helper()
	w := &world{
		t: t, server: natstest.Start(t, opts...), reactors: reactorMap{}, agents: agentMap{map[string]*Agent{}, map[string]Tool{}},
		seen: make(chan *events.Commit, 100_000),
	}
	w.nc = natstest.Connect(t, w.server)
	w.log, w.d = w.process()
	if err := w.log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// process returns the log and the dispatcher of a process.
func (w *world) process() (*eventlog.Log, *commands.Dispatcher) {
	w.t.Helper()
	log, d, _ := w.processOf()
	return log, d
}

// watched is the intake of a process whose commits all workers of the world receive.
type watched struct {
	*Intake
	w *world
}

func (o watched) Stored(c *events.Commit) {
	for _, worker := range o.w.workers() {
		worker.Stored(c)
	}
	o.queue(c)
	o.w.seen <- c
}

// processOf returns those of the process of a worker, which joins its intake later.
func (w *world) processOf() (*eventlog.Log, *commands.Dispatcher, *Intake) {
	w.t.Helper()
	nc := natstest.Connect(w.t, w.server)
	log, err := eventlog.Open(nc, patient(), zerolog.Nop(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(log.Close)
	validator, err := schema.New()
	if err != nil {
		w.t.Fatal(err)
	}
	own := NewIntake(log, zerolog.Nop())
	return log, commands.NewDispatcher(log, validator, commands.Config{Timeout: testPatience, Definitions: w.defined, Intake: watched{own, w}}, zerolog.Nop(), nil), own
}

func (w *world) workers() []*Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.known)
}

// work starts a worker in a process of its own.
func (w *world) work(cfg Config) *Worker {
	w.t.Helper()
	worker, _ := w.worker(cfg)
	return worker
}

// worker starts a worker that can be stopped.
func (w *world) worker(cfg Config) (worker *Worker, stop func()) {
	w.t.Helper()
	log, d, own := w.processOf()
	cfg.Reactors, cfg.Agents, cfg.Arguments = w.reactors, w.agents, anyArguments{}
	worker = New(log, d, cfg, zerolog.Nop())
	own.Serve(worker)
	w.mu.Lock()
	w.known = append(w.known, worker)
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := worker.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	w.t.Cleanup(stop)
	return worker, stop
}

// ask executes a command as a caller does.
func (w *world) ask(name, id string, data any) (*events.Reply, error) {
	w.t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := json.Marshal(events.Request{ThreadID: id, Data: raw})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.d.Do(w.t.Context(), tenant, name, body, commands.Meta{})
}

func (w *world) must(name, id string, data any) *events.Reply {
	w.t.Helper()
	r, err := w.ask(name, id, data)
	if err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	return r
}

// agent adds an agent with one reactor and tools.
func (w *world) agent(name string, r Reactor, tools ...Tool) *Agent {
	w.reactors[name] = r
	a := &Agent{Name: name, A: Side{Reactor: name, Tools: tools}, Retries: Retries{Backoff: time.Millisecond}}
	w.agents.agents[name] = a
	return a
}

// begin creates a thread and asks an agent.
func (w *world) begin(agent, text string) (id, execution string) {
	w.t.Helper()
	id = w.must("thread.create", "", events.CreateThread{AgentID: agent}).ThreadID
	return id, w.must("thread.react", id, events.ReactThread{Text: &text}).Result.ExecutionID
}

// claim claims a run like a worker that dies immediately.
func (w *world) claim(id, execution, worker string) {
	w.t.Helper()
	if _, err := w.d.Run(w.t.Context(), &thread.Command{
		ID: "claim-" + worker, Tenant: tenant, ThreadID: id,
		Parts: []thread.Part{{Name: "run.claim", Data: thread.ClaimRun{ExecutionID: execution, Worker: worker}}},
	}, nil); err != nil {
		w.t.Fatal(err)
	}
}

// until waits until a thread's log shows an event, and returns all its events.
func (w *world) until(id string, shows func(*events.Event) bool) []events.Event {
	w.t.Helper()
	deadline := time.After(testPatience)
	for {
		var all []events.Event
		found := false
		for c, err := range w.log.Thread(w.t.Context(), tenant, id, 1) {
			if err != nil {
				w.t.Fatal(err)
			}
			for i := range c.Events {
				all = append(all, c.Events[i])
				found = found || shows(&c.Events[i])
			}
		}
		if found {
			return all
		}
		select {
		case <-w.seen:
		case <-deadline:
			w.t.Fatalf("the thread never came to it; it has %s", kinds(all))
		}
	}
}

// finished waits until an execution has ended.
func (w *world) finished(id, execution string) []events.Event {
	w.t.Helper()
	return w.until(id, func(e *events.Event) bool {
		d, ok := e.Data.(events.ThreadFinished)
		return ok && d.ExecutionID == execution
	})
}

// look passes the state of a thread to a function.
func (w *world) look(id string, look func(*thread.State)) {
	w.t.Helper()
	if err := w.d.Look(w.t.Context(), tenant, id, look); err != nil {
		w.t.Fatal(err)
	}
}

func kinds(list []events.Event) string {
	var out []string
	for _, e := range list {
		out = append(out, string(e.Type))
	}
	return strings.Join(out, " ")
}

// says is a reaction with a text and calls.
func says(s string, calls ...ToolCall) *Reaction {
	return &Reaction{
		AssistantEvent: Assistant{Content: []events.JSON{object("type", events.OutputText, "text", s)}}, ToolCalls: calls,
	}
}

// script answers step by step.
func script(steps ...*Reaction) Reactor {
	return ReactorFunc(func(_ context.Context, in *StepInput, _ Stream) (*Reaction, error) {
		if in.Iteration >= int64(len(steps)) {
			return says("no more"), nil
		}
		return steps[in.Iteration], nil
	})
}

// tool is a tool of a function.
type tool struct {
	spec ToolSpec
	call func(context.Context, *ToolInput) (ToolResult, error)
}

func (t tool) Spec() ToolSpec { return t.spec }

func (t tool) Call(ctx context.Context, in *ToolInput) (ToolResult, error) { return t.call(ctx, in) }

func call(id, name, arguments string) ToolCall {
	return ToolCall{CallID: id, Name: name, Arguments: events.JSON(arguments)}
}

// next waits for the next value of a channel.
func next[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(testPatience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// none checks that a channel is empty.
func none[T any](t testing.TB, from <-chan T) {
	t.Helper()
	select {
	case v := <-from:
		t.Errorf("an unexpected value: %+v", v)
	default:
	}
}
