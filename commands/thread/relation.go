package thread

import (
	"cmp"
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
)

// relationState is a relationship to another thread.
type relationState struct {
	// Item is the parent's message at which the relationship was made. It is empty on the child,
	// and if the parent had no message.
	Item string `json:"item,omitzero"`

	gone bool // in a draft's layer: it was removed
}

func (r relationState) size() int64 { return compact.TextSize(r.Item) }

// relationID returns the key of a relationship in State.relations.
func relationID(thread string, kind events.RelationshipKind, role events.RelationshipRole) string {
	return thread + " " + string(kind) + " " + string(role)
}

// relation is a relationship with its key.
type relation struct {
	thread string
	kind   events.RelationshipKind
	role   events.RelationshipRole
	item   string
}

// related reports whether the thread has a relationship.
func (s *State) related(thread string, kind events.RelationshipKind, role events.RelationshipRole) bool {
	for id := relationID(thread, kind, role); s != nil; s = s.parent {
		if v, ok := s.relations[id]; ok {
			return !v.gone
		}
	}
	return false
}

// children returns the relationships in which the thread is the parent, in a fixed order.
func (s *State) children() []relation {
	var list []relation
	seen := map[string]bool{}
	for l := s; l != nil; l = l.parent {
		for id, v := range l.relations {
			if seen[id] {
				continue
			}
			seen[id] = true
			part := strings.Split(id, " ")
			if r := (relation{part[0], events.RelationshipKind(part[1]), events.RelationshipRole(part[2]), v.Item}); r.role == events.ParentRole && !v.gone {
				list = append(list, r)
			}
		}
	}
	slices.SortFunc(list, func(a, b relation) int { return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.kind, b.kind)) })
	return list
}

// setRelation sets a relationship. A relationship with gone set is deleted; in a layer the entry
// is kept, to hide the entry of the state below.
func (s *State) setRelation(id string, v relationState) {
	if v.gone && s.parent == nil {
		unset(s, s.relations, id)
		return
	}
	if s.relations == nil {
		s.relations = map[string]relationState{}
	}
	set(s, s.relations, id, v)
}

// evolveRelation applies an event of a relationship.
func (s *State) evolveRelation(e *events.Event) {
	var role events.RelationshipRole
	change := 0
	switch d := e.Data.(type) {
	case events.RelationshipAdded:
		if role = d.Role; !s.related(d.ThreadID, d.Type, d.Role) {
			change = 1
		}
		v := relationState{}
		if role == events.ParentRole {
			v.Item = d.ItemID
		}
		s.setRelation(relationID(d.ThreadID, d.Type, d.Role), v)
	case events.RelationshipRemoved:
		if role = d.Role; s.related(d.ThreadID, d.Type, d.Role) {
			change = -1
		}
		s.setRelation(relationID(d.ThreadID, d.Type, d.Role), relationState{gone: true})
	}
	if role == events.ParentRole {
		s.Parents += change
	}
}

// inView reports whether the item is one of the messages that a messageIndex counts: shown as a
// message of its own, in the conversation itself, to people.
func (i itemState) inView() bool { return i.shows() && i.Depth == 0 && !i.Silent }

// everyItem calls yield with each item, in no order.
func (s *State) everyItem(yield func(id string, i itemState)) {
	for l := s; l != nil; l = l.parent {
	items:
		for id, i := range l.items.All(l.pool) {
			for over := s; over != l; over = over.parent {
				if _, hidden := over.items.Get(over.pool, id); hidden {
					continue items
				}
			}
			yield(id, i)
		}
	}
}

// messages returns the ids of the messages that a messageIndex counts, in order.
func (s *State) messages() []string {
	type at struct {
		index int64
		id    string
	}
	var list []at
	s.everyItem(func(id string, i itemState) {
		if i.inView() {
			list = append(list, at{i.Index, id})
		}
	})
	slices.SortFunc(list, func(a, b at) int { return cmp.Compare(a.index, b.index) })
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].id
	}
	return ids
}

// messageAt returns the message with an index, the last message if index is nil, and zero values
// if there is no message either.
func (s *State) messageAt(index *int64, path string) (*int64, string, error) {
	ids := s.messages()
	last := int64(len(ids)) - 1
	switch {
	case index == nil && last < 0:
		return nil, "", nil
	case index == nil:
		return &last, ids[last], nil
	case last < 0:
		return nil, "", events.Invalid(path, "the thread has no messages, and so none at %d", *index)
	case *index < 0 || *index > last:
		return nil, "", events.Invalid(path, "the thread has no message at %d; they are counted from 0 to %d", *index, last)
	}
	return index, ids[*index], nil
}

// mentionThread relates the thread to one that it refers to.
func (m *decider) mentionThread(d events.MentionThread) error {
	other, err := m.otherThread(d.MentionedID, "/mentionedId")
	if err != nil || m.state.related(d.MentionedID, events.MentionRelation, events.ParentRole) {
		return err
	}
	index, item, err := m.state.messageAt(d.MessageIndex, "/messageIndex")
	if err != nil {
		return err
	}
	return m.relate(other, events.MentionRelation, index, item, d.Comment)
}

// otherThread returns the decider of another thread. Both threads must exist.
func (m *decider) otherThread(id, path string) (*decider, error) {
	own := m.command.ThreadID
	if !m.state.Exists() {
		return nil, events.MissingThread(own)
	}
	if id == own {
		return nil, events.Invalid(path, "thread %s cannot be related to itself; name another thread", own)
	}
	other := m.group[id]
	if other == nil || !other.state.Exists() {
		return nil, events.MissingThread(id)
	}
	return other, nil
}

// relate records a relationship on both threads. This one is the parent.
func (m *decider) relate(child *decider, kind events.RelationshipKind, index *int64, item, comment string) error {
	own, other := m.command.ThreadID, child.command.ThreadID
	if m.state.Parents >= events.MaxRelationships {
		return m.tooManyChildren()
	}
	m.emit(events.RelationshipAddedType, own, "", events.RelationshipAdded{
		ThreadID: other, Type: kind, Role: events.ParentRole, MessageIndex: index, ItemID: item, Comment: comment,
	})
	child.emit(events.RelationshipAddedType, other, "", events.RelationshipAdded{
		ThreadID: own, Type: kind, Role: events.ChildRole, MessageIndex: index, Comment: comment,
	})
	return nil
}

func (m *decider) tooManyChildren() error {
	return events.Errorf(events.PayloadTooLarge,
		"thread %s is the parent in %d relationships, which is the limit; truncate it, or continue in a fork", m.command.ThreadID, m.state.Parents)
}
