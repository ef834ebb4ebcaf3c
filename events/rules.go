package events

// Rules is the precondition of every event of the catalog: one method for each row. A method
// returns nil if the event may follow the ones before it, which the implementation knows, and
// otherwise an error that says why not. It changes nothing.
//
// Each row names its method, so a row without a precondition does not compile,
// and neither does an implementation that lacks one.
type Rules interface {
	ChunkEmitted(e *Event, d ChunkEmitted) error
	ContextCreated(e *Event, d ContextCreated) error
	ContextResolved(e *Event, d ContextResolved) error
	ContextStatusChanged(e *Event, d ContextStatusChanged) error
	StateChanged(e *Event, d StateChanged) error
	StateClosed(e *Event, d StateClosed) error
	ExecutionCreated(e *Event, d ExecutionCreated) error
	ExecutionStatusChanged(e *Event, d ExecutionStatusChanged) error
	FileWritten(e *Event, d FileWritten) error
	FileDeleted(e *Event, d FileDeleted) error
	DirectoryCreated(e *Event, d DirectoryCreated) error
	DirectoryRemoved(e *Event, d DirectoryRemoved) error
	MessageEdited(e *Event, d MessageEdited) error
	MessageDeleted(e *Event, d MessageDeleted) error
	HistoryTruncated(e *Event, d HistoryTruncated) error
	ItemCreated(e *Event, d ItemCreated) error
	ItemStatusChanged(e *Event, d ItemStatusChanged) error
	PartCreated(e *Event, d PartCreated) error
	PartUpdated(e *Event, d PartUpdated) error
	ProfileChanged(e *Event, d ProfileChanged) error
	AgentAssigned(e *Event, d AgentAssigned) error
	SkillActivated(e *Event, d SkillActivated) error
	RelationshipAdded(e *Event, d RelationshipAdded) error
	RelationshipRemoved(e *Event, d RelationshipRemoved) error
	QueuePushed(e *Event, d QueuePushed) error
	QueueDrained(e *Event, d QueueDrained) error
	QueueRemoved(e *Event, d QueueRemoved) error
	QueueEdited(e *Event, d QueueEdited) error
	QueueMoved(e *Event, d QueueMoved) error
	KeyClaimed(e *Event, d KeyClaimed) error
	KeyReleased(e *Event, d KeyReleased) error
	EffectScheduled(e *Event, d EffectScheduled) error
	EffectCancelled(e *Event, d EffectCancelled) error
	EffectStarted(e *Event, d EffectStarted) error
	EffectCompleted(e *Event, d EffectCompleted) error
	EffectFailed(e *Event, d EffectFailed) error
	ApprovalRequested(e *Event, d ApprovalRequested) error
	ApprovalGranted(e *Event, d ApprovalGranted) error
	ApprovalDenied(e *Event, d ApprovalDenied) error
	ApprovalResolved(e *Event, d ApprovalResolved) error
	RunRequested(e *Event, d RunRequested) error
	RunStopped(e *Event, d RunStopped) error
	RunClaimed(e *Event, d RunClaimed) error
	RunParked(e *Event, d RunParked) error
	RunSuspended(e *Event, d RunSuspended) error
	RunResumed(e *Event, d RunResumed) error
	RunAwaited(e *Event, d RunAwaited) error
	RunTurned(e *Event, d RunTurned) error
	TraceRecorded(e *Event, d TraceRecorded) error
	StepCreated(e *Event, d StepCreated) error
	StepStatusChanged(e *Event, d StepStatusChanged) error
	DefinitionChanged(e *Event, d DefinitionChanged) error
	CommandRejected(e *Event, d CommandRejected) error
	LifecycleDestroyed(e *Event, d LifecycleDestroyed) error
	LifecycleArchived(e *Event, d LifecycleArchived) error
	LifecycleDeleted(e *Event, d LifecycleDeleted) error
	ThreadCreated(e *Event, d ThreadCreated) error
	ThreadResolved(e *Event, d ThreadResolved) error
	ThreadStatusChanged(e *Event, d ThreadStatusChanged) error
	ThreadFinished(e *Event, d ThreadFinished) error
}

// Holds checks the precondition of an event. An event of an unknown type or version has none.
func (e *Event) Holds(r Rules) error {
	row, ok := rows[e.Type]
	if _, unknown := e.Data.(Unknown); !ok || unknown {
		return nil
	}
	return row.holds(r, e)
}
