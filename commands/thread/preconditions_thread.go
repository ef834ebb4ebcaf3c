package thread

import (
	"errors"
	"fmt"
	"slices"

	"github.com/skein-threads/skein/events"
)

func (r preconditions) ThreadCreated(e *events.Event, d events.ThreadCreated) error {
	return firstFault(
		unless(!r.state.Existed() && e.Version == 1, "the thread was created before"),
		about(e, d.ID, ""),
		unless(d.ID == e.ThreadID, "it creates thread %.80q", d.ID),
		unless(d.Status == events.ThreadMachine().Initial(), "a thread begins as %q, and not as %.40q", events.ThreadMachine().Initial(), d.Status),
	)
}

func (r preconditions) SubthreadAdded(e *events.Event, d events.SubthreadAdded) error {
	return firstFault(ofAggregate(e), unless(events.ValidThreadID(d.ThreadID) && d.ThreadID != e.ThreadID, "thread %.80q cannot work for it", d.ThreadID))
}

func (r preconditions) ThreadResolved(e *events.Event, d events.ThreadResolved) error {
	return firstFault(
		ofAggregate(e),
		unless(d.Key == r.state.Key, "the thread's key is %.80q, and not %.80q", r.state.Key, d.Key),
		unless(d.Created == (r.state.CreatedTime == e.Time), "it says created: %v, and the thread was created at %s", d.Created, r.state.CreatedTime),
	)
}

func (r preconditions) ThreadStatusChanged(e *events.Event, d events.ThreadStatusChanged) error {
	return firstFault(
		ofAggregate(e),
		unless(d.From == r.state.Status, "the thread is %s, and not %.40q", r.state.Status, d.From),
		events.ThreadMachine().Check(e.ThreadID, d.From, d.To),
	)
}

func (r preconditions) ThreadFinished(e *events.Event, d events.ThreadFinished) error {
	x, ok := r.state.execution(d.ExecutionID)
	return firstFault(
		about(e, e.ThreadID, d.ExecutionID),
		exists(ok, "execution", d.ExecutionID),
		unless(!x.Finished, "execution %.80q is finished twice", d.ExecutionID),
		unless(x.Status != events.Executing && x.Status == d.Status, "execution %.80q is %s, and not over as %.40q", d.ExecutionID, x.Status, d.Status),
	)
}

func (r preconditions) ProfileChanged(e *events.Event, d events.ProfileChanged) error {
	none := d.Title == nil && d.Archived == nil && d.Draft == nil && d.AutoSubmitDraft == nil && d.AgentMode == nil &&
		d.MaxTokens == nil && d.UserID == nil && d.Metadata == nil && d.Env == nil && d.Policy == nil
	return firstFault(ofAggregate(e), unless(!none, "it changes nothing"),
		unless(d.TitleFrom != events.TitleFromMessage || d.Title != nil && !r.state.Profile.hasTitle(), "Skein sets the title of a thread that has one, or sets none"),
		unless(d.TitleFrom != events.TitleFromModel || d.Title != nil && r.state.Profile.Made, "a model sets the title of a thread whose title is not of its first message, or sets none"))
}

func (r preconditions) AgentAssigned(e *events.Event, d events.AgentAssigned) error {
	return firstFault(
		about(e, e.ThreadID, r.state.head.Active),
		unless(d.AgentID != "", "it names no agent"),
		unless(d.From == r.state.Agent, "the agent is %.80q, and not %.80q", r.state.Agent, d.From),
	)
}

// SkillActivated happens once for each name.
func (r preconditions) SkillActivated(e *events.Event, d events.SkillActivated) error {
	return firstFault(
		about(e, e.ThreadID, e.Correlation), r.needExecution(e.Correlation),
		unless(!slices.Contains(r.state.Skills, d.Name), "skill %.80q is loaded twice", d.Name),
	)
}

// tie is a relationship as one thread records it.
type tie struct {
	thread string
	kind   events.RelationshipKind
	role   events.RelationshipRole
}

func (r preconditions) RelationshipAdded(e *events.Event, d events.RelationshipAdded) error {
	faults := []error{
		about(e, e.ThreadID, e.Correlation), r.needExecution(e.Correlation),
		unless(events.ValidThreadID(d.ThreadID) && d.ThreadID != e.ThreadID, "thread %.80q cannot be tied to it", d.ThreadID),
		unless(!r.ties[tie{d.ThreadID, d.Type, d.Role}], "it is tied to %.80q already", d.ThreadID),
	}
	faults = append(faults, r.forked(d))
	if d.ItemID != "" {
		faults = append(faults, r.needItem(d.ItemID))
	}
	if d.MessageIndex != nil && d.Role == events.ParentRole { // it counts messages of the parent
		faults = append(faults, unless(*d.MessageIndex < r.state.NextItem, "the thread has no item at %d", *d.MessageIndex))
	}
	return firstFault(faults...)
}

