package thread

import (
	"strconv"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// Command is a command as decisions see it: decoded, validated by its schema,
// stamped with a time and an id.
type Command struct {
	ID       string // determines the events' ids, and makes a repeat safe
	Tenant   string
	ThreadID string
	Expected *int64      // the version that the thread must have
	Time     events.Time // now; later if the thread's last event is not before it
	Actor    string
	Writer   string // the token of the exclusive writer that sends it
	Token    string // of the hold that a writer.claim begins: a secret, which the door makes
	Repeat   string // the id with which its sender repeats it; empty: ID
	Inside   bool   // it is this process's own, and no client's
	Trace    string // W3C trace context
	Cause    string // the id of the event that caused it
	ShareKey []byte // of the process, for tokens of shares; empty: it makes none
	Batch    bool   // it is a thread.commit, so an error names its part at fault
	Parts    []Part // one, or those of a thread.commit

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

// State returns the state after the draft's commands. The caller must not change it.
func (d *Draft) State() *State { return d.layer }

// Events returns the draft's events, in order.
func (d *Draft) Events() []events.Event { return d.events }

// Do decides a command and returns its events. A refusal leaves the draft unchanged.
func (d *Draft) Do(c *Command) ([]events.Event, error) {
	if len(d.events) == 0 { // nothing to preserve if it is refused
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
	m := newMaker(s, c)
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
	if c.Expected != nil && *c.Expected != s.Version && (s.Exists() || c.Creates() || c.OfTenant()) {
		return events.Conflict(*c.Expected, s.Version) // of a thread that is gone no version is told
	}
	return nil
}

// newMaker returns a maker of a command's events on a layer, which it changes.
func newMaker(s *State, c *Command) *maker {
	return &maker{state: s, command: c, at: max(c.Time, s.Time+1), made: make([]events.Event, 0, len(c.Parts)+2)}
}

// decideParts decides the command's parts one after another.
func (m *maker) decideParts() error {
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

// Blame adds to a refusal the path in the request, and the part of a thread.commit, at fault.
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

// maker collects the events of one command, and applies each so that later parts see it.
type maker struct {
	state   *State
	command *Command
	at      events.Time
	index   int               // of the part, from 1; 0: not of a thread.commit
	ids     int               // the number of ids derived
	ending  bool              // the thread is being deleted: nothing new starts
	group   map[string]*maker // of the threads that the command concerns, this one included; nil: of this thread alone

	correlation string // of the items that are added
	outputOf    string // the part that holds the output of the result being added
	steers      string // the item with which a run answers the items being added
	made        []events.Event
}

// emit adds an event of an entity, and applies it to the state.
func (m *maker) emit(t events.Type, subject, correlation string, data any) {
	c := m.command
	m.made = append(m.made, events.Event{
		ID:   events.EventID(c.Tenant, c.ThreadID, c.ID, len(m.made)),
		Type: t, Time: m.at, Subject: subject, Tenant: c.Tenant, ThreadID: c.ThreadID,
		Version: m.state.Version + 1, CommandID: c.ID, CommandIndex: m.index,
		Correlation: correlation, Causation: c.Cause, Actor: c.Actor, TraceParent: c.Trace, Data: data,
	})
	Evolve(m.state, &m.made[len(m.made)-1])
}

// id returns the caller's id, or derives one.
func (m *maker) id(given, prefix string) string {
	if given != "" {
		return given
	}
	m.ids++
	return events.DeriveID(prefix, m.at, m.command.Tenant, m.command.ThreadID, m.command.ID, m.ids)
}
