package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// TrailOptions selects steps of a thread's trail. A step must match every field that is set.
type TrailOptions struct {
	Actor     string        // of this actor
	Types     []events.Type // of these types; item.* selects all of an entity
	Execution string        // of this execution
	From, To  int64         // of these versions, both included; 0 sets no bound
}

// TrailEntry is one step of a trail: an event, and what it changed.
type TrailEntry struct {
	Seq         uint64        `json:"seq"`
	Version     int64         `json:"version"`
	Time        string        `json:"time"`
	Event       string        `json:"event,omitzero"` // its id
	Type        events.Type   `json:"type,omitzero"`
	Subject     string        `json:"subject,omitzero"`
	Actor       string        `json:"actor,omitzero"`
	Command     *TrailCommand `json:"command,omitzero"`
	Cause       *TrailCause   `json:"cause,omitzero"`
	Execution   string        `json:"execution,omitzero"` // the correlation
	TraceParent string        `json:"traceparent,omitzero"`
	Move        *TrailMove    `json:"move,omitzero"`
	Changes     []TrailChange `json:"changes,omitempty"`
	Broken      string        `json:"broken,omitzero"` // why the commit cannot be decoded; then all but Seq is absent
	Data        events.JSON   `json:"data,omitzero"`   // the event's own content
	Happened    *events.Event `json:"-"`               // the event itself
}

// TrailCommand is the command that made an event. The log has its id; its name is known if
// only one command can have made what it made.
type TrailCommand struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitzero"`  // absent if several commands may have made it
	Index int    `json:"index,omitzero"` // index in the list of a thread.commit, from 1
}

// TrailCause is the event that caused another.
type TrailCause struct {
	Event   string      `json:"event"`
	Type    events.Type `json:"type,omitzero"` // absent if it is not an event of the thread
	Version int64       `json:"version,omitzero"`
}

// TrailMove is a change of state.
type TrailMove struct {
	Entity string `json:"entity"`
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason,omitzero"`
}

// Trail passes to tell who did what to a thread, when and why: each event in order, with its
// changes of the thread's documents. It folds the thread from the start whatever the options
// select, and holds its documents in memory, and the id of each event. A commit that cannot be
// decoded is reported as such. An error of tell stops it. The error is a not_found, or an
// invalid_request, or says why the log could not be read.
func Trail(ctx context.Context, log *eventlog.Log, tenant, thread string, o TrailOptions, tell func(TrailEntry) error) error {
	if err := checkThread(tenant, thread); err != nil {
		return err
	}
	t := &reading{options: o, tell: tell, models: documents.NewModels(), shown: map[documents.Place]events.JSON{}, known: map[string]TrailCause{}}
	t.memory = t.models.NewMemory(eventlog.PagesOn(log.Streams()).In(ctx))
	there := false
	for c, err := range log.Thread(ctx, tenant, thread, 1) {
		there = true
		var broken *events.BrokenError
		switch {
		case errors.As(err, &broken):
			err = tell(TrailEntry{Seq: broken.Seq, Broken: broken.Cause.Error()})
		case err == nil:
			err = t.commit(c)
		}
		if err != nil {
			return err
		}
	}
	if !there {
		return events.Missing("thread", thread)
	}
	return nil
}

type reading struct {
	options TrailOptions
	tell    func(TrailEntry) error
	models  *documents.Models
	memory  *documents.Memory
	shown   map[documents.Place]events.JSON // after the previous event
	known   map[string]TrailCause           // events, by id
	changed []*documents.Slot
}

