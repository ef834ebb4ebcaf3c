package thread

import (
	"cmp"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
)

// State is what decisions on one thread need to know. The zero value is the state of a thread
// that was never created.
type State struct {
	head
	parent *State // of a draft's layer; nil otherwise

	contexts   map[string]contextState
	items      compact.Map[itemState, packedItem, *pool]
	executions compact.Map[executionState, packedExecution, *pool]
	steps      compact.Map[stepState, packedStep, *pool]
	pool       *pool                // nil: nothing is packed yet, or this is a layer
	files      map[string]fileState // by path
	effects    map[string]effectState
	// relations are the relationships to other threads, by relationID.
	relations map[string]relationState
	// definitions are the tenant's, by kind/name; a thread has none.
	definitions map[string]definitionState
	receipts    receipts
	bytes       int64 // size of what the maps refer to, see Bytes
}

// head is the small part of the state, which is copied whole.
type head struct {
	Version     int64               `json:"version"`          // the number of events
	Seq         uint64              `json:"seq"`              // of the last commit in the log
	Chain       string              `json:"chain"`            // of the last commit
	Time        events.Time         `json:"time"`             // of the last event
	Deleted     bool                `json:"deleted,omitzero"` // its last event is a lifecycle.deleted
	Purged      bool                `json:"purged,omitzero"`  // the deletion erases the events before it
	Status      events.ThreadStatus `json:"status"`
	Key         string              `json:"key,omitzero"`
	Default     string              `json:"default,omitzero"` // the default context
	NextItem    int64               `json:"nextItem"`
	Agent       string              `json:"agent,omitzero"`     // in charge
	CreatedTime events.Time         `json:"createdAt,omitzero"` // when it was created
	User        string              `json:"user,omitzero"`      // the user that it belongs to
	Policy      events.Policy       `json:"policy,omitzero"`
	Skills      []string            `json:"skills,omitempty"`   // that are active; never changed in place
	Profile     profile             `json:"profile,omitzero"`   // the thread's settings
	Active      string              `json:"active,omitzero"`    // the current execution, if Skein runs it
	Failed      string              `json:"failed,omitzero"`    // the last execution, if Skein ran it and it failed
	Messages    int64               `json:"messages,omitzero"`  // the number of the next message
	Left        *int64              `json:"left,omitzero"`      // the number of the message that left the queue and is not an item yet
	Queue       []queued            `json:"queue,omitempty"`    // never changed in place
	Effects     int                 `json:"effects,omitzero"`   // the number of pending effects
	NumFiles    int64               `json:"numFiles,omitzero"`  // including directories
	Writer      writer              `json:"writer,omitzero"`    // the exclusive writer, or the last one
	Parents     int                 `json:"parents,omitzero"`   // the number of relationships in which the thread is the parent
	Shares      []share             `json:"shares,omitempty"`   // never changed in place
	Life        lifeState           `json:"life,omitzero"`      // the key-value state's current life, or the last
	Ended       []endedLife         `json:"ended,omitempty"`    // lives that are not cleared yet; never changed in place
	Sessions    *sessions           `json:"sessions,omitzero"`  // sessions of the conversation; never changed in place
	Pending     *pending            `json:"pending,omitzero"`   // an inherited history with items that are not in the state yet; never changed in place
	Answered    []answered          `json:"answered,omitempty"` // the last answers to calls; never changed in place
}

type contextState struct {
	Key     string               `json:"key,omitzero"`
	Status  events.ContextStatus `json:"status"`
	Content []byte               `json:"content,omitzero"` // JSON; nil is null
	Type    string               `json:"type,omitzero"`    // the definition that the content must satisfy
}

type itemState struct {
	Context string            `json:"context"`
	Type    events.ItemType   `json:"type"`
	Status  events.ItemStatus `json:"status"`
	Index   int64             `json:"index"`
	Calls   []string          `json:"calls,omitempty"` // calls that belong to this message
	Depth   int32             `json:"depth,omitzero"`
	Deleted bool              `json:"deleted,omitzero"`

	Assistant bool `json:"assistant,omitzero"` // the author is an assistant
	System    bool `json:"system,omitzero"`    // the author is the system or the developer
	Silent    bool `json:"silent,omitzero"`
	Failed    bool `json:"failed,omitzero"` // it is shown as failed
	PartOf    bool `json:"partOf,omitzero"` // it is a call that belongs to a message
}

// shows reports whether the item exists and is a message of its own.
func (i itemState) shows() bool { return !i.Deleted && events.ShowsAlone(i.Type, i.PartOf) }

type executionState struct {
	Context  string                 `json:"context"`
	Trigger  string                 `json:"trigger,omitzero"`
	Reaction string                 `json:"reaction"`
	Status   events.ExecutionStatus `json:"status"`
	Steps    int64                  `json:"steps,omitzero"` // the next iteration
	Finished bool                   `json:"finished,omitzero"`
	Run      *runState              `json:"run,omitzero"`      // nil: Skein does not run it
	Stumbled bool                   `json:"stumbled,omitzero"` // one of its steps failed
	Session  string                 `json:"session,omitzero"`  // of the request that it answers
}

type stepState struct {
	Execution string            `json:"execution"`
	Status    events.StepStatus `json:"status"`
	Parts     partSet           `json:"parts,omitzero"`
}

// partSet is the set of a step's part indexes: the first N, and More, sorted. It is immutable:
// with returns a new one.
type partSet struct {
	N    int64   `json:"first,omitzero"`
	More []int64 `json:"more,omitempty"`
}

