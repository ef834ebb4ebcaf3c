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
		beforeAny((*maker).mergeState),

		decides((*maker).changeThreadStatus),
		decides((*maker).updateThread),
		decides((*maker).finishThread),
		decides((*maker).deleteThread),
		decides((*maker).createContext),
		decides((*maker).resolveContext),
		decides((*maker).setContextStatus),
		decides((*maker).setContext),
		decides((*maker).createItem),
		decides((*maker).appendItems),
		decides((*maker).setItemStatus),
		decides((*maker).editMessage),
		decides((*maker).deleteMessage),
		decides((*maker).addMessage),
		decides((*maker).shareThread),
		decides((*maker).unshareThread),
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
		decides((*maker).activateSkill),
		decides((*maker).retitleThread),
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
		decides((*maker).claimWriter),
		decides((*maker).renewWriter),
		decides((*maker).releaseWriter),

		beforeAny((*maker).mentionThread),
		decides((*maker).touchState),
		decides((*maker).destroyState),
		decides((*maker).releaseState),
		decides((*maker).expireState),
		decides((*maker).startSession),
		decides((*maker).completeSession),
		beforeAny((*maker).forkThread),
		beforeAny((*maker).handoffThread),
		decides((*maker).truncateThread),
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

// indexed returns the rows by the Go type of the data that they decide. Two rows of one
// type are a mistake in this package, which every program and test finds as it starts.
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
