package events

import "slices"

// AgentType says how an agent works in a thread.
type AgentType string

// The types of agents.
const (
	AIHuman AgentType = "ai_human" // a model and a person
	DualAI  AgentType = "dual_ai"  // two models, a and b, that talk to each other
)

// Enum lists the types.
func (AgentType) Enum() []string { return []string{string(AIHuman), string(DualAI)} }

// DefaultIterations is the number of steps that a run may have unless its agent says
// otherwise.
const DefaultIterations = 20

// AgentDefinition says who answers in a thread.
type AgentDefinition struct {
	Name        string        `json:"name" schema:"required,pattern=name" doc:"The name, as threads have it in agentId."`
	Description string        `json:"description,omitzero" schema:"maxLength=16384" doc:"What it does; for people, and for models that may call it."`
	Type        AgentType     `json:"type" schema:"required" doc:"ai_human: it answers people. dual_ai: two models talk to each other, in the thread that asks them, or in one of their own if another agent calls them."`
	Reactor     string        `json:"reactor,omitzero" schema:"pattern=name" doc:"The reactor that answers, if not that of the model; of type ai_human."`
	Model       string        `json:"model,omitzero" schema:"pattern=name" doc:"The model; of type ai_human, which needs it or a reactor."`
	Prompt      string        `json:"prompt,omitzero" schema:"pattern=name" doc:"The prompt; of type ai_human."`
	Tools       []string      `json:"tools,omitempty" schema:"maxItems=256,items=tool" doc:"The tools that the model may call; of type ai_human."`
	SideA       *AgentSide    `json:"sideA,omitzero" doc:"The side that begins; of type dual_ai."`
	SideB       *AgentSide    `json:"sideB,omitzero" doc:"The side that answers; of type dual_ai."`
	Policy      Policy        `json:"policy,omitzero" doc:"What happens to a message during a run; enqueue if absent."`
	Limits      *AgentLimits  `json:"limits,omitzero" doc:"When a run is ended."`
	Retries     *Retries      `json:"retries,omitzero" doc:"What is done when the reactor fails."`
	History     *AgentHistory `json:"history,omitzero" doc:"What of the thread the model is shown."`
	Loop        *AgentLoop    `json:"loop,omitzero" doc:"When a step is followed by another; of type ai_human."`
	Hooks       []string      `json:"hooks,omitempty" schema:"maxItems=64,items=name" doc:"The hooks that are called around what it does, in this order: names that the process which runs it has registered."`
	Skills      []string      `json:"skills,omitempty" schema:"maxItems=256,items=name" doc:"The skills that the model may load, with the tool skill; of type ai_human."`
}

// AgentSide is one side of an agent of type dual_ai.
type AgentSide struct {
	Label          string   `json:"label,omitzero" schema:"maxLength=256" doc:"What people call it."`
	Reactor        string   `json:"reactor,omitzero" schema:"pattern=name" doc:"The reactor that answers, if not that of the model."`
	Model          string   `json:"model,omitzero" schema:"pattern=name" doc:"The model; it or a reactor is needed."`
	Prompt         string   `json:"prompt,omitzero" schema:"pattern=name" doc:"The prompt."`
	Tools          []string `json:"tools,omitempty" schema:"maxItems=256,items=tool" doc:"The tools that the model may call."`
	StopOnResponse *bool    `json:"stopOnResponse,omitzero" doc:"The run ends when this side answers without calling a tool; false if absent."`
	MaxSteps       *int64   `json:"maxSteps,omitzero" schema:"minimum=1" doc:"How many steps this side may have."`
}

// AgentLimits bounds a run. What other agents do that it calls counts for their own limits.
type AgentLimits struct {
	Iterations   *int64 `json:"iterations,omitzero" schema:"minimum=1,maximum=10000" doc:"Steps; 20 if absent. Those of other agents that it calls, each in a thread of its own, are not counted, here or below."`
	WallClockMs  *int64 `json:"wallClockMs,omitzero" schema:"minimum=1" doc:"Milliseconds of work, from when a process takes the run; 3600000 if absent. It restarts from zero after each wait for people, other agents and processes."`
	Tokens       *int64 `json:"tokens,omitzero" schema:"minimum=1" doc:"Input and output tokens of its own calls of models; no bound if absent."`
	WorkerWaitMs *int64 `json:"workerWaitMs,omitzero" schema:"minimum=0,maximum=86400000" doc:"Milliseconds that a run waits for a process that serves its reactor or a tool, when none does; 600000 if absent, 0: not at all."`
	ToolTimeMs   *int64 `json:"toolTimeMs,omitzero" schema:"minimum=1" doc:"Milliseconds that one call of a tool may take whose definition does not say; 300000 if absent."`
}

// Continuation says when another step follows a step of a run.
type Continuation string

// When another step follows.
const (
	ContinueAfterCalls Continuation = "calls"  // if the step called a tool
	ContinueAlways     Continuation = "always" // until a tool of stopAfter is called or a limit is reached
	ContinueNever      Continuation = "never"  // the run has one step, and the calls of that step
)

