package thread

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// runState is the state of an execution that Skein runs. It is never changed in place: see
// executionState.with.
type runState struct {
	Agent   string           `json:"agent,omitzero"`
	Begun   events.Time      `json:"begunAt"`
	Wanted  int64            `json:"wanted,omitzero"` // the thread's version at the last request for the run
	Token   int64            `json:"token,omitzero"`  // of the last claim
	Worker  string           `json:"worker,omitzero"`
	Parked  bool             `json:"parked,omitzero"` // it waits, and no worker has claimed it
	Free    bool             `json:"free,omitzero"`   // it has waited, and was not claimed since
	Stop    bool             `json:"stop,omitzero"`
	Abort   bool             `json:"abort,omitzero"`
	Reason  string           `json:"reason,omitzero"`    // of the stop
	By      events.Side      `json:"stoppedBy,omitzero"` // the side that stopped it
	SideA   int64            `json:"sideA,omitzero"`     // steps of side a
	SideB   int64            `json:"sideB,omitzero"`     // steps of side b
	Step    string           `json:"step,omitzero"`      // the open step
	Side    events.Side      `json:"side,omitzero"`      // of the open step, or the last
	Turn    events.Side      `json:"turn,omitzero"`      // the side that has the next turn
	Place   int64            `json:"place,omitzero"`     // the number of parts of the reaction item
	Base    int64            `json:"base,omitzero"`      // that number when the open step started
	Asks    string           `json:"asks,omitzero"`      // the agent whose reactor the step asks; empty if queued calls are the step
	Reacted bool             `json:"reacted,omitzero"`   // the open step's reactor has answered, or its calls were queued
	Steered int64            `json:"steered,omitzero"`   // the index after the last item that steered the run
	Item    string           `json:"item,omitzero"`      // the item that the open step writes, or the last one wrote; empty: the reaction item
	Room    int64            `json:"room,omitzero"`      // the place reserved for that item, plus one; 0: none is reserved
	From    int64            `json:"from,omitzero"`      // messages from this place on that steered the run are not shown to the open step
	Said    int64            `json:"said,omitzero"`      // the index after the last message that others added to the context
	Steers  string           `json:"steers,omitzero"`    // the last message that steered the run
	Parent  *events.Parent   `json:"parent,omitzero"`    // the call that waits for it
	Handoff *events.Handoff  `json:"handoff,omitzero"`   // set while it writes the summary of a handoff instead of a message
	First   []ToolCall       `json:"first,omitempty"`    // calls for the first step, before the reactor is called
	Once    bool             `json:"once,omitzero"`      // it ends after the calls in First
	Drained bool             `json:"drained,omitzero"`   // queued calls are about to become a step
	Asked   int64            `json:"asked,omitzero"`     // the number of steps whose reactor was called
	Calls   []callState      `json:"calls,omitempty"`    // of the open step
	Missing []events.WaitFor `json:"lacks,omitempty"`    // the workers that it waits for, which no process serves

	Rights             *events.Rights      `json:"rights,omitzero"`    // the rights common to all credentials that took part in it; nil: the tenant's, or it has ended and cannot be retried
	Left               []string            `json:"left,omitempty"`     // calls that still waited for a run on another thread when their step ended
	Settings           *events.RunSettings `json:"settings,omitzero"`  // nil once it has ended and cannot be retried
	UnavailableSince   events.Time         `json:"awaySince,omitzero"` // since when no process serves the open step's reactor; 0: unknown, or one does
	ServerMissingSince events.Time         `json:"downSince,omitzero"` // when it began to wait for an MCP server; 0: it is not waiting
}

// ToolCall is a call of a tool.
type ToolCall = events.ToolCall

// callState is a call of the open step.
type callState struct {
	ID   string    `json:"id"`
	Name string    `json:"name"`
	Idx  int64     `json:"idx"` // its part in the step
	Is   callPhase `json:"phase,omitzero"`
	Asks bool      `json:"asks,omitzero"`       // it is a question: only a person's answer completes it
	Fits string    `json:"schema,omitzero"`     // the JSON Schema of that answer
	Part []byte    `json:"part,omitzero"`       // as the reactor returned it
	For  int64     `json:"grantedFor,omitzero"` // the claim for which it was granted or left unmade; under a later claim it may have been made already

	UnavailableSince events.Time `json:"awaySince,omitzero"` // since when no process serves its tool; 0: unknown, or one does
}

type callPhase string

const (
	callOpen    callPhase = ""
	callWaits   callPhase = "waits"  // for a person
	callThread  callPhase = "thread" // for a run of another agent on a thread of its own
	callEnded   callPhase = "ended"  // the run on the other thread has ended, and its result is not recorded yet
	callGranted callPhase = "granted"
	callDenied  callPhase = "denied"
	callSolved  callPhase = "solved" // a person supplied its result
	callDone    callPhase = "done"
)

