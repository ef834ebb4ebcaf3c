package chaos

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
)

const (
	gated   = "gated"   // an agent that waits at a gate, and then pays
	careful = "careful" // an agent whose tool wants an approval
	pay     = "pay"     // a tool that waits at a gate, and is not idempotent
	sign    = "sign"    // a tool that wants an approval
)

// addGated adds the agents that do not follow a script. ask waits at a gate; it is nil if
// there are none.
func addGated(r *runtime.Registry, book ledger, ask func(ctx context.Context, what string) error) error {
	script := func(first string) []transcript.Step {
		return []transcript.Step{
			transcript.Text("First this.", runtime.ToolCall{CallID: "c1", Name: first, Arguments: events.JSON(`{"eur":5}`)}),
			transcript.Text("That is all."),
		}
	}
	ledgered := func(spec runtime.ToolSpec, wait func(context.Context) error) runtime.Tool {
		return doing{spec, func(ctx context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
			err := book.begun(in.Key)
			if err == nil {
				err = wait(ctx)
			}
			if err == nil {
				err = book.record(in.Key)
			}
			return runtime.Done(events.JSON(`"done"`)), err
		}}
	}
	err := errors.Join(
		r.AddReactor(careful, transcript.Fixed(script(sign)...)),
		r.AddTool(ledgered(runtime.ToolSpec{Name: sign, Manual: true}, func(context.Context) error { return nil })),
	)
	if ask == nil {
		return err
	}
	paying := transcript.Fixed(script(pay)...)
	return errors.Join(err,
		r.AddReactor(gated, runtime.ReactorFunc(func(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
			if in.Iteration == 0 {
				if err := ask(ctx, "reactor"); err != nil {
					return nil, err
				}
			}
			return paying.React(ctx, in, out)
		})),
		r.AddTool(ledgered(runtime.ToolSpec{Name: pay}, func(ctx context.Context) error { return ask(ctx, pay) })),
	)
}

// doing is a tool made of a function.
type doing struct {
	spec runtime.ToolSpec
	do   func(context.Context, *runtime.ToolInput) (runtime.ToolResult, error)
}

func (d doing) Spec() runtime.ToolSpec { return d.spec }

func (d doing) Call(ctx context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
	return d.do(ctx, in)
}

// gates is where the workers of a test ask whether they may go on.
type gates struct {
	t    testing.TB
	mu   sync.Mutex
	came map[string]chan *nats.Msg // by worker and what
}

const gateSubject = "chaos.gate."

func openGates(t testing.TB, nc *nats.Conn) *gates {
	t.Helper()
	g := &gates{t: t, came: map[string]chan *nats.Msg{}}
	if _, err := nc.Subscribe(gateSubject+"*.*", func(m *nats.Msg) { g.at(m.Subject) <- m }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *gates) at(subject string) chan *nats.Msg {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.came[subject]
	if c == nil {
		c = make(chan *nats.Msg, 64)
		g.came[subject] = c
	}
	return c
}

// arrival waits until a worker has come to a gate, and returns the request to answer to
// let it go on.
func (g *gates) arrival(worker, what string) *nats.Msg {
	g.t.Helper()
	return waitFor(g.t, g.at(gateSubject+worker+"."+what), worker+" at the gate of "+what)
}

// asking returns the function with which a worker asks at a gate.
func asking(nc *nats.Conn, worker string) func(context.Context, string) error {
	return func(ctx context.Context, what string) error {
		_, err := nc.RequestWithContext(ctx, gateSubject+worker+"."+what, nil)
		return err
	}
}
