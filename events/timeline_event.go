package events

import (
	"errors"
	"fmt"
	"strings"
)

// content checks what the event says, and records it.
func (c *TimelineChecker) content(t *timeline, e *Event) error {
	if _, end := e.Data.(LifecycleDeleted); (t.purged || t.unread) && !end {
		return nil // what it is about is erased or unknown
	}
	switch d := e.Data.(type) {
	case Unknown:
		_, ok := rows[e.Type]
		entity, _, _ := strings.Cut(string(e.Type), ".")
		switch {
		case ok:
			return fmt.Errorf("it cannot be checked: %s (%s)", d.Reason, clip(d.Schema))
		case isCore(entity):
			return fmt.Errorf("the entity %s has no such event; an extension needs an entity of its own", entity)
		}
	case ThreadCreated:
		if d.ID != e.ThreadID {
			return fmt.Errorf("it creates thread %q", clip(d.ID))
		}
		return t.threads.make("thread", d.ID, e.Subject, d.Status, c.thread.Initial())
	case ThreadStatusChanged:
		return t.threads.move(c.thread, e.ThreadID, d.From, d.To)
	case ThreadFinished:
		return t.finish(d)
	case LifecycleDeleted:
		t.deleted = true
		if t.purged && !d.Purge {
			return errors.New("the earlier events are missing, but it does not record that they were erased")
		}
	case ContextCreated:
		return t.contexts.make("context", d.ID, e.Subject, d.Status, c.context.Initial())
	case ContextStatusChanged:
		return t.contexts.move(c.context, e.Subject, d.From, d.To)
	case ContextResolved:
		return t.contexts.need("context", e.Subject)
	case ItemCreated:
		// An item may start in a later state.
		return first(t.items.make("item", d.ID, e.Subject, d.Status, c.item.States...), t.contexts.need("context", d.ContextID))
	case ItemStatusChanged:
		return t.items.move(c.item, e.Subject, d.From, d.To)
	case ExecutionCreated:
		return first(
			t.executions.make("execution", d.ID, e.Subject, d.Status, c.execution.Initial()),
			t.contexts.need("context", d.ContextID), t.item(e, d.TriggerItemID), t.reaction(d),
		)
	case ExecutionStatusChanged:
		return t.executions.move(c.execution, e.Subject, d.From, d.To)
	case StepCreated:
		t.stepOf[d.ID] = d.ExecutionID
		return first(t.steps.make("step", d.ID, e.Subject, d.Status, c.step.Initial()), t.executions.need("execution", d.ExecutionID))
	case StepStatusChanged:
		return first(t.steps.move(c.step, e.Subject, d.From, d.To), t.sameExecution(e.Subject, d.ExecutionID))
	case PartCreated:
		return t.part(d.Key, d.StepID, d.Idx, e.Subject, true)
	case PartUpdated:
		return t.part(d.Key, d.StepID, d.Idx, e.Subject, false)
	case DefinitionChanged:
		return t.definition(d, e.Subject)
	case MessageEdited, MessageDeleted:
		return t.item(e, e.Subject)
	case HistoryInherited:
		t.inherited = d.NextIndex
		return t.contexts.need("context", d.ContextID)
	}
	return nil
}

// isCore reports whether an entity has a closed list of events. Others may have events that
// this version does not know.
func isCore(entity string) bool {
	switch entity {
	case "thread", "context", "item", "execution", "step", "part", "chunk":
		return true
	}
	return false
}

// first returns the first fault. All its arguments were evaluated by then.
func first(faults ...error) error {
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return nil
}

// finish checks that a react is over once, with the state in which its execution ended.
// item checks that an item exists. Those that a thread has inherited have no event.
func (t *timeline) item(e *Event, id string) error {
	if place, ok := InheritedPlace(e.Tenant, e.ThreadID, id); ok && place < t.inherited {
		return nil
	}
	return t.items.need("item", id)
}

func (t *timeline) finish(d ThreadFinished) error {
	twice := t.finished[d.ExecutionID]
	t.finished[d.ExecutionID] = true
	if err := t.executions.need("execution", d.ExecutionID); err != nil {
		return err
	}
	switch state := t.executions[d.ExecutionID]; {
	case twice:
		return fmt.Errorf("execution %q is finished twice", clip(d.ExecutionID))
	case state == Executing || state != d.Status:
		return fmt.Errorf("execution %q is %s, and did not end as %q", clip(d.ExecutionID), state, clip(d.Status))
	}
	return nil
}

// reaction checks that the execution names its reaction item, which follows.
func (t *timeline) reaction(d ExecutionCreated) error {
	if d.ReactionItemID == "" {
		return fmt.Errorf("execution %q has no reaction item", clip(d.ID))
	}
	return nil
}

func (t *timeline) sameExecution(step, execution string) error {
	if of := t.stepOf[step]; of != execution {
		return fmt.Errorf("step %q is of execution %q, not of %q", clip(step), clip(of), clip(execution))
	}
	return nil
}

func (t *timeline) part(key, step string, idx int64, subject string, isNew bool) error {
	had := t.parts[key]
	t.parts[key] = true
	switch {
	case key != PartKey(step, idx):
		return fmt.Errorf("part %q is not at %q", clip(key), clip(PartKey(step, idx)))
	case key != subject:
		return fmt.Errorf("part %q is in an event about %q", clip(key), clip(subject))
	case isNew && had:
		return fmt.Errorf("part %q is created twice", clip(key))
	case !isNew && !had:
		return fmt.Errorf("part %q is not in the thread", clip(key))
	}
	return t.steps.need("step", step)
}

// definition checks that a definition of the tenant has the next version, and the digest that
// the event says.
func (t *timeline) definition(d DefinitionChanged, subject string) error {
	if t.isThread {
		return nil
	}
	ref := DefinitionRef{Kind: d.Kind, Name: d.Name}
	was := t.definitions[ref.ID()]
	now := definitionVersion{version: d.Version, there: d.Definition != nil}
	t.definitions[ref.ID()] = now
	switch {
	case subject != ref.ID():
		return fmt.Errorf("the definition of %q is in an event about %q", clip(ref.ID()), clip(subject))
	case d.Version != was.version+1:
		return fmt.Errorf("the definition of %q is at version %d after %d", clip(ref.ID()), d.Version, was.version)
	case was.there != (d.Previous != 0), was.there && d.Previous != was.version:
		return fmt.Errorf("the definition of %q replaces version %d, but was at %d", clip(ref.ID()), d.Previous, was.version)
	case now.there && d.Digest != DefinitionDigest(d.Definition):
		return fmt.Errorf("the definition of %q does not have the digest that the event says", clip(ref.ID()))
	}
	return nil
}

// definitionVersion is the current version of a definition.
type definitionVersion struct {
	version int64
	there   bool
}