// queued is a message, or a call of a tool, that waits for the agent.
type queued struct {
	ID      string      `json:"id"`
	Item    events.JSON `json:"item"`
	Context string      `json:"context,omitzero"`
	Agent   string      `json:"agent,omitzero"`
	Tool    bool        `json:"tool,omitzero"`
	Once    bool        `json:"once,omitzero"` // of a call: it has a run of its own

	Execution string `json:"execution,omitzero"` // of a message: reserved for its run
	Reaction  string `json:"reaction,omitzero"`
	Message   int64  `json:"message,omitzero"` // its number in the thread
	Session   string `json:"session,omitzero"` // of the request that sent it

	Settings *events.RunSettings `json:"settings,omitzero"` // that its run will have
	Rights   *events.Rights      `json:"rights,omitzero"`   // likewise
}

// joins reports whether the entry is a call that the current run makes.
func (q *queued) joins() bool { return q.Tool && !q.Once }

// item decodes the entry's item.
func (q *queued) item() (item events.NewItem, err error) {
	if err := json.Unmarshal(q.Item, &item); err != nil {
		return item, events.Errorf(events.Unavailable, "decode queue entry: %w", err)
	}
	return item, nil
}

// with returns the execution with a changed copy of its run.
func (x executionState) with(change func(*runState)) executionState {
	if x.Run == nil {
		return x
	}
	r := *x.Run
	r.Calls = slices.Clone(r.Calls)
	change(&r)
	x.Run = &r
	return x
}

// writes returns the item that the open step writes, or the last one wrote.
func (x executionState) writes() string {
	if x.Run != nil && x.Run.Item != "" {
		return x.Run.Item
	}
	return x.Reaction
}

// answersIn returns the item that the next step writes if a message arrives now. It is a new item,
// unless no step has begun yet.
func (x executionState) answersIn(tenant, thread, execution string) string {
	if x.Steps == 0 {
		return x.writes()
	}
	return events.DeriveID(events.ItemPrefix, x.Run.Begun, tenant, thread, execution+":answer", int(x.Steps))
}

func (r *runState) call(id string) *callState {
	for i := range r.Calls {
		if r.Calls[i].ID == id {
			return &r.Calls[i]
		}
	}
	return nil
}

// waits reports whether the call waits for a person, or for an agent on another thread.
func (c *callState) waits() bool { return c.Is == callWaits || c.Is == callThread }

// pending reports whether a worker still has to make the call.
func (c *callState) pending() bool { return c.Is == callOpen || c.Is == callGranted }

// waiting returns the calls of the open step that wait for a person, or for an agent on another
// thread.
func (r *runState) waiting() []string {
	ids := []string{}
	for i := range r.Calls {
		if r.Calls[i].waits() {
			ids = append(ids, r.Calls[i].ID)
		}
	}
	return ids
}

// mustEnd reports whether a stopped run can end now. An aborted run can. Any other run first waits
// for runs on other threads and their results, but not for people.
func (r *runState) mustEnd() bool {
	return r.Stop && (r.Abort || r.left(callThread, callEnded) == 0)
}

// due counts the calls of the open step that the run's worker still has to complete.
func (r *runState) due() int {
	return r.left(callOpen, callGranted, callDenied, callSolved, callEnded)
}

// left counts the calls of the open step that are in one of the phases.
func (r *runState) left(phases ...callPhase) int {
	n := 0
	for _, c := range r.Calls {
		if slices.Contains(phases, c.Is) {
			n++
		}
	}
	return n
}

// Run is what a worker needs to know about an execution.
type Run struct {
	ExecutionID, ContextID string
	TriggerItemID          string
	ReactionItemID         string
	ItemID                 string // the item that the open step writes, or the last step wrote
	From                   int64  // messages from this place on that steered the run are not shown to the open step
	SessionID              string // of the request that it answers
	Status                 events.ExecutionStatus
	Agent                  string
	Begun                  events.Time // when it was requested
	Wanted                 int64       // the thread's version at the last request for the run
	Token                  int64       // of the last claim
	Parked                 bool
	Stop, Abort            bool
	StoppedBy              events.Side
	Steps                  int64 // the number of steps in which the reactor was called: all, and those of each side
	SideASteps, SideBSteps int64
	StepID                 string // the open step, if there is one
	Iteration              int64  // of the open step; of the next one if none is open
	Side                   events.Side
	Asks                   string      // the agent that the open step asks and that makes its calls; empty: the calls were queued
	Reacted                bool        // the open step's reactor has answered, or its calls were queued
	Calls                  []Call      // of the open step
	Left                   []string    // calls that still waited for a run on another thread when the last step ended
	UnavailableSince       events.Time // since when no process serves the open step's reactor; 0: unknown, or one does
	ServerMissingSince     events.Time // when it began to wait for an MCP server; 0: it is not waiting
	Parent                 *events.Parent
	Handoff                *events.Handoff // it writes the summary for a new thread
	NextItem               int64           // the index of the thread's next item

	Settings *events.RunSettings // read-only; nil: none
	Rights   *events.Rights      // read-only; nil: those of the tenant
}

