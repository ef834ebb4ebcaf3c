package effects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/service"
)

const acme = "acme"

// testPatience is how long a test waits for what must come.
const testPatience = 5 * time.Minute

// patient returns how logs are opened for tests, in which a server that stands still is none that
// fails.
func patient() eventlog.Config { return eventlog.Config{Patience: testPatience} }

// plant is a server with a thread, and the processes of a test.
type plant struct {
	testing.TB
	dir       string
	server    *embedded.Server
	validator *schema.Validator
	log       *eventlog.Log
	thread    string
	folding   func() // ends the runner
}

func newPlant(t testing.TB) *plant {
	t.Helper()
	p := &plant{TB: t, dir: t.TempDir(), folding: func() {}}
	var err error
	if p.validator, err = schema.New(); err != nil {
		t.Fatal(err)
	}
	p.up()
	p.thread = p.do(p.process(nil, Config{}), "thread.create", `{}`).ThreadID
	return p
}

// up starts the server and the read models, on the store of an earlier one.
func (p *plant) up() {
	p.Helper()
	p.server = natstest.Start(p, natstest.StoreDir(p.dir))
	p.log = p.open()
	runner := projections.New(p.open(), projections.Config{}, zerolog.Nop(), nil)
	if err := errors.Join(p.log.Ensure(p.Context()), runner.Ensure(p.Context())); err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = runner.Run(ctx)
	}()
	var once sync.Once
	p.folding = func() {
		once.Do(func() {
			cancel()
			<-done
		})
	}
	p.Cleanup(p.folding)
}

func (p *plant) open() *eventlog.Log {
	p.Helper()
	log, err := eventlog.Open(natstest.Connect(p, p.server, nats.ReconnectWait(50*time.Millisecond), nats.MaxReconnects(-1)), patient(), zerolog.Nop(), nil)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(log.Close)
	return log
}

// process is a process of Skein with what effects need. Its worker has its own
// connection, so that a test can disconnect it.
type process struct {
	d      *commands.Dispatcher
	timers *Timers
	worker *Worker
	wires  *eventlog.Log // of the worker
	stop   func()
}

// process starts a process. It has a worker if effects is not nil.
func (p *plant) process(effects runtime.Effects, cfg Config) *process {
	p.Helper()
	log := p.open()
	one := &process{timers: NewTimers(log, nil, zerolog.Nop()), wires: p.open()}
	one.d = commands.NewDispatcher(log, p.validator, commands.Config{Timeout: testPatience, Intake: timed{one.timers}}, zerolog.Nop(), nil)
	if cfg.AckWait == 0 {
		cfg.AckWait = testPatience // nobody is lost but in the tests that say so
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { one.timers.Run(ctx) })
	if effects != nil {
		one.worker = New(one.wires, one.d, effects.Effect, cfg, zerolog.Nop())
		running.Go(func() { one.worker.Run(ctx) })
	}
	one.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	p.Cleanup(one.stop)
	return one
}

// do executes a command on the thread, which must succeed.
func (p *plant) do(one *process, name, data string) *events.Reply {
	p.Helper()
	body := `{"data":` + data
	if p.thread != "" {
		body += `,"threadId":"` + p.thread + `"`
	}
	reply, err := one.d.Do(p.Context(), acme, name, []byte(body+"}"), commands.Meta{})
	if err != nil {
		p.Fatalf("%s %s: %v", name, data, err)
	}
	return reply
}

// schedule schedules an effect and returns its id.
func (p *plant) schedule(one *process, name, more string) string {
	p.Helper()
	return p.do(one, "effect.schedule", `{"name":"`+name+`"`+more+`}`).Result.EffectID
}

// story returns the events of an effect, each as its type and content.
func (p *plant) story(id string) []string {
	p.Helper()
	list := []string{}
	for c, err := range p.log.Thread(p.Context(), acme, p.thread, 1) {
		if err != nil {
			p.Fatal(err)
		}
		for i := range c.Events {
			e := &c.Events[i]
			if e.Subject != id {
				continue
			}
			if e.Correlation != id {
				p.Errorf("%s of effect %s is of the flow %q", e.Type, id, e.Correlation)
			}
			_, what, _ := strings.Cut(string(e.Type), ".")
			switch d := e.Data.(type) {
			case events.EffectStarted:
				what = fmt.Sprint(what, " ", d.Firing, ".", d.Attempt)
			case events.EffectFailed:
				what = fmt.Sprint(what, " ", d.Firing, ".", d.Attempt, " ", d.ErrorText)
				if d.Final {
					what += " (final)"
				}
			}
			list = append(list, what)
		}
	}
	return list
}

// tells waits until an effect has exactly these events.
func (p *plant) tells(id string, want ...string) {
	p.Helper()
	var got []string
	p.until(func() bool {
		got = p.story(id)
		return len(got) >= len(want)
	}, func() string { return fmt.Sprintf("effect %s: %q, want %q", id, got, want) })
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.Errorf("effect %s: %q, want %q", id, got, want)
	}
}

// until polls until a condition holds.
func (p *plant) until(so func() bool, or func() string) {
	p.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	late := time.After(testPatience)
	for !so() {
		select {
		case <-ticks.C:
		case <-late:
			p.Fatal(or())
		}
	}
}

// pending returns what effect.list shows of everything committed.
func (p *plant) pending(name string) []events.ScheduledEffect {
	p.Helper()
	queries := query.New(p.log, p.validator, query.Config{Wait: testPatience}, zerolog.Nop(), nil)
	ctx, cancel := context.WithCancel(p.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = queries.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	end, err := p.log.LastSeq(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	body := fmt.Sprintf(`{"threadId":%q,"name":%q,"minSeq":%d}`, p.thread, name, end)
	if name == "" {
		body = fmt.Sprintf(`{"threadId":%q,"minSeq":%d}`, p.thread, end)
	}
	answer, err := queries.Handle(p.Context(), acme, "effect.list", []byte(body), service.Meta{})
	if err != nil {
		p.Fatal(err)
	}
	return answer.(*events.EffectList).Effects
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

// tell is an effect that sends its input.
func tell(to chan<- *runtime.EffectInput) runtime.Effect {
	return runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
		to <- in
		return nil
	})
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// timed is the intake of a process that only has timers.
type timed struct{ timers *Timers }

func (i timed) Stored(c *events.Commit) { i.timers.Committed(c) }

func (timed) Joins([]events.Event) *commands.Joined { return nil }
