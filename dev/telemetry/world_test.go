package telemetry

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/telemetry"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/schema/arguments"
)

const tenant = "acme"

// world is a server whose worker runs agents, with the exporter of their runs.
type world struct {
	t      testing.TB
	server *embedded.Server
	log    *eventlog.Log
	d      *commands.Dispatcher
	agents map[string]*runtime.Agent
	react  map[string]runtime.Reactor
	stored chan *events.Commit
	spans  spanCounts
}

func (w *world) Reactor(name string) (runtime.Reactor, error) {
	if r, ok := w.react[name]; ok {
		return r, nil
	}
	return nil, events.Missing("reactor", name)
}

func (w *world) Agent(_ context.Context, _, name string) (*runtime.Agent, error) {
	if a, ok := w.agents[name]; ok {
		return a, nil
	}
	return nil, events.Missing("agent", name)
}

func (w *world) Tool(_ context.Context, _, name string) (runtime.Tool, error) {
	return nil, events.Missing("tool", name)
}

// spanCounts counts spans by result.
type spanCounts struct {
	mu sync.Mutex
	n  map[string]int
	at chan struct{}
}

func (c *spanCounts) Spans(result string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[result] += n
	c.at <- struct{}{}
}

// told waits until a number of spans is reported, and fails if there are more.
func (w *world) told(result string, n int) {
	w.t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		w.spans.mu.Lock()
		got := w.spans.n[result]
		w.spans.mu.Unlock()
		if got > n {
			w.t.Fatalf("%d spans were %s, not %d", got, result, n)
		}
		if got == n {
			return
		}
		select {
		case <-w.spans.at:
		case <-deadline:
			w.t.Fatalf("%d spans were %s, not %d", got, result, n)
		}
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		t.Setenv(name, "")
	}
	w := &world{
		t: t, server: natstest.Start(t), agents: map[string]*runtime.Agent{}, react: map[string]runtime.Reactor{},
		stored: make(chan *events.Commit, 10_000), spans: spanCounts{n: map[string]int{}, at: make(chan struct{}, 10_000)},
	}
	w.log = w.open()
	if err := w.log.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	validator, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	w.d = commands.NewDispatcher(w.log, validator, commands.Config{Intake: watched{runtime.NewIntake(w.log, zerolog.Nop()), w.stored}}, zerolog.Nop(), nil)
	worker := runtime.New(w.log, w.d, runtime.Config{Name: "w1", Reactors: w, Agents: w, Arguments: arguments.New()}, zerolog.Nop())
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := worker.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

func (w *world) open() *eventlog.Log {
	w.t.Helper()
	log, err := eventlog.Open(natstest.Connect(w.t, w.server), eventlog.Config{Patience: 5 * time.Minute}, zerolog.Nop(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(log.Close)
	return log
}

// position reads how far the export is.
func (w *world) position() *eventlog.Position {
	w.t.Helper()
	p, err := eventlog.OpenPosition(w.t.Context(), w.log, telemetry.Bucket, "telemetry")
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// export runs an exporter until stop is called.
func (w *world) export(cfg telemetry.Config) (stop func()) {
	w.t.Helper()
	if cfg.Linger == 0 {
		cfg.Linger = 10 * time.Millisecond
	}
	log := w.open()
	x, err := telemetry.New(log, cfg, zerolog.New(zerolog.NewTestWriter(w.t)), &w.spans)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := x.Ensure(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := x.Run(ctx); ctx.Err() == nil {
			w.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	w.t.Cleanup(stop)
	return stop
}

func (w *world) must(name, id, traceparent string, data any) *events.Reply {
	w.t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := json.Marshal(events.Request{ThreadID: id, Actor: "ada", Data: raw})
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := w.d.Do(w.t.Context(), tenant, name, body, commands.Meta{TraceParent: traceparent})
	if err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	return r
}

// ask creates a thread and asks an agent.
func (w *world) ask(agent, traceparent string) (id, execution string) {
	w.t.Helper()
	id = w.must("thread.create", "", "", events.CreateThread{AgentID: agent}).ThreadID
	text := "Where is my secret order?"
	return id, w.must("thread.react", id, traceparent, events.ReactThread{Text: &text}).Result.ExecutionID
}

// until waits until a commit has an event.
func (w *world) until(what string, shows func(*events.Event) bool) {
	w.t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		select {
		case c := <-w.stored:
			for i := range c.Events {
				if shows(&c.Events[i]) {
					return
				}
			}
		case <-deadline:
			w.t.Fatalf("%s was not committed", what)
		}
	}
}

func (w *world) finished(execution string) {
	w.t.Helper()
	w.until("the end of "+execution, func(e *events.Event) bool {
		d, ok := e.Data.(events.ThreadFinished)
		return ok && d.ExecutionID == execution
	})
}

// agent adds an agent of one reactor.
func (w *world) agent(name string, r runtime.Reactor, tools ...runtime.Tool) *runtime.Agent {
	w.react[name] = r
	w.agents[name] = &runtime.Agent{
		Name: name, A: runtime.Side{Reactor: name, Tools: tools, Model: runtime.Model{Model: "small"}},
		Retries: runtime.Retries{Backoff: time.Millisecond}, Refs: []events.DefinitionVersion{{Kind: events.AgentKind, Name: name, Version: 3}},
	}
	return w.agents[name]
}

// tool is a tool of a function.
type tool struct {
	spec  runtime.ToolSpec
	call  func(*runtime.ToolInput) (runtime.ToolResult, error)
	agent string
}

func (t tool) Spec() runtime.ToolSpec { return t.spec }

func (t tool) Call(_ context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
	return t.call(in)
}

// agentTool is a tool that is an agent.
type agentTool struct{ tool }

func (a agentTool) AgentName() string { return a.agent }
func (a agentTool) Apart() bool       { return false }

func returning(name, result string) tool {
	return tool{spec: runtime.ToolSpec{Name: name}, call: func(*runtime.ToolInput) (runtime.ToolResult, error) {
		return runtime.Done(events.JSON(result)), nil
	}}
}

func call(id, name string) runtime.ToolCall {
	return runtime.ToolCall{CallID: id, Name: name, Arguments: events.JSON(`{"secret":"argument"}`)}
}

// watched is an intake that tells what it has received.
type watched struct {
	*runtime.Intake
	stored chan<- *events.Commit
}

func (w watched) Stored(c *events.Commit) {
	w.Intake.Stored(c)
	w.stored <- c
}
