package thread

import (
	"errors"
	"fmt"

	"github.com/skein-threads/skein/events"
)

// preconditions has a method for each event of the catalog. The method returns an error if the
// event may not follow on the state of its aggregate. Decisions only emit events that satisfy
// their precondition; tests and the audit check that, the server does not.
type preconditions struct {
	*Ledger
	before *events.Event // the previous event of the same command; nil for the first
}

var _ events.Rules = preconditions{}

// Kinds of aggregates.
const (
	ofThread = iota
	ofKey
	ofTenant
)

func kindOfAggregate(id string) int {
	switch {
	case events.IsThread(id):
		return ofThread
	case id == events.TenantAggregate:
		return ofTenant
	}
	return ofKey
}

// place checks that events of this type belong on this kind of aggregate.
func (r preconditions) place(e *events.Event) error {
	kind := kindOfAggregate(e.ThreadID)
	switch e.Type {
	case events.DefinitionChangedType:
		if kind != ofTenant {
			return errors.New("a definition changes on the tenant's own aggregate only")
		}
	case events.CommandRejectedType:
		if kind == ofKey {
			return errors.New("a refusal stands on its thread, or on the tenant's own aggregate")
		}
	case events.KeyClaimedType, events.KeyReleasedType:
		if kind == ofTenant {
			return errors.New("a key changes on its thread and on its own aggregate only")
		}
	default:
		if kind != ofThread {
			return fmt.Errorf("%s stands on threads only", e.Type)
		}
	}
	if kind != ofThread || e.Type == events.ThreadCreatedType {
		return nil
	}
	if !r.state.Exists() {
		return errors.New("the thread does not exist")
	}
	return nil
}

// check checks the precondition of one event. An event of an unknown type or version has none.
func (r preconditions) check(e *events.Event) error {
	if _, unknown := e.Data.(events.Unknown); unknown {
		return nil
	}
	if err := r.place(e); err != nil {
		return err
	}
	return e.Holds(r)
}

// about checks an event's subject, and its correlation: the execution or effect that it belongs
// to.
func about(e *events.Event, subject, correlation string) error {
	switch {
	case e.Subject != subject:
		return fmt.Errorf("its subject should be %.80q, not %.80q", subject, e.Subject)
	case e.Correlation != correlation:
		return fmt.Errorf("its correlation should be %.80q, not %.80q", correlation, e.Correlation)
	}
	return nil
}

// ofAggregate checks an event about the aggregate itself, which belongs to no execution.
func ofAggregate(e *events.Event) error { return about(e, e.ThreadID, "") }

// firstFault returns the first error that is not nil.
func firstFault(faults ...error) error {
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return nil
}

// unless returns an error if right is false.
func unless(right bool, format string, args ...any) error {
	if right {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// exists returns a not-found error if there is false.
func exists(there bool, entity, id string) error {
	return unless(there, "%s %.80q is not in the thread", entity, id)
}

// isNew returns an error if an id is in use.
func isNew(taken bool, entity, id string) error {
	return unless(id != "" && !taken, "%s %.80q exists already, or has no id", entity, id)
}

func (r preconditions) needContext(id string) error {
	_, ok := r.state.context(id)
	return exists(ok, "context", id)
}

func (r preconditions) needItem(id string) error {
	if r.state.Pending.has(id) { // its page says what it is, and pages are not read here
		return nil
	}
	i, ok := r.state.item(id)
	return exists(ok && !i.Deleted, "item", id)
}

// needExecution accepts an empty id.
func (r preconditions) needExecution(id string) error {
	_, ok := r.state.execution(id)
	return exists(ok || id == "", "execution", id)
}

// run returns an execution. The error says that Skein does not run it, or that it has ended.
func (r preconditions) run(id string) (executionState, error) {
	x, ok := r.state.execution(id)
	switch {
	case !ok:
		return x, exists(false, "execution", id)
	case x.Run == nil:
		return x, fmt.Errorf("execution %.80q is not run by Skein", id)
	case x.Status != events.Executing:
		return x, fmt.Errorf("execution %.80q is %s", id, x.Status)
	}
	return x, nil
}
