package thread

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// takes stores events as the next commit, and returns the faults that the story's ledger
// finds.
func (k *story) takes(made ...events.Event) (faults []string) {
	k.t.Helper()
	for i := range made {
		e := &made[i]
		e.ThreadID, e.Tenant, e.Version = k.thread, tenant, k.ledger.State().Version+int64(i)+1
		if e.Time == 0 {
			e.Time = k.now + 1000
		}
		if e.Subject == "" {
			e.Subject = k.thread
		}
		n := 0
		for _, before := range slices.Backward(made[:i]) {
			if before.CommandID != e.CommandID {
				break
			}
			n++
		}
		e.ID = events.EventID(tenant, k.thread, e.CommandID, n)
	}
	c, err := events.NewCommit(k.ledger.State().Chain, made)
	if err != nil {
		k.t.Fatal(err)
	}
	k.seq++
	c.Seq = k.seq
	k.ledger.Commit(c, func(e *events.Event, err error) { faults = append(faults, string(e.Type)+": "+err.Error()) })
	if s := k.ledger.State(); s.Version != c.Version || s.Seq != c.Seq || s.Chain != c.Chain {
		k.t.Errorf("the ledger stands at version %d, commit %d", s.Version, s.Seq)
	}
	return faults
}

func wantFaults(t *testing.T, got []string, says ...string) {
	t.Helper()
	if len(got) != len(says) {
		t.Fatalf("faults %q, want %q", got, says)
	}
	for i := range got {
		if !strings.Contains(got[i], says[i]) {
			t.Errorf("fault %q, want %q", got[i], says[i])
		}
	}
}

// A skill is loaded once, and a relationship is added once until it is removed; the
// ledger remembers both from commit to commit.
func TestLedger_SkillsAndRelationships(t *testing.T) {
	k := begun(t)
	n := 0
	one := func(typ events.Type, data any) []string {
		n++
		return k.takes(events.Event{Type: typ, CommandID: "c-" + strings.Repeat("x", n), Data: data})
	}
	wantFaults(t, one(events.SkillActivatedType, events.SkillActivated{Name: "refunds"}))
	wantFaults(t, one(events.SkillActivatedType, events.SkillActivated{Name: "orders"}))
	wantFaults(t, one(events.SkillActivatedType, events.SkillActivated{Name: "refunds"}), "is loaded twice")
	tied := events.RelationshipAdded{ThreadID: otherID, Type: "branch", Role: "parent"}
	gone := events.RelationshipRemoved{ThreadID: otherID, Type: "branch", Role: "parent"}
	wantFaults(t, one(events.RelationshipRemovedType, gone), "is not tied")
	wantFaults(t, one(events.RelationshipAddedType, tied))
	wantFaults(t, one(events.RelationshipAddedType, tied), "is tied to")
	other := tied
	other.Role = "child"
	wantFaults(t, one(events.RelationshipAddedType, other))
	wantFaults(t, one(events.RelationshipRemovedType, gone))
	wantFaults(t, one(events.RelationshipAddedType, tied))
	for says, change := range map[string]func(*events.RelationshipAdded){
		"cannot be tied":   func(d *events.RelationshipAdded) { d.ThreadID = threadID },
		"cannot be tied ":  func(d *events.RelationshipAdded) { d.ThreadID = "T-1" },
		"is not in":        func(d *events.RelationshipAdded) { d.ItemID = "itm_9" },
		"has no item at 1": func(d *events.RelationshipAdded) { d.MessageIndex = to(int64(1)) },
	} {
		d := events.RelationshipAdded{ThreadID: otherID, Type: "mention", Role: "parent"}
		change(&d)
		if got := held(k, forged{events.RelationshipAddedType, threadID, "", d, says}); got == nil || !contains(got, strings.TrimSpace(strings.TrimSuffix(says, " "))) {
			t.Errorf("%s: %v", says, got)
		}
	}
	last := events.RelationshipAdded{ThreadID: otherID, Type: "mention", Role: "parent", ItemID: "itm_user", MessageIndex: to(int64(0))}
	holdsBut(t, k, k.after(events.RelationshipAddedType, threadID, "exe_1", last), anotherSubject("its subject should be"), anotherCorrelation("not in the thread"))
}

// A ledger that continues from another's state does not change it, and knows what that state
// knows.
func TestLedger_LeavesItsStartStateUnchanged(t *testing.T) {
	k := begun(t)
	before := encoded(t, k.state)
	l := newLedger(k.state)
	e := k.after(events.ProfileChangedType, threadID, "", events.ProfileChanged{Policy: to(events.Steer)})
	c, err := events.NewCommit(k.state.Chain, []events.Event{e})
	if err != nil {
		t.Fatal(err)
	}
	l.Commit(c, func(_ *events.Event, err error) { t.Error(err) })
	if l.State().Policy != events.Steer || l.State().Version != k.state.Version+1 {
		t.Errorf("the ledger's state is %+v", l.State().head)
	}
	if string(before) != string(encoded(t, k.state)) {
		t.Error("the state has changed")
	}
}

