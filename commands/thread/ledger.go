package thread

import (
	"errors"
	"fmt"

	"github.com/skein-threads/skein/events"
)

// Ledger checks the commits of one aggregate, in the log's order, against the preconditions of
// their events: each event must be one that could follow those before it. It does no I/O. The
// zero value is ready to use.
//
// It keeps the aggregate's state, and little else.
type Ledger struct {
	state  *State
	holder string       // of a key, on the key's aggregate
	ties   map[tie]bool // relationships that were added and not removed

	origin *events.ThreadCreated // nil: it did not see the beginning
	taken  *events.NewItem       // the message that has left the queue in this command, and is not an item yet
}

// State returns the state after the commits. The caller must not change it.
func (l *Ledger) State() *State {
	if l.state == nil {
		l.state = &State{}
	}
	return l.state
}

// Commit checks the next commit and calls fault for each event that could not follow. It then
// applies the event all the same, as every reader does.
func (l *Ledger) Commit(c *events.Commit, fault func(*events.Event, error)) {
	l.State()
	done := map[string]bool{}
	n := 0 // index of the event in its command
	var before *events.Event
	for i := range c.Events {
		e := &c.Events[i]
		if before == nil || before.CommandID != e.CommandID {
			before, n, l.taken = nil, 0, nil
			if _, known := l.state.Receipt(e.CommandID); known || done[e.CommandID] {
				fault(e, fmt.Errorf("command %.80q was done before", e.CommandID))
			}
			done[e.CommandID] = true
		}
		if err := firstFault(envelope(e, before, n), preconditions{l, before}.check(e)); err != nil {
			fault(e, err)
		}
		l.evolve(e)
		before = e
		n++
	}
	last := &c.Events[len(c.Events)-1]
	if err := l.whole(c); err != nil {
		fault(last, err)
	}
	l.state.stored(c)
}

// envelope checks the attributes of an event that depend on its command. e is the n-th event of
// its command; before is the previous event.
func envelope(e, before *events.Event, n int) error {
	if e.CommandID == "" {
		return errors.New("it has no command id")
	}
	if id := events.EventID(e.Tenant, e.ThreadID, e.CommandID, n); e.ID != id {
		return fmt.Errorf("its id is not that of event %d of its command, %s", n, id)
	}
	if before == nil {
		return nil
	}
	return firstFault(
		unless(e.CommandDigest == "", "it has its command's digest, and is not the first event"),
		unless(e.Time == before.Time, "its time is not that of its command"),
		unless(e.Actor == before.Actor && e.Causation == before.Causation && e.TraceParent == before.TraceParent, "its actor, cause or trace is not that of its command"),
		unless(e.CommandIndex >= before.CommandIndex && (e.CommandIndex == 0) == (before.CommandIndex == 0), "its place in the command's list is %d after %d", e.CommandIndex, before.CommandIndex),
	)
}

// evolve applies an event to the ledger.
func (l *Ledger) evolve(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ThreadCreated:
		l.origin = &d
	case events.QueueDrained:
		l.taken = l.leaving(e, d)
	case events.ItemCreated:
		l.taken = nil
	case events.KeyClaimed:
		if !events.IsThread(e.ThreadID) {
			l.holder = d.ThreadID
		}
	case events.KeyReleased:
		l.holder = ""
	case events.RelationshipAdded:
		if l.ties == nil {
			l.ties = map[tie]bool{}
		}
		l.ties[tie{d.ThreadID, d.Type, d.Role}] = true
	case events.RelationshipRemoved:
		delete(l.ties, tie{d.ThreadID, d.Type, d.Role})
	}
	Evolve(l.state, e)
}

// whole checks the conditions that span the events of a commit.
func (l *Ledger) whole(c *events.Commit) error {
	created, claimed, released := false, false, false
	for i := range c.Events {
		switch d := c.Events[i].Data.(type) {
		case events.ThreadCreated:
			created = true
		case events.KeyClaimed:
			claimed = true
		case events.KeyReleased:
			released = events.IsThread(c.Events[i].ThreadID)
		case events.DefinitionChanged:
			if err := l.defined(d); err != nil {
				return err
			}
		}
	}
	return firstFault(
		unless(!created || l.state.Deleted || l.state.Default != "", "a thread is created with its default context"),
		unless(!created || l.state.Key == "" || claimed, "a thread claims its key when it is created"),
		unless(!released || l.state.Deleted, "a thread releases its key only when it is deleted"),
	)
}

// defined checks that the references of a definition exist, and that no definition refers to a
// removed one.
func (l *Ledger) defined(d events.DefinitionChanged) error {
	ref := events.DefinitionRef{Kind: d.Kind, Name: d.Name}.ID()
	all := l.state.allDefinitions()
	for _, needs := range all[ref].Refs {
		if !all[needs].there() {
			return fmt.Errorf("%.80q refers to %.80q, which is not defined", ref, needs)
		}
	}
	if all[ref].there() {
		return nil
	}
	for user, def := range all {
		for _, needs := range def.Refs {
			if def.there() && needs == ref {
				return fmt.Errorf("%.80q was removed, but %.80q still refers to it", ref, user)
			}
		}
	}
	return nil
}
