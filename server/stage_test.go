package server_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// stage is a whole Skein whose reactors and tools do what the test sets.
//
// The reactor script executes the last message of a user: a list of steps, each a list
// of calls; any other text it echoes. The tools probe, manual and open call the act in
// their arguments.
type stage struct {
	*world
	mu    sync.Mutex // guards the fields below
	acts  map[string]act
	asked []string // the agent of each call of script, and its side
}

// act is the function of a tool's call.
type act func(ctx context.Context, in *runtime.ToolInput) (any, error)

// one is a call of a tool.
type one struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args,omitempty"`
}

// probe returns a call of the tool probe with an act.
func probe(name string) one { return one{"probe", map[string]any{"act": name}} }

func newStage(t *testing.T, more ...func(*server.Config)) *stage {
	t.Helper()
	s := &stage{acts: map[string]act{}}
	cfg := store(t)
	cfg.Volatile = true
	cfg.Register = func(r *runtime.Registry) error {
		err := errors.Join(r.AddReactor("script", runtime.ReactorFunc(s.script)), r.AddReactor("broken", runtime.ReactorFunc(
			func(context.Context, *runtime.StepInput, runtime.Stream) (*runtime.Reaction, error) {
				return nil, errors.New("the model is away")
			})))
		for _, spec := range []runtime.ToolSpec{
			{Name: "probe", Idempotent: true}, {Name: "manual", Manual: true}, {Name: "open", NotPortable: true},
		} {
			tool, bad := runtime.DefineTool(spec, func(ctx context.Context, in *runtime.ToolInput, args struct {
				Act string `json:"act"`
			}) (any, error) {
				s.mu.Lock()
				do := s.acts[args.Act]
				s.mu.Unlock()
				if do == nil {
					return nil, errors.New("no act " + args.Act)
				}
				return do(ctx, in)
			})
			err = errors.Join(err, bad, r.AddTool(tool))
		}
		return err
	}
	for _, change := range more {
		change(&cfg)
	}
	s.world = startWorld(t, cfg, "acme")
	return s
}

// addEffect registers an effect in a process.
func addEffect(c *server.Config, name string, effect runtime.Effect) {
	others := c.Register
	c.Register = func(r *runtime.Registry) error { return errors.Join(others(r), r.AddEffect(name, effect)) }
}

// on sets an act. An act that is never called checks nothing, so that fails the test.
func (s *stage) on(name string, do act) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := false
	s.acts[name] = func(ctx context.Context, in *runtime.ToolInput) (any, error) {
		s.mu.Lock()
		begun = true
		s.mu.Unlock()
		return do(ctx, in)
	}
	s.t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !begun {
			s.t.Errorf("the act %s was not called, so its checks did not run", name)
		}
	})
}

// times returns how often script was called.
func (s *stage) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func (s *stage) script(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
	s.mu.Lock()
	s.asked = append(s.asked, in.Agent+in.Side)
	s.mu.Unlock()
	var steps [][]one
	for _, i := range in.Items {
		var parts []struct {
			Text string `json:"text"`
		}
		if i.Role == events.User && json.Unmarshal(i.Content, &parts) == nil && len(parts) > 0 {
			var list [][]one
			_ = json.Unmarshal([]byte(parts[0].Text), &list) // other texts are echoed
			steps = list
		}
	}
	out := &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{}}}
	if in.Iteration >= int64(len(steps)) {
		out.AssistantEvent.Content = append(out.AssistantEvent.Content, events.JSON(`{"type":"output_text","text":"done by `+in.Agent+in.Side+`"}`))
		return out, nil
	}
	for n, c := range steps[in.Iteration] {
		args, err := json.Marshal(c.Args)
		if err != nil {
			return nil, err
		}
		if c.Args == nil {
			args = []byte("{}")
		}
		out.ToolCalls = append(out.ToolCalls, runtime.ToolCall{CallID: in.StepID + "_" + string(rune('a'+n)), Name: c.Tool, Arguments: args})
	}
	return out, nil
}

// thread creates a thread of an agent, and returns its state.
func (s *stage) thread(agent string) *client.ThreadState {
	s.t.Helper()
	reply := must(s.Send(s.t.Context(), "", events.CreateThread{AgentID: agent, UserID: "ada"}))(s.t)
	return must(s.WithMinSeq(reply.Seq).Thread(s.t.Context(), reply.ThreadID))(s.t)
}

// begin asks the thread's agent for steps.
func (s *stage) begin(st *client.ThreadState, steps ...[]one) *events.Reply {
	s.t.Helper()
	text := string(must(json.Marshal(steps))(s.t))
	return must(s.Send(s.t.Context(), st.ThreadID(), events.ReactThread{Text: &text}))(s.t)
}

// end waits until a run has ended.
func (s *stage) end(reply *events.Reply) *events.Execution {
	s.t.Helper()
	seq := reply.Seq
	return must(s.WaitRun(s.t.Context(), events.GetExecution{
		ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &seq},
	}))(s.t)
}

// play makes script execute steps on a thread, and waits until they are done.
func (s *stage) play(st *client.ThreadState, steps ...[]one) *events.Execution {
	s.t.Helper()
	x := s.end(s.begin(st, steps...))
	if x.Status != events.ExecutionCompleted {
		s.t.Fatalf("the run ended %s: %s", x.Status, x.ErrorText)
	}
	return x
}

// define applies definitions.
func (s *stage) define(definitions ...any) {
	s.t.Helper()
	var list []events.NewDefinition
	for _, d := range definitions {
		in := events.NewDefinition{Definition: must(events.EncodeDefinition(d))(s.t)}
		switch d.(type) {
		case events.AgentDefinition:
			in.Kind = events.AgentKind
		case events.ToolDefinition:
			in.Kind = events.ToolKind
		case events.PromptDefinition:
			in.Kind = events.PromptKind
		case events.ModelDefinition:
			in.Kind = events.ModelKind
		}
		list = append(list, in)
	}
	must(s.Send(s.t.Context(), "", events.ApplyDefinitions{Definitions: list}))(s.t)
}

// got collects values of acts, to be read when they are over.
type got[T any] struct {
	mu   sync.Mutex
	list []T
}

func (g *got[T]) add(v T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, v)
}

func (g *got[T]) all() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.list
}

// withReactor adds a reactor.
func withReactor(name string, r runtime.ReactorFunc) func(*server.Config) {
	return func(c *server.Config) {
		before := c.Register
		c.Register = func(registry *runtime.Registry) error {
			return errors.Join(before(registry), registry.AddReactor(name, r))
		}
	}
}
