package thread

import (
	"fmt"
	"reflect"

	"github.com/skein-threads/skein/events"
)

// decisions lists the function that decides each kind of part: the commands of the catalog, which
// clients send, and the commands that only workers send. The Go type of a part's data selects the
// function.
func decisions() []decision {
	return []decision{
		beforeAny((*decider).createThread),
		beforeAny((*decider).resolveThread),
		beforeAny((*decider).rejectCommand),
		beforeAny((*decider).applyDefinitions),
		beforeAny((*decider).mergeState),

		decides((*decider).changeThreadStatus),
		decides((*decider).updateThread),
		decides((*decider).finishThread),
		decides((*decider).deleteThread),
		decides((*decider).createContext),
		decides((*decider).resolveContext),
		decides((*decider).setContextStatus),
		decides((*decider).setContext),
		decides((*decider).createItem),
		decides((*decider).appendItems),
		decides((*decider).setItemStatus),
		decides((*decider).editMessage),
		decides((*decider).deleteMessage),
		decides((*decider).addMessage),
		decides((*decider).shareThread),
		decides((*decider).unshareThread),
		decides((*decider).updateMessage),
		decides((*decider).createExecution),
		decides((*decider).setExecutionStatus),
		decides((*decider).createStep),
		decides((*decider).setStepStatus),
		decides((*decider).putPart),
		decides((*decider).writeFile),
		decides((*decider).deleteFile),
		decides((*decider).createDirectory),
		decides((*decider).removeDirectory),
		decides((*decider).recordTrace),
		decides((*decider).scheduleEffect),
		decides((*decider).cancelEffect),
		decides((*decider).startEffect),
		decides((*decider).completeEffect),
		decides((*decider).failEffect),
		decides((*decider).archive),
		decides((*decider).react),
		decides((*decider).stopRun),
		decides((*decider).cancelRun),
		decides((*decider).retryRun),
		decides((*decider).turnRun),
		decides((*decider).grantApproval),
		decides((*decider).resolveApproval),
		decides((*decider).denyApproval),
		decides((*decider).queueTool),
		decides((*decider).assignAgent),
		decides((*decider).activateSkill),
		decides((*decider).retitleThread),
		decides((*decider).removeQueued),
		decides((*decider).editQueued),
		decides((*decider).moveQueued),
		decides((*decider).claimRun),
		decides((*decider).reactStep),
		decides((*decider).endCalls),
		decides((*decider).holdCalls),
		decides((*decider).resumeCalls),
		decides((*decider).failRun),
		decides((*decider).awaitWorkers),
		decides((*decider).parkRun),
		decides((*decider).wakeRun),
		decides((*decider).recordRun),
		decides((*decider).reactForParent),
		decides((*decider).claimWriter),
		decides((*decider).renewWriter),
		decides((*decider).releaseWriter),

		beforeAny((*decider).mentionThread),
		decides((*decider).touchState),
		decides((*decider).destroyState),
		decides((*decider).releaseState),
		decides((*decider).expireState),
		decides((*decider).startSession),
		decides((*decider).completeSession),
		beforeAny((*decider).forkThread),
		beforeAny((*decider).handoffThread),
		decides((*decider).truncateThread),
	}
}

// decision is a row of decisions.
type decision struct {
	of     reflect.Type
	absent bool // the thread need not exist
	decide func(*decider, any) error
}

// decides returns the row for parts with data of type D. The thread must exist.
func decides[D any](decide func(*decider, D) error) decision {
	return decision{of: reflect.TypeFor[D](), decide: func(m *decider, data any) error { return decide(m, data.(D)) }}
}

// beforeAny is decides for parts that need no existing thread.
func beforeAny[D any](decide func(*decider, D) error) decision {
	d := decides(decide)
	d.absent = true
	return d
}

// indexed returns the rows by the Go type of their data. It panics if two rows have the same type,
// which is a mistake in this package.
func indexed(rows []decision) map[reflect.Type]decision {
	index := make(map[reflect.Type]decision, len(rows))
	for _, d := range rows {
		if _, twice := index[d.of]; twice {
			panic(fmt.Sprintf("commands/thread: two rows of %s", d.of))
		}
		index[d.of] = d
	}
	return index
}

var decisionOf = indexed(decisions())

// decide turns one part of a command into events.
func (m *decider) decide(p Part) error {
	d, known := decisionOf[reflect.TypeOf(p.Data)]
	switch {
	case !d.absent && !m.state.Exists():
		return events.Missing("thread", m.command.ThreadID)
	case !known:
		return events.Invalid("", "no such command: %s", p.Name)
	}
	return d.decide(m, p.Data)
}