func (r preconditions) RelationshipRemoved(e *events.Event, d events.RelationshipRemoved) error {
	return firstFault(
		about(e, e.ThreadID, e.Correlation), r.needExecution(e.Correlation),
		unless(r.ties[tie{d.ThreadID, d.Type, d.Role}], "it is not tied to %.80q", d.ThreadID),
	)
}

func (r preconditions) KeyClaimed(e *events.Event, d events.KeyClaimed) error {
	if events.IsThread(e.ThreadID) {
		return firstFault(
			ofAggregate(e),
			unless(d.ThreadID == e.ThreadID && d.Key == r.state.Key, "the thread was created with the key %.80q, and not with %.80q for %.80q", r.state.Key, d.Key, d.ThreadID),
			unless(e.Version == 3, "a thread claims its key when it is created"),
		)
	}
	return firstFault(
		ofAggregate(e),
		unless(events.KeyAggregate(d.Key) == e.ThreadID, "the key that it claims belongs to another subject"),
		unless(r.holder == "", "the key is held by %.80q", r.holder),
	)
}

func (r preconditions) KeyReleased(e *events.Event, d events.KeyReleased) error {
	if events.IsThread(e.ThreadID) {
		return firstFault(
			ofAggregate(e),
			unless(d.ThreadID == e.ThreadID && d.Key != "" && d.Key == r.state.Key, "the thread does not hold the key %.80q", d.Key),
		)
	}
	return firstFault(
		ofAggregate(e),
		unless(events.KeyAggregate(d.Key) == e.ThreadID, "the key that it releases belongs to another subject"),
		unless(r.holder != "" && r.holder == d.ThreadID, "the key is held by %.80q, and not by %.80q", r.holder, d.ThreadID),
	)
}

func (r preconditions) CommandRejected(e *events.Event, d events.CommandRejected) error {
	faults := []error{ofAggregate(e), unless(d.Command != "" && d.Code != "", "it names no command, or no code")}
	if events.IsThread(e.ThreadID) {
		faults = append(faults, unless(d.ThreadID == e.ThreadID, "the command was for %.80q", d.ThreadID))
	}
	return firstFault(faults...)
}

func (r preconditions) DefinitionChanged(e *events.Event, d events.DefinitionChanged) error {
	ref := events.DefinitionRef{Kind: d.Kind, Name: d.Name}
	was := r.state.definition(ref.ID())
	previous := was.Version
	if !was.there() {
		previous = 0
	}
	faults := []error{
		about(e, ref.ID(), ""),
		unless(d.Version == was.Version+1, "the definition is at version %d, and not at %d", was.Version, d.Version-1),
		unless(d.Previous == previous, "it replaces version %d, and the definition is at %d", d.Previous, previous),
	}
	if d.Definition == nil {
		return firstFault(append(faults, unless(was.there() && d.Digest == "", "it removes what is not there, or has a digest"))...)
	}
	return firstFault(append(faults,
		unless(d.Digest == events.DefinitionDigest(d.Definition), "the definition is not what its digest says"),
		unless(was.Digest != d.Digest, "the definition is what it was"),
		defines(d),
	)...)
}

// defines checks that the definition decodes as its kind and has the event's name.
func defines(d events.DefinitionChanged) error {
	value, err := events.DecodeDefinition(d.Kind, d.Definition)
	if err != nil {
		return fmt.Errorf("decode definition: %w", err)
	}
	return unless(events.DefinitionName(value) == d.Name, "the definition is of %.80q", events.DefinitionName(value))
}

func (r preconditions) LifecycleArchived(e *events.Event, d events.LifecycleArchived) error {
	if why := r.state.Busy(); why != "" {
		return errors.New("the thread cannot be archived: " + why)
	}
	return firstFault(ofAggregate(e), unless(d.FirstSeq <= d.LastSeq, "it archives commits %d to %d", d.FirstSeq, d.LastSeq))
}

func (r preconditions) LifecycleDeleted(e *events.Event, _ events.LifecycleDeleted) error {
	return firstFault(
		ofAggregate(e),
		unless(r.state.Key == "", "its key %.80q was not released", r.state.Key),
		unless(len(r.state.executing()) == 0, "executions are in progress"),
	)
}
