package thread

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// Command is a command as decisions see it: decoded, validated by its schema,
// stamped with a time and an id.
type Command struct {
	ID       string // determines the events' ids, and makes a repeat safe
	Digest   string // events.CommandDigest, if the caller set the id
	Tenant   string
	ThreadID string
	Expected *int64      // the version that the thread must have
	Time     events.Time // now; later if the thread's last event is not before it
	Actor    string
	Writer   string         // the token of the exclusive writer that sends it
	Token    string         // the secret of the hold that a writer.claim begins; the dispatcher generates it
	Repeat   string         // the command id that the sender uses for a repeat; empty: ID
	Inside   bool           // sent by this process, not by a client
	Rights   *events.Rights // of the credential, or the run, that sends it; nil: those of the tenant
	Trace    string         // W3C trace context
	Cause    string         // the id of the event that caused it
	ShareKey []byte         // this process's key for the tokens of shares; empty: no shares can be created
	Batch    bool           // it is a thread.commit, so an error names its part at fault
	Parts    []Part         // one, or those of a thread.commit

	Copied *Copied // of a fork: what it copies from the current state of its parent

	Known // the tenant's definitions that the command needs
}

// Part is one command's name and its data, of the type in the catalog of commands.
type Part struct {
	Name string
	Data any
}

// Creates reports whether the command may create its thread.
func (c *Command) Creates() bool {
	if len(c.Parts) == 0 {
		return false
	}
	switch c.Parts[0].Data.(type) {
	case events.CreateThread, events.ResolveThread:
		return true
	}
	return false
}

// CreatesMissing reports whether the command creates the thread that it names if it does not
// exist.
func (c *Command) CreatesMissing() bool {
	if len(c.Parts) == 0 {
		return false
	}
	d, ok := c.Parts[0].Data.(events.MergeState)
	return ok && d.Create
}

// OfTenant reports whether the command belongs to the tenant rather than a thread.
func (c *Command) OfTenant() bool {
	if len(c.Parts) == 0 {
		return false
	}
	_, ok := c.Parts[0].Data.(events.ApplyDefinitions)
	return ok
}

// Dry reports whether the command is a dry run.
func (c *Command) Dry() bool {
	if len(c.Parts) == 0 {
		return false
	}
	d, ok := c.Parts[0].Data.(events.ApplyDefinitions)
	return ok && d.DryRun
}

// Draft is a layer over a state that takes commands without changing the state.
type Draft struct {
	base   *State
	layer  *State
	events []events.Event
}

// NewDraft returns a draft over s. While it is in use, s must not change.
func NewDraft(s *State) *Draft { return &Draft{base: s, layer: s.layer()} }

// Events returns the draft's events, in order.
func (d *Draft) Events() []events.Event { return d.events }

// Do decides a command and returns its events. A refusal leaves the draft unchanged.
func (d *Draft) Do(c *Command) ([]events.Event, error) {
	if len(d.events) == 0 { // no events to preserve if the command is refused
		made, err := decideOn(d.layer, c)
		if err != nil {
			d.layer = d.base.layer()
			return nil, err
		}
		d.events = made[:len(made):len(made)]
		return made, nil
	}
	layer := d.layer.layer()
	made, err := decideOn(layer, c)
	if err != nil {
		return nil, err
	}
	d.layer.merge(layer)
	d.events = append(d.events, made...)
	return made, nil
}

// Apply applies the draft to its state, once the log has stored it as c.
func (d *Draft) Apply(c *events.Commit) {
	d.base.merge(d.layer)
	if d.base.Deleted {
		d.base.clear()
	}
	d.base.stored(c)
}

// Decide returns the events of a command on a state, or the refusal: an *events.Error or an
// *events.TransitionError. The state is not changed.
func Decide(s *State, c *Command) ([]events.Event, error) {
	return decideOn(s.layer(), c)
}

// decideOn decides the command's parts one after another on a layer, which it changes.
func decideOn(s *State, c *Command) ([]events.Event, error) {
	if err := atVersion(s, c); err != nil {
		return nil, err
	}
	m := newDecider(s, c)
	if err := s.admits(c, m.at); err != nil {
		return nil, err
	}
	if err := m.decideParts(); err != nil {
		return nil, err
	}
	return m.made, nil
}

