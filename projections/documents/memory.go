package documents

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/skein-threads/skein/events"
)

// Until bounds a fold. A field that is 0 sets no bound.
type Until struct {
	Version int64       // the last event of a thread to fold
	Time    events.Time // later events are left out
	Seq     uint64      // later commits are left out
}

// cut returns the part of a commit within the bound: nil if there is none.
func (u Until) cut(c *events.Commit) *events.Commit {
	if u.Seq != 0 && c.Seq > u.Seq {
		return nil
	}
	n := len(c.Events)
	for n > 0 && (u.Version != 0 && c.Events[n-1].Version > u.Version || u.Time != 0 && c.Events[n-1].Time > u.Time) {
		n--
	}
	if n == 0 || n == len(c.Events) {
		return whole(c, n)
	}
	part := *c
	part.Events, part.Version = c.Events[:n], c.Events[n-1].Version
	return &part
}

func whole(c *events.Commit, n int) *events.Commit {
	if n == 0 {
		return nil
	}
	return c
}

// Memory holds the documents of one thread, or a few, in memory.
type Memory struct {
	Version int64  // of the last event folded
	Seq     uint64 // of its commit
	Broken  int    // commits that cannot be decoded, and were skipped

	models  *Models
	pages   Pages
	slots   map[Place]*Slot
	changed []*Slot
}

// NewMemory returns a store without documents. It reads pages to fold what happens to items that
// a thread has inherited; nil: such a thread is an error.
func (m *Models) NewMemory(pages Pages) *Memory {
	return &Memory{models: m, pages: pages, slots: map[Place]*Slot{}}
}

// Slot implements Store.
func (s *Memory) Slot(p Place) *Slot {
	slot, ok := s.slots[p]
	if !ok {
		slot = &Slot{Place: p}
		s.slots[p] = slot
	}
	return slot
}

// Apply folds the next commit of a thread. The error is that of a page that cannot be read;
// nothing was folded then.
func (s *Memory) Apply(c *events.Commit) error {
	if _, err := s.Prepare(c); err != nil {
		return err
	}
	out := s.models.Apply(c, s, AllKinds, s.changed)
	s.changed = out.Changed
	s.Version, s.Seq = c.Version, c.Seq
	if out.Deleted != nil {
		name := ThreadName(c.Tenant, c.Thread)
		for p := range s.slots {
			if p.Thread == name {
				delete(s.slots, p)
			}
		}
	}
	return nil
}

// Prepare adds the documents of inherited items that folding a commit needs, and returns them.
func (s *Memory) Prepare(c *events.Commit) (added []*Slot, err error) {
	for {
		var wanted []Place
		s.models.Needs(c, AllKinds, s.Get, func(need Need) {
			if !need.Made && need.Place.derivable() && s.slots[need.Place] == nil {
				wanted = append(wanted, need.Place)
			}
		})
		if len(wanted) == 0 {
			return added, nil
		}
		for _, p := range wanted {
			doc, seq, err := Derive(p, s.lookup, s.pages)
			if err != nil {
				return nil, err
			}
			slot := s.Slot(p)
			slot.Doc, slot.Seq, slot.derived = doc, seq, doc != nil
			if slot.derived {
				added = append(added, slot)
			}
		}
		if !Deep(c) {
			return added, nil
		}
	}
}

// lookup is Get as Derive needs it.
func (s *Memory) lookup(p Place) (any, error) { return s.Get(p), nil }

// Get returns the document at a place, nil if there is none.
func (s *Memory) Get(p Place) any {
	if slot, ok := s.slots[p]; ok {
		return slot.Doc
	}
	return nil
}

// All returns the slots that have a document, but for those that nothing has changed since a
// thread has inherited them, of the read models in kinds, by kind and key.
func (s *Memory) All(kinds Mask) []*Slot {
	var all []*Slot
	for p, slot := range s.slots {
		if slot.Doc != nil && !slot.derived && kinds.Has(p.Kind) {
			all = append(all, slot)
		}
	}
	slices.SortFunc(all, func(a, b *Slot) int {
		return cmp.Or(cmp.Compare(a.Place.Kind, b.Place.Kind), cmp.Compare(a.Place.Thread, b.Place.Thread), cmp.Compare(a.Place.ID, b.Place.ID))
	})
	return all
}

// Fold is a fold of one thread's commits up to a bound. One that was interrupted can be continued.
type Fold struct {
	Memory *Memory
	Bytes  int64 // of the commits that were folded

	until Until
	done  bool // nothing that follows is within the bound
}

// NewFold returns a fold that has folded nothing.
func (m *Models) NewFold(until Until) *Fold { return &Fold{Memory: m.NewMemory(nil), until: until} }

// Continue folds the commits of the thread that follow Memory.Seq, in the order of the log. A commit
// that cannot be decoded is counted and skipped. Any other error, or that of a page, ends it: then
// Memory has all before that, and Continue may be called again.
func (f *Fold) Continue(commits iter.Seq2[*events.Commit, error], pages Pages) error {
	f.Memory.pages = pages
	if f.done {
		return nil
	}
	for c, err := range commits {
		var broken *events.BrokenError
		if errors.As(err, &broken) {
			f.Memory.Broken++
			continue
		}
		if err != nil {
			return err
		}
		part := f.until.cut(c)
		if f.done = part == nil; f.done {
			break
		}
		if err := f.Memory.Apply(part); err != nil {
			return err
		}
		f.Bytes += int64(len(c.Body))
		if f.done = f.Memory.Version == f.until.Version; f.done {
			break
		}
	}
	return nil
}

// Fold folds a thread's commits, in the order of the log, up to a bound. A commit that cannot
// be decoded is counted and skipped; any other error ends the fold.
func (m *Models) Fold(commits iter.Seq2[*events.Commit, error], until Until, pages Pages) (*Memory, error) {
	f := m.NewFold(until)
	if err := f.Continue(commits, pages); err != nil {
		return nil, err
	}
	return f.Memory, nil
}
