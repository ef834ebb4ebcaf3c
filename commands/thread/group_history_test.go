package thread

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/skein-threads/skein/events"
)

// family is a few threads with the relationships between them.
type family struct {
	t       *testing.T
	roll    dice
	stories map[string]*story
	ids     []string
	now     events.Time
	told    int
	refused int
	late    int // groups that were refused because a thread had changed since
	done    map[string]int
}

func newFamily(t *testing.T, roll dice) *family {
	f := &family{t: t, roll: roll, stories: map[string]*story{}, now: dawn, done: map[string]int{}}
	for i := range 2 + roll(2) {
		f.add("T-00000000-0000-7000-8000-" + strconv.Itoa(100000000000+i)).do(events.CreateThread{})
	}
	return f
}

func (f *family) add(id string) *story {
	if k := f.stories[id]; k != nil {
		return k
	}
	k := newStory(f.t)
	k.thread = id
	f.stories[id], f.ids = k, append(f.ids, id)
	return k
}

// command makes any command of any thread. One that is over several threads, and is added, needs
// a case here.
func (f *family) command() *Command {
	own := pick(f.roll, f.ids...)
	var data any
	at := to(int64(f.roll(3)))
	switch f.roll(12) {
	case 0, 1, 2:
		data = events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: raw(`[]`), Silent: f.roll(8) == 0}}
	case 3:
		data = events.DeleteMessage{ItemID: entity(f.roll, f.stories[own].state.items.All(f.stories[own].state.pool))}
	case 4:
		data = chance[any](f.roll, 4, events.DeleteThread{Purge: f.roll(2) == 0})
	case 5, 6, 7:
		data = events.MentionThread{MentionedID: pick(f.roll, f.ids...), MessageIndex: chance(f.roll, 2, at)}
	case 8, 9:
		data = events.ForkThread{MessageIndex: at}
	default:
		data = events.TruncateThread{MessageIndex: at, Interrupt: f.roll(2) == 0}
	}
	if data == nil {
		data = events.UpdateThread{Title: to("t" + strconv.Itoa(f.told))}
	}
	f.told++
	f.now += 1000
	return &Command{ID: "family-" + strconv.Itoa(f.told), Tenant: tenant, ThreadID: own, Time: f.now, Parts: []Part{{Name: nameOf(f.t, data), Data: data}}}
}

// decide decides a command on copies of the states, as a process does that has read them.
func (f *family) decide(c *Command) (*Group, map[string]*State, error) {
	own := f.stories[c.ThreadID].state
	states := map[string]*State{}
	for _, id := range append(own.Others(c), c.ThreadID) {
		if k := f.stories[id]; k != nil {
			states[id] = mustDecode(f.t, encoded(f.t, k.state))
		} else {
			states[id] = &State{}
		}
	}
	if d, fork := c.Parts[0].Data.(events.ForkThread); fork {
		shown := own.messages()
		if int(*d.MessageIndex) >= len(shown) {
			return nil, nil, events.Invalid("/messageIndex", "there is no such message")
		}
		c.Copied = &Copied{Point: d.MessageIndex, PointItem: shown[*d.MessageIndex]}
		for i, id := range shown[:*d.MessageIndex+1] {
			c.Copied.Items = append(c.Copied.Items, events.InheritedItem{Index: int64(i), ID: id, Type: events.Message, Role: events.User, Content: raw(`[]`)})
		}
	}
	g := NewGroup(states)
	return g, states, g.Do(c)
}

// append stores what a group made, on all threads or, if one has changed since, on none.
func (f *family) append(c *Command, g *Group, states map[string]*State) bool {
	for _, id := range g.Threads() {
		if k := f.stories[id]; k != nil && k.state.Version != states[id].Version {
			return false
		}
	}
	for _, id := range g.Threads() {
		k := f.add(id)
		k.state = states[id]
		k.store(g.Draft(id))
		if _, done := k.state.Receipt(c.ID); !done {
			f.t.Fatalf("%s has no receipt of %s", id, c.ID)
		}
		for _, e := range g.Draft(id).Events() {
			cut, ok := e.Data.(events.HistoryTruncated)
			for _, r := range k.state.children() {
				if at, _ := k.state.item(r.item); ok && at.Index >= cut.FromIndex {
					f.t.Fatalf("%s was truncated at %d, and still has the child %s of item %d", id, cut.FromIndex, r.thread, at.Index)
				}
			}
		}
	}
	return true
}

// step runs a command. One over several threads may be decided while others are stored.
func (f *family) step(depth int) {
	c := f.command()
	if !c.Groups() {
		k := f.stories[c.ThreadID]
		if _, err := k.try(c); err != nil {
			f.refused++
		}
		return
	}
	for {
		g, states, err := f.decide(c)
		if err != nil {
			if g != nil && len(g.Threads()) > 0 {
				f.t.Fatalf("a refused command has events of %v", g.Threads())
			}
			f.refused++
			return
		}
		if depth == 0 && f.roll(3) == 0 {
			f.step(1)
		}
		if f.append(c, g, states) {
			if len(g.Threads()) > 0 {
				f.done[c.Parts[0].Name]++
			}
			return
		}
		f.late++
	}
}

// whole checks that each relationship between threads that are there is recorded by both.
func (f *family) whole() error {
	for _, id := range f.ids {
		s := f.stories[id].state
		parents := 0
		for _, r := range s.children() {
			parents++
			if other := f.stories[r.thread].state; s.Exists() && other.Exists() && !other.related(id, r.kind, events.ChildRole) {
				return errors.New("half a relationship: " + id + " is the parent of " + r.thread)
			}
		}
		if parents != s.Parents {
			return errors.New(id + " counts " + strconv.Itoa(s.Parents) + " children, and has " + strconv.Itoa(parents))
		}
		for other, k := range f.stories {
			for _, kind := range []events.RelationshipKind{events.ForkRelation, events.MentionRelation} {
				if s.Exists() && k.state.Exists() && s.related(other, kind, events.ChildRole) && !k.state.related(id, kind, events.ParentRole) {
					return errors.New("half a relationship: " + id + " is a child of " + other)
				}
			}
		}
	}
	return nil
}

// Random histories of forks, mentions, truncations and deletions, decided on states that others
// change meanwhile, leave no half relationship (AM-41, AM-45).
func TestGroup_RandomHistories(t *testing.T) {
	done, late, refused := map[string]int{}, 0, 0
	for seed := range uint64(400) {
		f := newFamily(t, rand.New(rand.NewPCG(seed, 41)).IntN)
		for n := range 30 {
			f.step(0)
			if err := f.whole(); err != nil {
				t.Fatalf("seed %d, after command %d: %v", seed, n, err)
			}
		}
		for name, n := range f.done {
			done[name] += n
		}
		late, refused = late+f.late, refused+f.refused
	}
	for _, name := range []string{"thread.fork", "thread.mention", "thread.truncate"} {
		if done[name] < 150 {
			t.Errorf("only %d of %s were done", done[name], name)
		}
	}
	if late < 100 {
		t.Errorf("only %d were decided on states that had changed", late)
	}
	t.Logf("%v done, %d decided again, %d refused", done, late, refused)
}
