package events

import (
	"errors"
	"fmt"
)

// ValidateTimeline checks a recorded stream of events, of one thread or of several mixed, and
// returns the first fault as a *TimelineError. Each thread must be complete from its first
// event.
func ValidateTimeline(list []Event) error {
	c := NewTimelineChecker()
	for i := range list {
		if err := c.Check(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// TimelineError is an event that does not fit the events before it in its thread. The cause is
// a *TransitionError if a state machine forbids the move.
type TimelineError struct {
	Tenant, Thread string
	Version        int64
	ID             string // of the event
	Type           Type
	Cause          error
}

func (e *TimelineError) Error() string {
	return fmt.Sprintf("%s, version %d of %s/%s (event %s): %v",
		clip(e.Type), e.Version, clip(e.Tenant), clip(e.Thread), clip(e.ID), e.Cause)
}

func (e *TimelineError) Unwrap() error { return e.Cause }

// TimelineChecker checks streams of events one event at a time: versions have no gap, times do
// not go back, what is created is new, what is referred to exists, and each change of state is
// from the current state to one that the machine allows. It checks nothing else. It is not
// safe for concurrent use.
//
// It keeps the ids and states of each thread's entities until Forget.
type TimelineChecker struct {
	thread    Machine[ThreadStatus]
	context   Machine[ContextStatus]
	item      Machine[ItemStatus]
	execution Machine[ExecutionStatus]
	step      Machine[StepStatus]

	threads map[aggregateName]*timeline
}

type aggregateName struct{ tenant, aggregate string }

// NewTimelineChecker returns a checker that has seen no events.
func NewTimelineChecker() *TimelineChecker {
	return &TimelineChecker{
		thread: ThreadMachine(), context: ContextMachine(), item: ItemMachine(), execution: ExecutionMachine(), step: StepMachine(),
		threads: map[aggregateName]*timeline{},
	}
}

// Forget drops the state of a thread. Its next event counts as its first.
func (c *TimelineChecker) Forget(tenant, thread string) {
	delete(c.threads, aggregateName{tenant, thread})
}

// Erased says that a purge erased what precedes the thread's next event: the next commit holds
// its tombstone, and names what was erased.
func (c *TimelineChecker) Erased(tenant, thread string) {
	t := newTimeline(IsThread(thread))
	t.purged = true
	c.threads[aggregateName{tenant, thread}] = t
}

// Unread says that the events before the thread's next one cannot be decoded, up to a version.
// What they created is unknown and no longer checked.
func (c *TimelineChecker) Unread(tenant, thread string, version int64) {
	t := newTimeline(IsThread(thread))
	t.unread, t.version = true, version
	c.threads[aggregateName{tenant, thread}] = t
}

// Check checks the next event. After an error it continues with the state that the event
// claims, so that one fault is reported once. Transient events, such as chunk.emitted, have no
// place in the order and are ignored.
func (c *TimelineChecker) Check(e *Event) error {
	r, known := rows[e.Type]
	if known && r.Transient {
		return nil
	}
	name := aggregateName{e.Tenant, e.ThreadID}
	t := c.threads[name]
	if t == nil {
		t = newTimeline(IsThread(e.ThreadID))
		c.threads[name] = t
	}
	// Both run, whatever the first returns: what the event says is recorded in any case.
	place, content := t.place(e), c.content(t, e)
	if place == nil {
		place = content
	}
	if place == nil {
		return nil
	}
	return &TimelineError{Tenant: e.Tenant, Thread: e.ThreadID, Version: e.Version, ID: e.ID, Type: e.Type, Cause: place}
}

// timeline is the state of a checker for one thread.
type timeline struct {
	isThread bool // and not a key's claim or the tenant
	version  int64
	time     Time
	deleted  bool
	purged   bool // what preceded its tombstone was erased
	unread   bool // some earlier event cannot be decoded

	threads    states[ThreadStatus] // only this one
	contexts   states[ContextStatus]
	items      states[ItemStatus]
	executions states[ExecutionStatus]
	steps      states[StepStatus]
	stepOf     map[string]string // a step's execution
	parts      map[string]bool
	finished   map[string]bool // by execution
	inherited  int64           // the first place that is not inherited

	definitions map[string]definitionVersion // of the tenant, by kind and name
}

func newTimeline(isThread bool) *timeline {
	return &timeline{
		isThread: isThread,
		threads:  states[ThreadStatus]{}, contexts: states[ContextStatus]{}, items: states[ItemStatus]{},
		executions: states[ExecutionStatus]{}, steps: states[StepStatus]{},
		stepOf: map[string]string{}, parts: map[string]bool{}, finished: map[string]bool{},
		definitions: map[string]definitionVersion{},
	}
}

// place checks the event's version and time.
func (t *timeline) place(e *Event) error {
	version, at, deleted := t.version, t.time, t.deleted
	t.version, t.time = e.Version, e.Time
	if version == 0 && e.Version > 1 && t.isThread {
		// A purge leaves the commit with the tombstone.
		t.purged = t.purged || e.Type == KeyReleasedType || e.Type == LifecycleDeletedType
		version = e.Version - 1
		if !t.purged {
			return fmt.Errorf("the thread's first event has version %d", e.Version)
		}
	}
	switch {
	case e.Version != version+1:
		return fmt.Errorf("it follows version %d", version)
	case e.Time < at:
		return fmt.Errorf("its time, %s, is before that of the previous event, %s", e.Time, at)
	case deleted:
		return errors.New("the thread was deleted before it")
	case t.isThread && version == 0 && e.Type != ThreadCreatedType:
		return fmt.Errorf("a thread begins with %s", ThreadCreatedType)
	}
	return nil
}

// states holds the states of the entities of one kind, by id.
type states[S ~string] map[string]S

// need returns an error unless an entity exists.
func (s states[S]) need(entity, id string) error {
	if _, ok := s[id]; !ok {
		return fmt.Errorf("%s %q is not in the thread", entity, clip(id))
	}
	return nil
}

// make records a new entity. Initial lists the states that it may start in.
func (s states[S]) make(entity, id, subject string, state S, initial ...S) error {
	_, twice := s[id]
	s[id] = state
	switch {
	case twice:
		return fmt.Errorf("%s %q is created twice", entity, clip(id))
	case id == "" || id != subject:
		return fmt.Errorf("%s %q is created by an event about %q", entity, clip(id), clip(subject))
	}
	for _, may := range initial {
		if state == may {
			return nil
		}
	}
	return fmt.Errorf("%s %q begins as %q", entity, clip(id), clip(state))
}

// move records a change of state.
func (s states[S]) move(m Machine[S], id string, from, to S) error {
	was, ok := s[id]
	s[id] = to
	switch {
	case !ok:
		return fmt.Errorf("%s %q is not in the thread", m.Entity, clip(id))
	case was != from:
		return fmt.Errorf("%s %q is %s, not %q", m.Entity, clip(id), was, clip(from))
	}
	return m.Check(id, from, to)
}
