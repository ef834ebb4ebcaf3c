package documents

import "github.com/skein-threads/skein/events"

// Families of events, for the lists of what a read model ignores. An event that
// is new in the catalog is in none of them, and the test of completeness asks
// for a decision.

func threadLife() []events.Type {
	return []events.Type{
		events.ThreadCreatedType, events.ThreadResolvedType, events.ThreadStatusChangedType,
		events.ProfileChangedType, events.AgentAssignedType, events.SkillActivatedType,
	}
}

func contextLife() []events.Type {
	return []events.Type{
		events.ContextCreatedType, events.ContextResolvedType, events.ContextStatusChangedType,
		events.StateChangedType, events.StateClosedType,
	}
}

func itemLife() []events.Type {
	return []events.Type{events.ItemCreatedType, events.ItemStatusChangedType, events.MessageEditedType}
}

func itemEnds() []events.Type {
	return []events.Type{events.MessageDeletedType, events.HistoryTruncatedType}
}

func executionLife() []events.Type {
	return []events.Type{events.ExecutionCreatedType, events.ExecutionStatusChangedType}
}

func executionEnds() []events.Type { return []events.Type{events.ThreadFinishedType} }

func stepLife() []events.Type {
	return []events.Type{events.StepCreatedType, events.StepStatusChangedType}
}

func stepEnds() []events.Type { return []events.Type{events.StepStatusChangedType} }

// queueLife is what only the thread's own document shows.
func queueLife() []events.Type {
	return []events.Type{
		events.QueuePushedType, events.QueueDrainedType, events.QueueRemovedType, events.QueueEditedType, events.QueueMovedType,
	}
}

// runLife is what only the execution's document shows.
func runLife() []events.Type {
	return []events.Type{
		events.RunRequestedType, events.RunStoppedType, events.RunClaimedType, events.RunParkedType, events.RunAwaitedType,
	}
}

// runPauses is what no document shows of a run.
func runPauses() []events.Type {
	return []events.Type{events.RunSuspendedType, events.RunResumedType, events.RunTurnedType}
}

func partLife() []events.Type {
	return []events.Type{events.PartCreatedType, events.PartUpdatedType}
}

func fileLife() []events.Type {
	return []events.Type{events.FileWrittenType, events.FileDeletedType, events.DirectoryCreatedType, events.DirectoryRemovedType}
}

func traces() []events.Type { return []events.Type{events.TraceRecordedType} }

// beside are events that no document of EK 4 shows, but for the thread's own
// version.
func beside() []events.Type {
	return []events.Type{
		events.RelationshipAddedType, events.RelationshipRemovedType,
		events.KeyClaimedType, events.KeyReleasedType,
		events.EffectScheduledType, events.EffectCancelledType, events.EffectStartedType, events.EffectCompletedType,
		events.EffectFailedType, events.CommandRejectedType, events.LifecycleDestroyedType, events.LifecycleArchivedType,
	}
}

// approvals are what an execution shows of the persons who are asked about calls.
func approvals() []events.Type {
	return []events.Type{events.ApprovalRequestedType, events.ApprovalGrantedType, events.ApprovalDeniedType, events.ApprovalResolvedType}
}

// ofTenant are events of the tenant and of no thread.
func ofTenant() []events.Type { return []events.Type{events.DefinitionChangedType} }

// nowhere are events that never enter the log.
func nowhere() []events.Type { return []events.Type{events.ChunkEmittedType} }
