package state

import (
	"context"
	"errors"
	"iter"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// The events of a run of an agent.
const (
	AgentStarted   EventType = "started"   // the input is valid, and the handler has not begun
	AgentCompleted EventType = "completed" // the handler has returned a valid output
	AgentErrored   EventType = "errored"   // the handler has failed or panicked, or its output is invalid
)

// Agent is a function from an input to an output. Both are checked against JSON Schemas, which are
// derived from In and Out. It is an http.Handler, and Run calls it from a handler or another
// agent. It is safe for concurrent use.
type Agent[In, Out any] struct {
	name          string
	handler       func(context.Context, In) (Out, error)
	input, output *shape
	listeners     []agentListener[In, Out]
	evals         []eval[In, Out]
}

// AgentRun is a run of an agent, for its listeners and evals. Package-level functions such as
// Request, Thread and KV work with the context of a listener or eval: it is the request's.
type AgentRun[In, Out any] struct {
	Agent  string
	Event  EventType
	Input  In
	Output Out   // of a completed run
	Err    error // of an errored run; a *PanicError if the handler panicked
}

// AgentOption configures an agent.
type AgentOption[In, Out any] func(*Agent[In, Out]) error

type agentListener[In, Out any] struct {
	event EventType
	run   func(context.Context, AgentRun[In, Out]) error
}

// WithListener adds a listener to AgentStarted, AgentCompleted or AgentErrored. Listeners run in
// the order in which they were added, before the response is sent, so that their writes are saved
// together with the handler's. An error or panic of a listener is logged and recorded on the
// thread, and changes nothing else.
func WithListener[In, Out any](event EventType, f func(context.Context, AgentRun[In, Out]) error) AgentOption[In, Out] {
	return func(a *Agent[In, Out]) error {
		switch {
		case !slices.Contains([]EventType{AgentStarted, AgentCompleted, AgentErrored}, event):
			return events.Invalid("", "agent %s: there is no event %.80q of a run; use %s, %s or %s", a.name, event, AgentStarted, AgentCompleted, AgentErrored)
		case f == nil:
			return events.Invalid("", "agent %s: its listener to %s has no function", a.name, event)
		}
		a.listeners = append(a.listeners, agentListener[In, Out]{event, f})
		return nil
	}
}

// NewAgent returns an agent. Its name is 1 to 64 letters, digits, - and _. Its schemas are derived
// from In and Out: the fields of a struct are described by the tags json, doc and enum, and an
// any, or an events.JSON, takes any JSON. The error is an invalid_request that names the type or
// field without a schema.
//
// Input and output may each have at most 1 MiB of JSON.
func NewAgent[In, Out any](name string, handler func(context.Context, In) (Out, error), opts ...AgentOption[In, Out]) (*Agent[In, Out], error) {
	if !listenerName.MatchString(name) {
		return nil, events.Invalid("/name", "the name of an agent is %.80q; use 1 to 64 letters, digits, - and _", name)
	}
	if handler == nil {
		return nil, events.Invalid("/handler", "agent %s has no handler", name)
	}
	a := &Agent[In, Out]{name: name, handler: handler}
	var err error
	if a.input, err = shapeOf[In]("input of agent " + name); err != nil {
		return nil, err
	}
	if a.output, err = shapeOf[Out]("output of agent " + name); err != nil {
		return nil, err
	}
	for _, apply := range opts {
		if err := apply(a); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Run runs the agent within a request; ctx is the request's context. If the input does not fit its
// schema, the error is an invalid_request that names the path, and the handler does not run. If
// the output does not fit, the error is an *OutputError.
func (a *Agent[In, Out]) Run(ctx context.Context, in In) (out Out, err error) {
	raw, err := json.Marshal(in, json.Deterministic(true))
	if err == nil {
		err = a.input.check(raw)
	}
	if err != nil {
		return out, events.Invalid(errorPath(err), "%w", err)
	}
	out, _, err = a.run(ctx, in, a.handler)
	return out, err
}

// run runs a handler with a valid input. It returns the output, and the output as JSON.
func (a *Agent[In, Out]) run(ctx context.Context, in In, handler func(context.Context, In) (Out, error)) (Out, events.JSON, error) {
	var none Out
	r := AgentRun[In, Out]{Agent: a.name, Input: in}
	s := scopeOf(ctx)
	if s.over() {
		return none, nil, &EndedError{SessionID: s.session.ID}
	}
	a.fire(ctx, s, AgentStarted, r)
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		r.Err = &PanicError{Value: v, Stack: debug.Stack()}
		a.fire(context.WithoutCancel(ctx), s, AgentErrored, r)
		panic(v)
	}()
	out, err := handler(ctx, in)
	var raw events.JSON
	if err == nil {
		raw, err = a.encode(out)
	}
	if err != nil {
		r.Err = err
		a.fire(context.WithoutCancel(ctx), s, AgentErrored, r)
		return none, nil, err
	}
	r.Output = out
	a.fire(ctx, s, AgentCompleted, r)
	a.evaluate(ctx, s, r)
	return out, raw, nil
}

// fire runs the listeners to an event.
func (a *Agent[In, Out]) fire(ctx context.Context, s *scope, event EventType, r AgentRun[In, Out]) {
	r.Event = event
	for _, l := range a.listeners {
		if l.event != event {
			continue
		}
		if err := protect(ctx, func(ctx context.Context) error { return l.run(ctx, r) }); err != nil {
			s.fail(ctx, "a listener to "+string(event)+" of agent "+a.name+" failed", err)
		}
	}
}

// StreamAgent is an agent with a text as output, which is sent while it is produced. Its listeners
// and evals receive the whole text.
type StreamAgent[In any] struct {
	agent  *Agent[In, string]
	stream func(context.Context, In) iter.Seq2[string, error]
}

// NewStreamAgent is NewAgent for a handler that returns the parts of a text. An error ends the
// text.
func NewStreamAgent[In any](name string, handler func(context.Context, In) iter.Seq2[string, error], opts ...AgentOption[In, string]) (*StreamAgent[In], error) {
	if handler == nil {
		return nil, events.Invalid("/handler", "agent %s has no handler", name)
	}
	s := &StreamAgent[In]{stream: handler}
	var err error
	s.agent, err = NewAgent(name, func(ctx context.Context, in In) (string, error) {
		return s.collect(ctx, in, func(string) bool { return true })
	}, opts...)
	if err != nil {
		return nil, err
	}
	s.agent.output = nil // a text of any length is valid
	return s, nil
}

// Run runs the agent as Agent.Run does, and returns the whole text.
func (s *StreamAgent[In]) Run(ctx context.Context, in In) (string, error) {
	return s.agent.Run(ctx, in)
}

// errStopped is the error of a run after its reader has stopped reading.
var errStopped = errors.New("the reader of the stream has stopped; the client may have left")

// collect calls send with each part of the text until send returns false. It returns the whole
// text.
func (s *StreamAgent[In]) collect(ctx context.Context, in In, send func(string) bool) (string, error) {
	var text strings.Builder
	for part, err := range s.stream(ctx, in) {
		if err != nil {
			return "", err
		}
		text.WriteString(part)
		if !send(part) {
			return "", errStopped
		}
	}
	return text.String(), nil
}

// send runs the agent with a valid input. It calls send with each part of the text until that
// returns false.
func (s *StreamAgent[In]) send(ctx context.Context, in In, send func(string) bool) error {
	_, _, err := s.agent.run(ctx, in, func(ctx context.Context, in In) (string, error) { return s.collect(ctx, in, send) })
	return err
}
