package thread

import (
	"maps"
	"slices"
	"strconv"

	"github.com/skein-threads/skein/events"
)

// Groups reports whether a command may concern several threads. It is then decided on all of
// them together, by a Group.
func (c *Command) Groups() bool {
	if len(c.Parts) == 0 {
		return false
	}
	switch d := c.Parts[0].Data.(type) {
	case events.MentionThread, events.ForkThread, events.TruncateThread, events.HandoffThread:
		return true
	case events.CreateThread:
		return d.MainThreadID != ""
	case events.ResolveThread:
		return d.MainThreadID != ""
	case ReactStep:
		return d.HandoffTo != ""
	}
	return false
}

// Others returns the other threads that a command on s concerns.
func (s *State) Others(c *Command) []string {
	switch d := c.Parts[0].Data.(type) {
	case events.MentionThread:
		return []string{d.MentionedID}
	case events.ForkThread:
		return []string{ForkOf(c)}
	case events.HandoffThread:
		return []string{HandoffOf(c)}
	case ReactStep:
		return []string{d.HandoffTo}
	case events.CreateThread:
		return []string{d.MainThreadID}
	case events.ResolveThread:
		if !s.Exists() {
			return []string{d.MainThreadID}
		}
	case events.TruncateThread:
		_, cut, err := s.cut(d)
		if err != nil {
			return nil
		}
		ids := make([]string, len(cut))
		for i := range cut {
			ids[i] = cut[i].thread
		}
		return ids
	}
	return nil
}

// Group decides one command on the states of several threads, and changes none of them. Its
// events take effect on all threads or on none.
type Group struct {
	states map[string]*State
	drafts map[string]*Draft
}

// NewGroup returns a group over states, by the ids of their threads. While it is in use, they
// must not change.
func NewGroup(states map[string]*State) *Group { return &Group{states: states} }

// Do decides a command. The command's thread and its Others must be in the group. Each thread gets
// its own events, all with the command's id. A refused command leaves no events.
func (g *Group) Do(c *Command) error {
	g.drafts = nil
	own := g.states[c.ThreadID]
	if err := atVersion(own, c); err != nil {
		return err
	}
	if err := own.admits(c, max(c.Time, own.Time+1)); err != nil {
		return err
	}
	deciders := make(map[string]*decider, len(g.states))
	for id, s := range g.states {
		part := *c
		part.ThreadID = id
		if id != c.ThreadID && c.Digest != "" { // a command with this id on another thread is a different command
			part.Digest = events.CommandDigest("of "+c.ThreadID, events.JSON(strconv.Quote(c.Digest)))
		}
		deciders[id] = newDecider(s.layer(), &part)
		deciders[id].group = deciders
	}
	if err := deciders[c.ThreadID].decideParts(); err != nil {
		return err
	}
	g.drafts = map[string]*Draft{}
	for _, id := range slices.Sorted(maps.Keys(deciders)) { // sorted, so that a refusal always comes from the same thread
		if m := deciders[id]; len(m.made) > 0 {
			if id != c.ThreadID {
				m.command.Writer = "" // the writer's token is valid for the command's own thread only
			}
			if err := g.states[id].admits(m.command, m.at); err != nil && m.made[0].Type != events.SubthreadAddedType {
				g.drafts = nil
				return err
			}
			g.drafts[id] = &Draft{base: g.states[id], layer: m.state, events: m.made}
		}
	}
	return nil
}

// Threads returns the threads that have events, in order.
func (g *Group) Threads() []string { return slices.Sorted(maps.Keys(g.drafts)) }

// Draft returns the draft of a thread that has events.
func (g *Group) Draft(id string) *Draft { return g.drafts[id] }