// Call is a call of the open step as a worker sees it.
type Call struct {
	CallID, Name           string
	Waits, Granted, Denied bool
	Solved                 bool // a person supplied its result
	Apart                  bool // it waits for a run on another thread
	Ended                  bool // the run on the other thread has ended, and its result is not recorded yet
	Fresh                  bool // no earlier claim can have made it: it was granted for this claim, or left unmade
	Done                   bool
	UnavailableSince       events.Time // since when no process serves its tool; 0: unknown, or one does
}

// Run returns an execution, and reports whether it exists and Skein runs it.
func (s *State) Run(executionID string) (Run, bool) {
	x, _ := s.execution(executionID)
	if x.Run == nil || !s.Exists() {
		return Run{}, false
	}
	r := Run{
		ExecutionID: executionID, ContextID: x.Context, TriggerItemID: x.Trigger, ReactionItemID: x.Reaction, SessionID: x.Session, Status: x.Status,
		Agent: x.Run.Agent, Begun: x.Run.Begun, Wanted: x.Run.Wanted, Token: x.Run.Token, Parked: x.Run.Parked, Stop: x.Run.Stop, Abort: x.Run.Abort,
		StepID: x.Run.Step, Iteration: x.Steps, Side: x.Run.Side, Asks: x.Run.Asks, Reacted: x.Run.Reacted, Parent: x.Run.Parent, Handoff: x.Run.Handoff, StoppedBy: x.Run.By,
		Steps: x.Run.Asked, SideASteps: x.Run.SideA, SideBSteps: x.Run.SideB, ItemID: x.writes(), From: x.Run.From, NextItem: s.NextItem, Left: x.Run.Left, UnavailableSince: x.Run.UnavailableSince, ServerMissingSince: x.Run.ServerMissingSince, Settings: x.Run.Settings, Rights: x.Run.Rights,
	}
	if r.StepID != "" {
		r.Iteration--
	}
	for _, c := range x.Run.Calls {
		r.Calls = append(r.Calls, Call{
			CallID: c.ID, Name: c.Name, Waits: c.waits(), Granted: c.Is == callGranted, Denied: c.Is == callDenied, Solved: c.Is == callSolved,
			Apart: c.Is == callThread, Ended: c.Is == callEnded,
			Fresh: c.pending() && c.For == x.Run.Token, Done: c.Is == callDone, UnavailableSince: c.UnavailableSince,
		})
	}
	return r, true
}

// Active returns the current execution if Skein runs it, else "".
func (s *State) Active() string { return s.head.Active }

// AgentID returns the agent in charge of the thread.
func (s *State) AgentID() string { return s.Agent }

// UserID returns the user that the thread belongs to, "" if none.
func (s *State) UserID() string { return s.User }

// CreatedAt returns when the thread was created.
func (s *State) CreatedAt() events.Time { return s.CreatedTime }

// LostRunError refuses a worker's command because its claim on the execution is no longer the
// latest: another worker has claimed it, or it has ended. Nothing was written.
type LostRunError struct {
	ExecutionID string
	Token, Now  int64
	Ended       bool
}

func (e *LostRunError) Error() string {
	if e.Ended {
		return "execution " + e.ExecutionID + " has ended"
	}
	return "execution " + e.ExecutionID + " was taken over by another worker"
}

// missingReactor reports whether the open step waits for its reactor, which no process serves.
func (r *runState) missingReactor() bool {
	return r.Step != "" && !r.Reacted && slices.ContainsFunc(r.Missing, func(w events.WaitFor) bool { return w.Kind == events.ReactorWorker })
}

// missingServer reports whether the run waits for an MCP server, either before its next step or
// before the calls of the open step.
func (r *runState) missingServer() bool {
	return slices.ContainsFunc(r.Missing, events.WaitFor.IsServer)
}

// unmade returns the pending calls that no earlier claim can have made.
func (r *runState) unmade() (calls []string) {
	for i := range r.Calls {
		if c := &r.Calls[i]; c.pending() && c.For == r.Token {
			calls = append(calls, c.ID)
		}
	}
	return calls
}

// missingTool reports whether a call that a worker still has to make waits for its tool, which no
// process serves.
func (r *runState) missingTool(call string) bool {
	c := r.call(call)
	return c != nil && c.pending() && slices.ContainsFunc(r.Missing, func(w events.WaitFor) bool { return w.Kind == events.ToolWorker && w.CallID == call })
}
