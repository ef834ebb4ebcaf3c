package documents

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Projection is a read model as a declaration.
type Projection struct {
	Kind    Kind
	Name    string // recorded in the checkpoint; a new name is a new read model
	Version int    // of its fold; changing it rebuilds the bucket
	Bucket  string // without the prefix of the installation

	reactions []reaction
	new       func() any
	stamp     func(any) *events.Stamp
	seq       func(any) *int64 // instead of stamp, where the document has a version of its own
}

// mark stamps a document with a state of the log.
func (p Projection) mark(doc any, at events.Stamp) {
	if p.seq != nil {
		*p.seq(doc) = at.Seq
		return
	}
	*p.stamp(doc) = at
}

// shows returns the sequence with which a document is stamped.
func (p Projection) shows(doc any) uint64 {
	if p.seq != nil {
		return uint64(*p.seq(doc))
	}
	return uint64(p.stamp(doc).Seq)
}

// Decode reads a document of the read model.
func (p Projection) Decode(raw []byte) (doc any, seq uint64, err error) {
	doc = p.new()
	if err := json.Unmarshal(raw, doc); err != nil {
		return nil, 0, fmt.Errorf("decode document of %s: %w", p.Name, err)
	}
	return doc, p.shows(doc), nil
}

// reaction applies one event to a read model.
type reaction struct {
	on    events.Type
	makes bool // the event creates the document: there cannot be one before it
	// id returns the document's id within the thread; false: none is changed.
	id func(*change) (string, bool)
	// fold returns the document after the event. doc is nil if there is none; fold may change
	// it.
	fold func(c *change, doc any) any
}

// change is an event in the form for folds.
type change struct {
	commit *events.Commit
	event  *events.Event
	thread string // the place's thread
	store  Store
	active Mask
	slot   *Slot // whose document is being folded
	same   bool  // set by a fold that has changed nothing
	iso    string
	isoAt  events.Time

	changed []*Slot
	missed  []*Slot
	err     error
}

// time returns the event's time in the form of documents.
func (c *change) time() string {
	if c.iso == "" || c.isoAt != c.event.Time {
		c.iso, c.isoAt = c.event.Time.ISO(), c.event.Time
	}
	return c.iso
}

// later reports whether the event is later than the document's creation. What the creating
// command does at the same moment does not count as a change.
func (c *change) later() bool { return !c.slot.made || int64(c.event.Time) > c.slot.at }

// on declares a change of an existing document.
func on[T, E any](t events.Type, id func(*change, E) (string, bool), fold func(*change, *T, E)) reaction {
	return reaction{on: t, id: typed(id), fold: func(c *change, doc any) any {
		d, ok := c.event.Data.(E)
		have, there := doc.(*T)
		if ok && there && have != nil {
			fold(c, have, d)
		}
		return doc
	}}
}

// makes declares an event that creates a document.
func makes[T, E any](t events.Type, id func(*change, E) (string, bool), fold func(*change, E) *T) reaction {
	return reaction{on: t, makes: true, id: typed(id), fold: func(c *change, doc any) any {
		if d, ok := c.event.Data.(E); ok {
			return fold(c, d)
		}
		return doc
	}}
}

// puts declares an event that creates a document or changes the existing one: doc is nil, or
// that one.
func puts[T, E any](t events.Type, id func(*change, E) (string, bool), fold func(c *change, doc *T, d E) *T) reaction {
	return reaction{on: t, id: typed(id), fold: func(c *change, doc any) any {
		d, ok := c.event.Data.(E)
		if !ok {
			return doc
		}
		have, _ := doc.(*T)
		return fold(c, have, d)
	}}
}

// removes declares an event that removes a document.
func removes[E any](t events.Type, id func(*change, E) (string, bool)) reaction {
	return reaction{on: t, id: typed(id), fold: func(*change, any) any { return nil }}
}

// keeps declares a change after which the document may be removed: fold reports whether it stays.
func keeps[T, E any](t events.Type, id func(*change, E) (string, bool), fold func(c *change, doc *T, d E) bool) reaction {
	return reaction{on: t, id: typed(id), fold: func(c *change, doc any) any {
		d, ok := c.event.Data.(E)
		have, there := doc.(*T)
		if ok && there && have != nil && !fold(c, have, d) {
			return nil
		}
		return doc
	}}
}

// together declares an event that changes several read models at once: hidden items, or the
// end of the thread.
func together(t events.Type) reaction { return reaction{on: t} }

func typed[E any](id func(*change, E) (string, bool)) func(*change) (string, bool) {
	return func(c *change) (string, bool) {
		d, ok := c.event.Data.(E)
		if !ok { // of an unknown version
			return "", false
		}
		return id(c, d)
	}
}

// subject returns the event's subject as the document's id.
func subject[E any](c *change, _ E) (string, bool) { return c.event.Subject, true }

// own returns the id of the thread's own document.
func own[E any](*change, E) (string, bool) { return "", true }
