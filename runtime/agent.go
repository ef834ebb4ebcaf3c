package runtime

import (
	"context"
	"time"

	"github.com/skein-threads/skein/events"
)

// Agent is an agent with all that its definition names, as a run uses it. It
// must not be changed.
type Agent struct {
	Name    string
	Type    string // HumanAgent or DualAgent
	A, B    Side   // of an ai_human agent, A alone
	Limits  Limits
	Retries Retries
	// MaxItems is how many of the last items a reactor is shown; 0: all.
	MaxItems int
	// MaxBytes is how many bytes of items a reactor is shown, see events.FitItems; 0: all.
	MaxBytes int
	// Continue is the loop policy: whether another step follows one that
	// has come to this. Default: if the step made calls. What the execution's state
	// says goes before it: a run that was told to stop ends, one that was steered
	// goes on, and limits hold.
	Continue Loop
	// Hooks are its own, called within those of the process.
	Hooks []Hooks
	// Refs are the definitions that it was made of, with their versions.
	Refs []events.DefinitionVersion
}

// Outcome is what a step has come to, for the loop policy. It holds nothing of
// the messages' metadata.
type Outcome struct {
	Iteration int64
	Side      events.Side
	Calls     []string // the names of the tools that were called
	Usage     events.Usage
}

// The types of agents.
const (
	HumanAgent = "ai_human"
	DualAgent  = "dual_ai"
)

// Side is what one side of an agent is: of a dual_ai agent, each of two.
type Side struct {
	Label          string
	Reactor        string // the name of a reactor
	Model          Model
	Prompt         events.PromptDefinition // filled in anew for each step
	Tools          []Tool
	StopOnResponse bool // the run ends when it answers without calls
	MaxSteps       int64
}

// Limits bound a run. The zero value of a field means its default.
type Limits struct {
	Iterations int64         // steps; default 20
	WallClock  time.Duration // from a claim to the end, waiting not counted; default 1 hour
	Tokens     int64         // of all calls of models; default none
	ToolTime   time.Duration // of one call of a tool; default 5 minutes
	WorkerWait time.Duration // for a process that serves the reactor or a tool, when none does; default 10 minutes, negative: none
}

// Retries say how often a reactor or an idempotent tool is tried.
type Retries struct {
	Attempts int           // default 3
	Backoff  time.Duration // before the second; doubles each time; default 250 ms; below 0: none
}

func (a *Agent) withDefaults() *Agent {
	out := *a
	if out.Type == "" {
		out.Type = HumanAgent
	}
	if out.Limits.Iterations == 0 {
		out.Limits.Iterations = 20
	}
	if out.Limits.WallClock == 0 {
		out.Limits.WallClock = time.Hour
	}
	if out.Limits.WorkerWait == 0 {
		out.Limits.WorkerWait = events.DefaultWorkerWaitMs * time.Millisecond
	}
	if out.Limits.ToolTime == 0 {
		out.Limits.ToolTime = 5 * time.Minute
	}
	if out.Retries.Attempts == 0 {
		out.Retries.Attempts = 3
	}
	if out.Retries.Backoff == 0 {
		out.Retries.Backoff = 250 * time.Millisecond
	}
	return &out
}

// side gives one side of the agent.
func (a *Agent) side(s events.Side) *Side {
	if a.Type == DualAgent && s == events.SideB {
		return &a.B
	}
	return &a.A
}

// tool finds a tool of a side.
func (s *Side) tool(name string) Tool {
	for _, t := range s.Tools {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}

// Agents finds agents by name.
type Agents interface {
	// Agent gives an agent of a tenant with all that it names. The error is a
	// not_found if there is none of that name, or if something that it names is
	// not there; it may be shown.
	Agent(ctx context.Context, tenant, name string) (*Agent, error)
	// Tool gives a tool that callers may queue although no agent names it.
	Tool(ctx context.Context, tenant, name string) (Tool, error)
}

// Reactors finds reactors by name.
type Reactors interface {
	// Reactor gives the reactor of that name. The error is a not_found.
	Reactor(name string) (Reactor, error)
}

// PersonTool is a tool that asks a person. Calling it is for the runtime: the run
// waits, held by no worker, and the answer is the call's result.
type PersonTool interface {
	Tool
	// Ask returns what is asked by a call with these arguments, and the JSON Schema
	// of the answer; nil: any JSON.
	Ask(arguments events.JSON) (question string, answer events.JSON)
}

// AgentTool is a tool that is another agent. Calling it is for the runtime: an
// ai_human agent takes the thread over, unless it is to run apart; a dual_ai
// agent runs in a thread of its own.
type AgentTool interface {
	Tool
	// AgentName gives the agent.
	AgentName() string
	// Apart reports whether an ai_human agent runs in a thread of its own, too, and
	// its answer is the call's result.
	Apart() bool
}
