package thread

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

// another is a thread with its default context, by an id.
func another(t testing.TB, id string) *story {
	k := newStory(t)
	k.thread = id
	k.do(events.CreateThread{})
	return k
}

// grouped decides a command on the states of several threads, and stores what it made on each.
func grouped(t testing.TB, c *Command, stories ...*story) ([]events.Event, error) {
	t.Helper()
	states, byID := map[string]*State{}, map[string]*story{}
	for _, k := range stories {
		states[k.thread], byID[k.thread] = k.state, k
	}
	for _, id := range states[c.ThreadID].Others(c) {
		if states[id] == nil { // it does not exist
			k := newStory(t)
			k.thread = id
			states[id], byID[id] = k.state, k
		}
	}
	g := NewGroup(states)
	if err := g.Do(c); err != nil {
		if len(g.Threads()) > 0 {
			t.Fatalf("a refused command made events of %v", g.Threads())
		}
		return nil, err
	}
	var made []events.Event
	for _, id := range g.Threads() {
		made = append(made, g.Draft(id).Events()...)
		byID[id].store(g.Draft(id))
	}
	return made, nil
}

// group is grouped on this thread and on those that the command names, all of which exist but for one that it creates.
func (k *story) group(c *Command) []events.Event {
	k.t.Helper()
	stories := []*story{k}
	if _, fork := c.Parts[0].Data.(events.ForkThread); fork {
		c.Copied = &Copied{
			Items: []events.InheritedItem{{ID: "itm_1", Type: events.Message, Role: events.User, Content: raw(`[]`)}}, Point: to(int64(0)),
			Files: []any{events.DirectoryCreated{Path: "/d"}, events.FileWritten{Path: "/d/f", MimeType: "text/plain", External: "https://example.com"}},
		}
	} else if _, handoff := c.Parts[0].Data.(events.HandoffThread); !handoff {
		for _, id := range k.state.Others(c) {
			stories = append(stories, another(k.t, id))
		}
	}
	made, err := grouped(k.t, c, stories...)
	if err != nil {
		k.t.Fatalf("%T was refused: %v", c.Parts[0].Data, err)
	}
	return made
}