// commit reports the events of a commit.
func (t *reading) commit(c *events.Commit) error {
	for i := range c.Events {
		e := &c.Events[i]
		changes, err := t.fold(c, i)
		if err != nil {
			return fmt.Errorf("changes of event %s: %w", e.ID, err)
		}
		t.known[e.ID] = TrailCause{Event: e.ID, Type: e.Type, Version: e.Version}
		if !t.wanted(e) {
			continue
		}
		entry := TrailEntry{
			Seq: c.Seq, Version: e.Version, Time: e.Time.String(), Event: e.ID, Type: e.Type, Subject: e.Subject, Actor: e.Actor,
			Execution: e.Correlation, TraceParent: e.TraceParent, Move: moveOf(e), Changes: changes, Data: dataOf(e), Happened: e,
		}
		if e.CommandID != "" {
			entry.Command = &TrailCommand{ID: e.CommandID, Name: commandName(c, e), Index: e.CommandIndex}
		}
		if e.Causation != "" {
			cause, ok := t.known[e.Causation]
			if !ok {
				cause.Event = e.Causation
			}
			entry.Cause = &cause
		}
		if err := t.tell(entry); err != nil {
			return err
		}
	}
	return nil
}

func (t *reading) wanted(e *events.Event) bool {
	o := t.options
	return (o.Actor == "" || e.Actor == o.Actor) && (o.Execution == "" || e.Correlation == o.Execution || e.Subject == o.Execution) &&
		(o.From == 0 || e.Version >= o.From) && (o.To == 0 || e.Version <= o.To) &&
		(len(o.Types) == 0 || slices.ContainsFunc(o.Types, func(want events.Type) bool { return want == e.Type || want == events.Type(e.Type.Entity()+".*") }))
}

// fold folds one event of a commit, and returns what it changed. Documents are stamped with
// the version instead of the sequence, as each event is folded as a commit of its own, which
// follows the previous event. So their stamps are not reported.
func (t *reading) fold(c *events.Commit, i int) ([]TrailChange, error) {
	one := *c
	one.Events, one.Version, one.Seq = c.Events[i:i+1], c.Events[i].Version, uint64(c.Events[i].Version)
	inherited, err := t.memory.Prepare(&one)
	if err != nil {
		return nil, err
	}
	for _, slot := range inherited {
		if t.shown[slot.Place], err = shownOf(slot); err != nil {
			return nil, err
		}
	}
	out := t.models.Apply(&one, t.memory, documents.AllKinds, t.changed)
	t.changed = out.Changed
	var changes []TrailChange
	for _, slot := range out.Changed {
		p := slot.Place
		if !told(p.Kind) {
			continue
		}
		after, err := shownOf(slot)
		if err != nil {
			return nil, err
		}
		if change, differs := changeOf(t.models, p, t.shown[p], after, derivedMember); differs {
			changes = append(changes, change)
		}
		if after == nil {
			delete(t.shown, p)
		} else {
			t.shown[p] = after
		}
	}
	slices.SortStableFunc(changes, func(a, b TrailChange) int {
		return cmp.Or(strings.Compare(a.Model, b.Model), strings.Compare(a.ID, b.ID))
	})
	return changes, nil
}

// told reports whether a trail includes the documents of a read model. Traces are views of the
// same events.
func told(k documents.Kind) bool {
	switch k {
	case documents.Index, documents.TraceEvents, documents.TraceRuns, documents.TraceSpans:
		return false
	default:
		return true
	}
}

// derivedMember reports whether a member of a document follows from others, so that a trail
// does not report it at every event.
func derivedMember(name string) bool {
	switch name {
	case "updatedAt", "messageBlocks", "createdAtMicros", "queued", "items", "itemTypes", "nextItem", "changes", "nextMessageId",
		"userLastInteractedAt", "diffStats", "parents", "stepCount", "sideAStepCount", "sideBStepCount":
		return true
	}
	return false
}

// shownOf returns a document without its stamps, nil if there is none.
func shownOf(slot *documents.Slot) (events.JSON, error) {
	if slot.Doc == nil {
		return nil, nil
	}
	raw, err := documents.Encode(slot.Doc)
	if err != nil {
		return nil, err
	}
	return without(raw, stamps)
}
