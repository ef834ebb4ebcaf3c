package thread

import (
	"fmt"
	"reflect"

	"github.com/skein-threads/skein/events"
)

// decisions lists the function that decides each part of a command: of those in the
// catalog, which callers send, and of those that come from workers alone. A part is
// known by the Go type of its data.
func decisions() []decision {
	return []decision{
		beforeAny((*maker).createThread),
		beforeAny((*maker).resolveThread),
		beforeAny((*maker).rejectCommand),
		beforeAny((*maker).applyDefinitions),

		decides((*maker).changeThreadStatus),
		decides((*maker).updateThread),
		decides((*maker).finishThread),
		decides((*maker).deleteThread),
		decides((*maker).createContext),
		decides((*maker).resolveContext),
		decides((*maker).setContextStatus),
		decides((*maker).setContext),
		decides((*maker).createItem),
		decides((*maker).setItemStatus),
		decides((*maker).editMessage),
		decides((*maker).deleteMessage),
		decides((*maker).addMessage),
		decides((*maker).updateMessage),
		decides((*maker).createExecution),
		decides((*maker).setExecutionStatus),
		decides((*maker).createStep),
		decides((*maker).setStepStatus),
		decides((*maker).putPart),
		decides((*maker).writeFile),
		decides((*maker).deleteFile),
		decides((*maker).createDirectory),
		decides((*maker).removeDirectory),
		decides((*maker).recordTrace),
		decides((*maker).scheduleEffect),
		decides((*maker).cancelEffect),
		decides((*maker).startEffect),
		decides((*maker).completeEffect),
		decides((*maker).failEffect),
		decides((*maker).archive),
		decides((*maker).react),
		decides((*maker).stopRun),
		decides((*maker).cancelRun),
		decides((*maker).retryRun),
		decides((*maker).turnRun),
		decides((*maker).grantApproval),
		decides((*maker).resolveApproval),
		decides((*maker).denyApproval),
		decides((*maker).queueTool),
		decides((*maker).assignAgent),
		decides((*maker).removeQueued),
		decides((*maker).editQueued),
		decides((*maker).moveQueued),
		decides((*maker).claimRun),
		decides((*maker).reactStep),
		decides((*maker).endCalls),
		decides((*maker).holdCalls),
		decides((*maker).resumeCalls),
		decides((*maker).failRun),
		decides((*maker).awaitWorkers),
		decides((*maker).parkRun),
		decides((*maker).wakeRun),
		decides((*maker).recordRun),
		decides((*maker).reactForParent),
	}
}

// preconditions lists, for each event of the catalog, what must be true before it.
func preconditions() []precondition {
	return []precondition{
		requires(rules.EffectScheduled),
		requires(rules.EffectCancelled),
		requires(rules.EffectStarted),
		requires(rules.EffectCompleted),
		requires(rules.EffectFailed),
		requires(rules.ExecutionCreated),
		requires(rules.ExecutionStatusChanged),
		requires(rules.StepCreated),
		requires(rules.StepStatusChanged),
		requires(rules.PartCreated),
		requires(rules.PartUpdated),
		requires(rules.ChunkEmitted),
		requires(rules.TraceRecorded),
		requires(rules.FileWritten),
		requires(rules.FileDeleted),
		requires(rules.DirectoryCreated),
		requires(rules.DirectoryRemoved),
		requires(rules.ContextCreated),
		requires(rules.ContextResolved),
		requires(rules.ContextStatusChanged),
		requires(rules.StateChanged),
		requires(rules.StateClosed),
		requires(rules.ItemCreated),
		requires(rules.ItemStatusChanged),
		requires(rules.MessageEdited),
		requires(rules.MessageDeleted),
		requires(rules.HistoryTruncated),
		requires(rules.QueuePushed),
		requires(rules.QueueRemoved),
		requires(rules.QueueEdited),
		requires(rules.QueueMoved),
		requires(rules.QueueDrained),
		requires(rules.RunRequested),
		requires(rules.RunClaimed),
		requires(rules.RunParked),
		requires(rules.RunSuspended),
		requires(rules.RunResumed),
		requires(rules.RunStopped),
		requires(rules.RunAwaited),
		requires(rules.RunTurned),
		requires(rules.ApprovalRequested),
		requires(rules.ApprovalGranted),
		requires(rules.ApprovalDenied),
		requires(rules.ApprovalResolved),
		requires(rules.ThreadCreated),
		requires(rules.ThreadResolved),
		requires(rules.ThreadStatusChanged),
		requires(rules.ThreadFinished),
		requires(rules.ProfileChanged),
		requires(rules.AgentAssigned),
		requires(rules.SkillActivated),
		requires(rules.RelationshipAdded),
		requires(rules.RelationshipRemoved),
		requires(rules.KeyClaimed),
		requires(rules.KeyReleased),
		requires(rules.CommandRejected),
		requires(rules.DefinitionChanged),
		requires(rules.LifecycleDestroyed),
		requires(rules.LifecycleArchived),
		requires(rules.LifecycleDeleted),
	}
}

// decision is a row of decisions.
type decision struct {
	of     reflect.Type
	absent bool // the thread need not exist
	decide func(*maker, any) error
}

// decides declares the function that decides parts whose data is a D, on a thread that
// exists.
func decides[D any](decide func(*maker, D) error) decision {
	return decision{of: reflect.TypeFor[D](), decide: func(m *maker, data any) error { return decide(m, data.(D)) }}
}

// beforeAny is decides for what needs no thread.
func beforeAny[D any](decide func(*maker, D) error) decision {
	d := decides(decide)
	d.absent = true
	return d
}

// precondition is a row of preconditions.
type precondition struct {
	of    reflect.Type
	holds func(rules, *events.Event) error
}

// requires declares the precondition of the event whose data is a D.
func requires[D any](rule func(rules, *events.Event, D) error) precondition {
	return precondition{of: reflect.TypeFor[D](), holds: func(r rules, e *events.Event) error { return rule(r, e, e.Data.(D)) }}
}

func (d decision) key() reflect.Type     { return d.of }
func (p precondition) key() reflect.Type { return p.of }

// indexed returns rows by the Go type that they are about. Two rows of one type are a
// mistake in this package, which every program and test finds as it starts.
func indexed[R interface{ key() reflect.Type }](rows []R) map[reflect.Type]R {
	index := make(map[reflect.Type]R, len(rows))
	for _, r := range rows {
		if _, twice := index[r.key()]; twice {
			panic(fmt.Sprintf("commands/thread: two rows of %s", r.key()))
		}
		index[r.key()] = r
	}
	return index
}

var (
	decisionOf     = indexed(decisions())
	preconditionOf = indexed(preconditions())
)

// decide turns one part of a command into events.
func (m *maker) decide(p Part) error {
	d, known := decisionOf[reflect.TypeOf(p.Data)]
	switch {
	case !d.absent && !m.state.Exists():
		return events.Missing("thread", m.command.ThreadID)
	case !known:
		return events.Invalid("", "no such command: %s", p.Name)
	}
	return d.decide(m, p.Data)
}