// Enum lists the policies.
func (Continuation) Enum() []string {
	return []string{string(ContinueAfterCalls), string(ContinueAlways), string(ContinueNever)}
}

// AgentLoop is the loop policy of an agent. The state of the run's execution takes precedence:
// a stopped run ends, a steered run goes on, and limits hold.
type AgentLoop struct {
	Continue  Continuation `json:"continue,omitzero" doc:"calls: after a step that called a tool. always: after every step, until a tool of stopAfter was called; that is needed then. never: after none. calls if absent."`
	StopAfter []string     `json:"stopAfter,omitempty" schema:"maxItems=256,items=tool" doc:"Tools of the agent: a step that called one of them is the last."`
}

// Check validates what spans more than one field.
func (l AgentLoop) Check() error {
	if l.Continue == ContinueAlways && len(l.StopAfter) == 0 {
		return Invalid("/stopAfter", "a loop that goes on after every step needs a tool that ends it")
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (AgentLoop) Constraint() string {
	return `{"anyOf":[{"properties":{"continue":{"enum":["","calls","never",null]}}},` +
		`{"required":["stopAfter"],"properties":{"continue":{"const":"always"},"stopAfter":{"type":"array","minItems":1}}}]}`
}

// Goes reports whether another step follows one that called those tools.
func (l AgentLoop) Goes(calls []string) bool {
	for _, name := range calls {
		if slices.Contains(l.StopAfter, name) {
			return false
		}
	}
	switch l.Continue {
	case ContinueAlways:
		return true
	case ContinueNever:
		return false
	}
	return len(calls) > 0
}

// AgentHistory bounds the history that the model receives.
type AgentHistory struct {
	MaxItems *int64 `json:"maxItems,omitzero" schema:"minimum=1" doc:"The newest so many items; all if absent."`
	MaxBytes *int64 `json:"maxBytes,omitzero" schema:"minimum=1024" doc:"So many bytes of items as JSON; all if absent. Notes replace the oldest large results of calls first."`
}

// Check validates what spans more than one field.
func (d AgentDefinition) Check() error {
	if d.Type == DualAI {
		switch {
		case d.SideA == nil:
			return Invalid("/sideA", "an agent of type dual_ai needs sideA and sideB")
		case d.SideB == nil:
			return Invalid("/sideB", "an agent of type dual_ai needs sideA and sideB")
		}
		for _, f := range []struct{ name, value string }{{"reactor", d.Reactor}, {"model", d.Model}, {"prompt", d.Prompt}} {
			if f.value != "" {
				return Invalid("/"+f.name, "in an agent of type dual_ai each side has its own %s; give it in sideA and sideB", f.name)
			}
		}
		if len(d.Tools) > 0 {
			return Invalid("/tools", "in an agent of type dual_ai each side has its own tools; give them in sideA and sideB")
		}
		return nil
	}
	switch {
	case d.SideA != nil:
		return Invalid("/sideA", "only an agent of type dual_ai has sides")
	case d.SideB != nil:
		return Invalid("/sideB", "only an agent of type dual_ai has sides")
	case d.Model == "" && d.Reactor == "":
		return Invalid("/model", "an agent needs a model or a reactor")
	}
	return nil
}

// modelOrReactor is the shared part of both checks as JSON Schema.
const modelOrReactor = `"anyOf":[{"required":["model"],"properties":{"model":{"type":"string","minLength":1}}},` +
	`{"required":["reactor"],"properties":{"reactor":{"type":"string","minLength":1}}}]`

// Constraint returns the rules of Check as JSON Schema.
func (AgentDefinition) Constraint() string {
	const nothing = `{"enum":["",null]}`
	return `{"anyOf":[` +
		`{"properties":{"type":{"const":"ai_human"},"sideA":{"type":"null"},"sideB":{"type":"null"}},` + modelOrReactor + `},` +
		`{"required":["sideA","sideB"],"properties":{"type":{"const":"dual_ai"},"sideA":{"type":"object"},"sideB":{"type":"object"},` +
		`"reactor":` + nothing + `,"model":` + nothing + `,"prompt":` + nothing + `,"tools":{"type":["array","null"],"maxItems":0}}}]}`
}

// Check validates what spans more than one field.
func (s AgentSide) Check() error {
	if s.Model == "" && s.Reactor == "" {
		return Invalid("/model", "a side needs a model or a reactor")
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (AgentSide) Constraint() string { return `{` + modelOrReactor + `}` }

// WithDefaults returns the definition with every default filled in.
func (d AgentDefinition) WithDefaults() AgentDefinition {
	if d.Policy == "" {
		d.Policy = Enqueue
	}
	limits := AgentLimits{}
	if d.Limits != nil {
		limits = *d.Limits
	}
	limits.Iterations = orElse(limits.Iterations, DefaultIterations)
	d.Limits = &limits
	return d
}