func (p partSet) has(idx int64) bool {
	if idx < p.N {
		return true
	}
	_, has := slices.BinarySearch(p.More, idx)
	return has
}

func (p partSet) with(idx int64) partSet {
	switch {
	case p.has(idx):
		return p
	case idx > p.N:
		i, _ := slices.BinarySearch(p.More, idx)
		return partSet{N: p.N, More: slices.Insert(slices.Clip(p.More), i, idx)}
	}
	p.N++
	for len(p.More) > 0 && p.More[0] == p.N {
		p.N++
		p.More = p.More[1:]
	}
	return p
}

// Existed reports whether the thread was ever created. A deleted thread existed, even if a purge
// has erased its history. No thread is ever created with its id.
func (s *State) Existed() bool { return s.Version > 0 }

// Exists reports whether the thread was created and not deleted.
func (s *State) Exists() bool { return s.Existed() && !s.Deleted }

// Receipt returns the sequence of the commit that executed the command with that id within the
// last 24 hours of the thread's time.
func (s *State) Receipt(commandID string) (seq uint64, ok bool) { return s.receipts.find(commandID) }

// Executed is Receipt for a command that has just arrived. The error refuses a command that
// differs from the executed one with the same id.
func (s *State) Executed(c *Command) (seq uint64, ok bool, err error) {
	if seq, ok = s.Receipt(c.ID); !ok {
		return 0, false, nil
	}
	if first := s.receipts.digest(c.ID, seq); first != "" && c.Digest != "" && first != c.Digest {
		return 0, false, events.ReusedID(cmp.Or(c.Repeat, c.ID))
	}
	return seq, true, nil
}

// ContextID returns the thread's default context.
func (s *State) ContextID() string { return s.Default }

// layer returns an empty state over s. Changes to it do not reach s until merge.
func (s *State) layer() *State { return &State{head: s.head, parent: s} }

// merge applies the layer's changes.
func (s *State) merge(l *State) {
	s.head = l.head
	for id, v := range l.contexts {
		s.setContext(id, v)
	}
	for id, v := range l.items.All(l.pool) {
		s.setItem(id, v)
	}
	for id, v := range l.executions.All(l.pool) {
		s.setExecution(id, v)
	}
	for id, v := range l.steps.All(l.pool) {
		s.setStep(id, v)
	}
	for path, v := range l.files {
		s.setFile(path, v)
	}
	for id, v := range l.effects {
		s.setEffect(id, v)
	}
	for id, v := range l.relations {
		s.setRelation(id, v)
	}
	for id, v := range l.definitions {
		s.setDefinition(id, v)
	}
}

func (s *State) context(id string) (contextState, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.contexts[id]; ok {
			return v, true
		}
	}
	return contextState{}, false
}

// contextByKey returns the context that has a key. A closed context no longer has its key. Keys
// are unique among all other contexts, so map order has no effect.
func (s *State) contextByKey(key string) (string, bool) {
	for l := s; l != nil; l = l.parent {
		for id, v := range l.contexts {
			if v.Key != key {
				continue
			}
			if now, _ := s.context(id); now.Status != events.ContextClosed {
				return id, true
			}
		}
	}
	return "", false
}

func (s *State) item(id string) (itemState, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.items.Get(s.pool, id); ok {
			return v, true
		}
	}
	return itemState{}, false
}

func (s *State) execution(id string) (executionState, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.executions.Get(s.pool, id); ok {
			return v, true
		}
	}
	return executionState{}, false
}

func (s *State) step(id string) (stepState, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.steps.Get(s.pool, id); ok {
			return v, true
		}
	}
	return stepState{}, false
}

// executing returns the current executions, in a fixed order. They are not packed.
func (s *State) executing() []string {
	var ids []string
	for l := s; l != nil; l = l.parent {
		for id := range l.executions.Open() {
			if x, _ := s.execution(id); x.Status == events.Executing && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// running returns the current steps of an execution, in a fixed order. They are not packed.
func (s *State) running(execution string) []string {
	var ids []string
	for l := s; l != nil; l = l.parent {
		for id := range l.steps.Open() {
			if t, _ := s.step(id); t.Execution == execution && t.Status == events.StepRunning && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

func (s *State) setContext(id string, v contextState) {
	if s.contexts == nil {
		s.contexts = map[string]contextState{}
	}
	set(s, s.contexts, id, v)
}

func (s *State) setItem(id string, v itemState) { s.items.Set(s.packing(), id, v) }

func (s *State) setExecution(id string, v executionState) { s.executions.Set(s.packing(), id, v) }

func (s *State) setStep(id string, v stepState) { s.steps.Set(s.packing(), id, v) }

// packing returns the pool for packed entities. It returns nil for a layer, which is not packed
// because it is small, read often, and thrown away.
func (s *State) packing() *pool {
	if s.pool == nil && s.parent == nil {
		s.pool = &pool{}
	}
	return s.pool
}

// set sets an entry of a map of the state, and counts its size.
func set[V interface{ size() int64 }](s *State, m map[string]V, id string, v V) {
	if old, had := m[id]; had {
		s.bytes -= old.size()
	} else {
		s.bytes += compact.TextSize(id)
	}
	s.bytes += v.size()
	m[id] = v
}

// unset removes an entry.
func unset[V interface{ size() int64 }](s *State, m map[string]V, id string) {
	if old, had := m[id]; had {
		s.bytes -= compact.TextSize(id) + old.size()
		delete(m, id)
	}
}
