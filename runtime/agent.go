package runtime

import (
	"context"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
)

// Agent is an agent with everything that its definition names, as a run uses it. It is
// read-only.
type Agent struct {
	Name    string
	Type    string // HumanAgent or DualAgent
	A, B    Side   // an ai_human agent has only A
	Limits  Limits
	Retries Retries
	// MaxItems is how many of the latest items a reactor receives; 0: all.
	MaxItems int
	// MaxBytes is how many bytes of items a reactor receives, see events.FitItems; 0:
	// all.
	MaxBytes int
	// Continue is the loop policy: it reports whether another step follows one with
	// that outcome. Default: if the step made calls. The execution's state takes
	// precedence: a stopped run ends, a steered one continues, and limits hold.
	Continue Loop
	// Hooks are the agent's own hooks, called within those of the process.
	Hooks []Hooks
	// Refs are the definitions that the agent consists of, with their versions.
	Refs []events.DefinitionVersion
}

// Outcome is the outcome of a step, for the loop policy. It contains no metadata of
// messages.
type Outcome struct {
	Iteration int64
	Side      events.Side
	Calls     []string // the names of the called tools
	Usage     events.Usage
}

// The types of agents.
const (
	HumanAgent = "ai_human"
	DualAgent  = "dual_ai"
)

// Side is one side of an agent: a dual_ai agent has two.
type Side struct {
	Label          string
	Reactor        string  // the name of a reactor
	Endpoint       Reactor // the reactor itself, if the tenant defines it; default: found by its name
	Model          Model
	Prompt         events.PromptDefinition // its variables are filled in for each step
	Tools          []Tool                  // the tools that its reactor may call
	AnyTool        bool                    // every tool of the tenant may be called, because the reactor is a program without a model
	Skills         []Skill                 // the skills that the model may load
	StopOnResponse bool                    // the run ends after an answer without calls
	MaxSteps       int64
}

// Limits bound a run. They do not bound the runs on other threads that its calls wait for. The
// zero value of a field means its default.
type Limits struct {
	Iterations int64         // steps; default 20
	WallClock  time.Duration // of each claim, from its beginning until the run waits or ends; default 1 hour
	Tokens     int64         // used by the run's own calls of models; default: unlimited
	ToolTime   time.Duration // of one call of a tool; default 5 minutes
	WorkerWait time.Duration // wait for a process that serves the reactor or a tool; default 10 minutes, negative: none
}

// Retries configure the attempts of a reactor or an idempotent tool.
type Retries struct {
	Attempts int           // default 3
	Backoff  time.Duration // before the second attempt; doubles each time; default 250 ms; negative: none
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

// side returns one side of the agent.
func (a *Agent) side(s events.Side) *Side {
	if a.Type == DualAgent && s == events.SideB {
		return &a.B
	}
	return &a.A
}

// tool returns a tool of a side, nil if there is none.
func (s *Side) tool(name string) Tool {
	for _, t := range s.Tools {
		if t.Spec().Name == name {
			return t
		}
	}
	if name == events.SkillTool && len(s.Skills) > 0 {
		return skillTool{s.Skills}
	}
	return nil
}

// Agents finds agents by name.
type Agents interface {
	// Agent returns an agent of a tenant with everything that it names. The error is a
	// not_found if there is none with that name, or if something that it names is
	// missing; its text may be shown to clients. With an *AbsentServersError the agent is
	// returned, too, without the tools of those servers.
	Agent(ctx context.Context, tenant, name string) (*Agent, error)
	// Tool returns a tool that callers may queue, and that a Side with AnyTool may call.
	Tool(ctx context.Context, tenant, name string) (Tool, error)
}

// AbsentServersError says that an agent needs MCP servers that cannot be reached now. Its run
// waits for them.
type AbsentServersError struct{ Servers []AbsentServer }

// AbsentServer is an MCP server that cannot be reached now.
type AbsentServer struct {
	Tool string        // the name of the definition that names it
	Wait time.Duration // how long a run waits for it; default: the agent's, negative: not at all
	Err  error         // says why; its text may be shown to clients
}

// Error names the servers, and why they cannot be reached.
func (e *AbsentServersError) Error() string {
	var texts []string
	for _, s := range e.Servers {
		texts = append(texts, "tool "+s.Tool+": "+events.AsError(s.Err).Message)
	}
	return strings.Join(texts, "; ")
}

// Reactors finds reactors by name.
type Reactors interface {
	// Reactor returns the reactor with that name. The error is a not_found.
	Reactor(name string) (Reactor, error)
}

// PersonTool is a tool that asks a person. The runtime does not call it: the run waits,
// without a worker, and the answer is the call's result.
type PersonTool interface {
	Tool
	// Ask returns the question of a call with these arguments, and the JSON Schema of
	// the answer; nil: any JSON.
	Ask(arguments events.JSON) (question string, answer events.JSON)
}

// AbsentTool is a Go tool that this process does not have. A run that calls it waits, without a
// place, until a process has it, and continues in any. Its spec comes from the definition alone,
// so its schema, and whether a call may be repeated, are known only if the definition says so.
type AbsentTool interface {
	Tool
	// Elsewhere only marks the tool as absent.
	Elsewhere()
}

// AgentTool is a tool that is another agent. The runtime does not call it: an ai_human
// agent takes the thread over, unless it is to run apart; a dual_ai agent runs in a
// thread of its own.
type AgentTool interface {
	Tool
	// AgentName returns the name of the agent.
	AgentName() string
	// Apart reports whether an ai_human agent runs in a thread of its own, too, and its
	// answer is the call's result.
	Apart() bool
}

// reactor returns the reactor of a side.
func (w *Worker) reactor(side *Side) (Reactor, error) {
	if side.Endpoint != nil {
		return side.Endpoint, nil
	}
	return w.reactors.Reactor(side.Reactor)
}

// askPolicy calls the loop policy of the agent. ok is false if the policy panicked.
func (t reactorCall) askPolicy(o Outcome) (goes, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			LogPanic(t.logger.Error().Str("agent", t.agent.Name), p, "a loop policy")
		}
	}()
	return t.agent.Continue(o), true
}

// ask returns the question of a person tool, and the schema of its answer. ok is false if the
// tool panicked.
func (t stepCalls) ask(tool PersonTool, arguments events.JSON) (question string, answer events.JSON, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			LogPanic(t.logger.Error().Str("tool", tool.Spec().Name), p, "a tool")
		}
	}()
	question, answer = tool.Ask(arguments)
	return question, answer, true
}
