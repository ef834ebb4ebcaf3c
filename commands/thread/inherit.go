package thread

import (
	"math"
	"slices"

	"github.com/skein-threads/skein/events"
)

// pending is a history that a thread has inherited and whose items are not in the state yet,
// because they are in pages. The state takes events meanwhile, but no decision: what events do
// to these items is kept until Inherit.
type pending struct {
	Tenant  string                  `json:"tenant"`
	Thread  string                  `json:"thread"`
	History events.HistoryInherited `json:"history"`
	Edits   []inheritedEdit         `json:"edits,omitempty"`
	Cut     *int64                  `json:"cut,omitzero"` // the first place that is hidden; nil: none is
}

// inheritedEdit is what an event does to one inherited item.
type inheritedEdit struct {
	Item    string `json:"item"`
	Silent  *bool  `json:"silent,omitzero"`
	Failed  *bool  `json:"failed,omitzero"`
	Deleted bool   `json:"deleted,omitzero"`
}

// has reports whether an item is among those that are not in the state yet, and not hidden.
func (p *pending) has(item string) bool {
	if p == nil {
		return false
	}
	at, ok := events.InheritedPlace(p.Tenant, p.Thread, item)
	hidden := p.Cut != nil && at >= *p.Cut || slices.ContainsFunc(p.Edits, func(e inheritedEdit) bool { return e.Deleted && e.Item == item })
	return ok && at < p.History.NextIndex && !hidden
}

// Inherits returns the history that the thread has inherited and that must be given to Inherit
// before anything is decided; nil if there is none.
func (s *State) Inherits() *events.HistoryInherited {
	if s.Pending == nil {
		return nil
	}
	return &s.Pending.History
}

// postpone keeps what an event does to items that are not in the state yet.
func (s *State) postpone(e *events.Event) {
	if s.Pending == nil {
		return
	}
	p := *s.Pending
	edit := inheritedEdit{Item: e.Subject}
	switch d := e.Data.(type) {
	case events.MessageEdited:
		edit.Silent, edit.Failed = d.Silent, d.Failed
	case events.MessageDeleted:
		edit.Deleted = true
	case events.HistoryTruncated:
		if p.Cut == nil || d.FromIndex < *p.Cut {
			p.Cut = &d.FromIndex
			s.Pending = &p
		}
		return
	default:
		return
	}
	if p.has(e.Subject) {
		p.Edits = append(slices.Clip(p.Edits), edit)
		s.Pending = &p
	}
}

// Inherit adds the items of all pages of an inherited history, and what events have done to
// them since.
func (s *State) Inherit(pages ...*events.HistoryPage) {
	p := s.Pending
	if p == nil {
		return
	}
	s.Pending = nil
	calls := map[string][]string{}
	for _, page := range pages {
		for n := range page.Items {
			d := page.Items[n].Created(p.Tenant, p.Thread, p.History.ContextID)
			s.setItem(d.ID, itemState{
				Context: d.ContextID, Type: d.Type, Status: d.Status, Index: d.Index, Assistant: d.Role == events.Assistant, Silent: d.Silent,
				Depth: int32(min(d.Depth, math.MaxInt32)), PartOf: d.CallOf != nil, Deleted: p.Cut != nil && d.Index >= *p.Cut,
			})
			if d.CallOf != nil {
				calls[d.ParentItemID] = append(calls[d.ParentItemID], d.ID)
			}
		}
	}
	for id, of := range calls {
		if message, ok := s.item(id); ok {
			message.Calls = of
			s.setItem(id, message)
		}
	}
	for _, edit := range p.Edits {
		i, ok := s.item(edit.Item)
		if !ok {
			continue
		}
		if edit.Silent != nil {
			i.Silent = *edit.Silent
		}
		if edit.Failed != nil {
			i.Failed = *edit.Failed
		}
		i.Deleted = i.Deleted || edit.Deleted
		s.setItem(edit.Item, i)
	}
}