// Commands of one commit are told apart by their ids; one that comes back after
// another was done before, and so is one that a commit before held.
func TestLedger_CommandsOfOneCommit(t *testing.T) {
	k := begun(t)
	e := func(command string) events.Event {
		return events.Event{Type: events.ProfileChangedType, CommandID: command, Data: events.ProfileChanged{Title: to("x")}}
	}
	wantFaults(t, k.takes(e("a"), e("a"), e("b")))
	wantFaults(t, k.takes(e("c"), e("d"), e("c")), "command \"c\" was done before")
	wantFaults(t, k.takes(e("e"), e("b")), "command \"b\" was done before")
	wantFaults(t, k.takes(e("f"), e("f")))
}

// All events of a command have its time, its actor, its cause and its trace; those
// of the next command have their own.
func TestLedger_Envelope(t *testing.T) {
	base := func() []events.Event {
		list := make([]events.Event, 3)
		for i := range list {
			list[i] = events.Event{
				Type: events.ProfileChangedType, CommandID: "a", CommandIndex: 1 + i/2, Time: dawn + day, Actor: "user:ada", Causation: "cause", TraceParent: "trace",
				Data: events.ProfileChanged{Title: to("x")},
			}
		}
		return list
	}
	wantFaults(t, begun(t).takes(base()...))
	for name, change := range map[string]func(*events.Event){
		"its time":  func(e *events.Event) { e.Time++ },
		"its actor": func(e *events.Event) { e.Actor = "user:eve" },
		"cause":     func(e *events.Event) { e.Causation = "" },
		"trace":     func(e *events.Event) { e.TraceParent = "" },
		"its place": func(e *events.Event) { e.CommandIndex = 0 },
		"its place in the command's list is 1 after 2": func(e *events.Event) { e.CommandIndex = 1 },
	} {
		list := base()
		list[1].CommandIndex = 2
		change(&list[2])
		wantFaults(t, begun(t).takes(list...), name)
	}
	list := base()
	list[2] = events.Event{Type: events.ProfileChangedType, CommandID: "b", Time: dawn + day + 1, Data: list[2].Data}
	wantFaults(t, begun(t).takes(list...))
}

// A ledger goes on from what it found at fault, and says nothing of what it does not
// know.
func TestLedger_UnknownEvents(t *testing.T) {
	k := begun(t)
	wantFaults(t, k.takes(events.Event{Type: "thread.sung", CommandID: "a", Data: events.Unknown{}}))
	wantFaults(t, k.takes(events.Event{Type: events.ThreadStatusChangedType, CommandID: "b", Data: events.ThreadStatusChanged{From: events.ThreadFailed, To: events.ThreadOpen}}), "the thread is open")
	wantFaults(t, k.takes(events.Event{Type: events.ProfileChangedType, Data: events.ProfileChanged{Title: to("x")}}), "no command id")
}

// After its end a thread has no events, and none comes before its beginning.
func TestLedger_EventsOutsideTheThreadsLife(t *testing.T) {
	k := newStory(t)
	profile := events.Event{Type: events.ProfileChangedType, CommandID: "a", Data: events.ProfileChanged{Title: to("x")}}
	wantFaults(t, k.takes(profile), "does not exist")
	k = newStory(t)
	k.do(events.CreateThread{})
	k.do(events.DeleteThread{})
	wantFaults(t, k.takes(profile), "does not exist")
}

// newLedger returns one that goes on from a state, which it leaves as it is.
func newLedger(s *State) *Ledger {
	l := &Ledger{state: s.layer(), ties: map[tie]bool{}}
	for id := range s.relations {
		part := strings.Split(id, " ")
		l.ties[tie{part[0], events.RelationshipKind(part[1]), events.RelationshipRole(part[2])}] = true
	}
	return l
}

// holds checks what a decision made of a state: nil if every event of it could
// follow. The state is left as it is.
func holds(s *State, made []events.Event) error {
	l := newLedger(s)
	var before *events.Event
	n := 0
	for i := range made {
		e := &made[i]
		if before == nil || before.CommandID != e.CommandID {
			before, n = nil, 0
		}
		if err := firstFault(envelope(e, before, n), preconditions{l, before}.check(e)); err != nil {
			return fmt.Errorf("event %s, version %d: %w", e.Type, e.Version, err)
		}
		l.evolve(e)
		before = e
		n++
	}
	if len(made) == 0 {
		return nil
	}
	return l.whole(&events.Commit{Events: made})
}