// atVersion refuses a command that expects another version of its thread.
func atVersion(s *State, c *Command) error {
	if c.OfTenant() && c.Expected != nil && *c.Expected != s.Version {
		return events.DefinitionsConflict(*c.Expected, s.Version)
	}
	if c.Expected != nil && *c.Expected != s.Version && (s.Exists() || !s.Existed() && (c.Creates() || c.CreatesMissing())) {
		return events.Conflict(*c.Expected, s.Version) // the version of a deleted thread is not reported
	}
	return nil
}

// newDecider returns a decider for a command on a layer, which it changes.
func newDecider(s *State, c *Command) *decider {
	return &decider{state: s, command: c, at: max(c.Time, s.Time+1), made: make([]events.Event, 0, len(c.Parts)+2)}
}

// decideParts decides the command's parts one after another.
func (m *decider) decideParts() error {
	c := m.command
	for i, part := range c.Parts {
		if c.Batch {
			m.index = i + 1
		}
		if err := m.decide(part); err != nil {
			return Blame(err, c, i)
		}
	}
	return nil
}

// Blame adds to a refusal where in the request the fault is: the path and, in a thread.commit, the
// index of the part.
func Blame(err error, c *Command, part int) error {
	if !c.Batch {
		return schema.Under("/data", err)
	}
	e := *events.AsError(schema.Under("/data/commands/"+strconv.Itoa(part)+"/data", err))
	details := events.ErrorDetails{}
	if e.Details != nil {
		details = *e.Details
	}
	details.Command = &part
	e.Details = &details
	return &e
}

// decider decides one command. It collects the command's events, and applies each at once so that
// later parts see it.
type decider struct {
	state   *State
	command *Command
	at      events.Time
	index   int                 // of the part, from 1; 0: the command is not a thread.commit
	ids     int                 // the number of ids derived
	ending  bool                // the thread is being deleted: nothing new starts
	group   map[string]*decider // the deciders of all threads that the command concerns, including this one; nil: it concerns this thread only

	correlation string // of the items that are added
	source      string // the item that is being copied
	steers      string // the item with which a run answers the items being added
	place       *int64 // reserved for the item being added; nil: the next free place
	made        []events.Event
}

// emit adds an event of an entity, and applies it to the state.
func (m *decider) emit(t events.Type, subject, correlation string, data any) {
	c := m.command
	m.made = append(m.made, events.Event{
		ID:   events.EventID(c.Tenant, c.ThreadID, c.ID, len(m.made)),
		Type: t, Time: m.at, Subject: subject, Tenant: c.Tenant, ThreadID: c.ThreadID,
		Version: m.state.Version + 1, CommandID: c.ID, CommandIndex: m.index,
		Correlation: correlation, Causation: c.Cause, Actor: c.Actor, TraceParent: c.Trace, Data: data,
	})
	if len(m.made) == 1 {
		m.made[0].CommandDigest = c.Digest
	}
	Evolve(m.state, &m.made[len(m.made)-1])
}

// id returns the caller's id, or derives one.
func (m *decider) id(given, prefix string) string {
	if given != "" {
		return given
	}
	m.ids++
	return events.DeriveID(prefix, m.at, m.command.Tenant, m.command.ThreadID, m.command.ID, m.ids)
}

// Known is what a decision needs to know about the tenant's definitions, which are not part of the
// thread. Draft.Needs says what has to be filled in.
type Known struct {
	Policy events.Policy                      // of the agent that works; empty: it has none
	Modes  map[string]string                  // the agent of each mode; nil: the tenant has no policy of modes
	Titles *Titles                            // how threads get automatic titles; nil: they get none
	Types  map[string]func(events.JSON) error // check a content against a type of contexts, by name; nil: there is no such type
	Skills map[string]bool                    // that are defined
	Tools  map[string]bool                    // Go tools that the process has: they need no definition
	Absent map[string]bool                    // endpoints of models that do not exist for the tenant
	Writes string                             // the agent that writes summaries; empty: the tenant has no policy of handoffs
	// Takes has a function for each tool that checks arguments against the tool's parameters. A
	// tool has no entry if this process does not know its parameters.
	Takes map[Called]func(arguments events.JSON) error
	// Lists has the tools that the agent's definition lists.
	Lists map[Called]bool
	// Fits checks an answer against the JSON Schema of its question; nil: this process cannot
	// check answers.
	Fits func(schema, answer events.JSON) error
}

// Need says what a decision must know about the tenant's definitions.
type Need struct {
	Agent string // whose policy applies; empty: none
	Modes bool   // the agents of modes
	// Titles is set if the command may set an automatic title.
	Titles bool
	Skills []string // that are to be activated
	Tools  []string // that definitions refer to, or that lose their definition
	Served []string // endpoints that models' definitions name
	Types  []string // of contexts
	Writes bool     // the agent that writes summaries
	Asked  []Asked  // agents that are asked to answer
	Called []Called // tools of calls whose arguments a person replaces
	Listed []Called // tools that an agent may have to list
}

// Called names a tool and the agent that called it.
type Called struct {
	Agent string // empty: a caller queued the call
	Tool  string
}

// Asked names the agent that a part of a command asks to answer.
type Asked struct {
	Name string // used if the mode picks no agent
	Mode string // of the thread; empty: Name is used
	Part int
}

// Needs returns what Known must hold before the draft can decide the command.
func (d *Draft) Needs(c *Command) Need {
	var need Need
	s := d.layer
	own, mode := s.AgentID(), s.Profile.Mode // or set by earlier parts
	need.Modes = mode != "" && (s.Profile.submits() || c.credential() != nil)
	for i, p := range c.Parts {
		switch d := p.Data.(type) {
		case events.AssignAgent:
			own = d.AgentID
		case events.UpdateThread:
			if d.AgentMode != nil {
				mode = *d.AgentMode
			}
		case ReactStep, EndCalls, FailRun, ClaimRun, ParkRun, events.StopRun: // a run may end with it
			need.Titles = s.Profile.wantsTitle()
		case ReactFor:
			need.Modes = need.Modes || d.AgentID == "" && mode != ""
		case events.ReactThread:
			asked := Asked{Name: cmp.Or(d.AgentID, own), Part: i}
			if d.AgentID == "" && mode != "" {
				asked.Mode, need.Modes = mode, true
			}
			if asked.Name != "" || asked.Mode != "" { // without an agent the decision refuses the command
				need.Asked = append(need.Asked, asked)
			}
			if d.Policy == "" && s.Policy == "" && s.Status == events.ThreadStreaming {
				need.Agent = s.working()
			}
		case events.HandoffThread:
			switch {
			case d.Summary != "":
			case d.AgentID != "":
				need.Asked = append(need.Asked, Asked{Name: d.AgentID, Part: i})
			default:
				need.Writes = true
			}
		case events.QueueTool:
			if c.credential() != nil {
				need.Listed = append(need.Listed, Called{Agent: cmp.Or(s.runningAgent(), own), Tool: d.Name})
			}
		case events.GrantApproval:
			need.replaces(s, d)
		case events.ResolveApproval:
			need.replaces(s, d.Granted())
		case events.ApplyDefinitions:
			need.Tools = append(need.Tools, toolsOf(d)...)
			need.Served = append(need.Served, endpointsOf(d)...)
		case events.ActivateSkill:
			need.Skills = append(need.Skills, d.Name)
		case events.CreateThread:
			need.of(d.ContextType)
		case events.ResolveThread:
			need.of(d.ContextType)
		case events.CreateContext:
			need.of(d.Type)
		case events.SetContext:
			id := d.ContextID
			if id == "" {
				id = s.Default
			}
			if context, ok := s.context(id); ok {
				need.of(context.Type)
			}
		}
	}
	return need
}

func (n *Need) of(name string) {
	if name != "" && !slices.Contains(n.Types, name) {
		n.Types = append(n.Types, name)
	}
}

// replaces adds the tool of a call if the grant replaces the call's arguments.
func (n *Need) replaces(s *State, d events.GrantApproval) {
	if d.Arguments == nil {
		return
	}
	if of, ok := s.called(d.CallID); ok && !slices.Contains(n.Called, of) {
		n.Called = append(n.Called, of)
	}
}

// working returns the agent of the current run or, without a run, the agent in charge of the
// thread.
func (s *State) working() string {
	return cmp.Or(s.runningAgent(), s.Agent)
}

// runningAgent returns the agent of the current run, "" if there is none.
func (s *State) runningAgent() string {
	if x, _ := s.execution(s.head.Active); x.Run != nil {
		return x.Run.Agent
	}
	return ""
}
