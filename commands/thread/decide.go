package thread

import (
	"github.com/skein-threads/skein/events"
)

// decide turns one part of a command into events. Which commands there are is
// told by the catalog of commands; that each has its case here is tested.
func (m *maker) decide(p Part) error {
	switch d := p.Data.(type) {
	case events.CreateThread:
		return m.createThread(d)
	case events.ResolveThread:
		return m.resolveThread(d)
	case events.CommandRejected:
		return m.rejectCommand(d)
	case events.ApplyDefinitions:
		return m.applyDefinitions(d)
	}
	if !m.state.Exists() {
		return events.Missing("thread", m.command.ThreadID)
	}
	switch d := p.Data.(type) {
	case events.SetThreadStatus:
		if err := m.setThreadStatus(d); err != nil {
			return err
		}
		return m.next()
	case events.UpdateThread:
		return m.updateThread(d)
	case events.FinishThread:
		return m.finishThread(d)
	case events.DeleteThread:
		return m.deleteThread(d)
	case events.CreateContext:
		return m.createContext(d)
	case events.ResolveContext:
		return m.resolveContext(d)
	case events.SetContextStatus:
		return m.setContextStatus(d)
	case events.SetContext:
		return m.setContext(d)
	case events.CreateItem:
		return m.createItem(d)
	case events.SetItemStatus:
		return m.setItemStatus(d)
	case events.EditMessage:
		return m.editMessage(d)
	case events.DeleteMessage:
		return m.deleteMessage(d)
	case events.AddMessage:
		return m.addMessage(d)
	case events.UpdateMessage:
		return m.updateMessage(d)
	case events.CreateExecution:
		return m.createExecution(d)
	case events.SetExecutionStatus:
		return m.setExecutionStatus(d)
	case events.CreateStep:
		return m.createStep(d)
	case events.SetStepStatus:
		return m.setStepStatus(d)
	case events.PutPart:
		return m.putPart(d)
	case events.WriteFile:
		return m.writeFile(d)
	case events.DeleteFile:
		return m.deleteFile(d)
	case events.CreateDirectory:
		return m.createDirectory(d)
	case events.RemoveDirectory:
		return m.removeDirectory(d)
	case events.RecordTrace:
		return m.recordTrace(d)
	case events.ScheduleEffect:
		return m.scheduleEffect(d)
	case events.CancelEffect:
		return m.cancelEffect(d)
	case StartEffect:
		return m.startEffect(d)
	case CompleteEffect:
		return m.completeEffect(d)
	case FailEffect:
		return m.failEffect(d)
	case ArchiveThread:
		return m.archive(d)
	}
	return m.decideRun(p)
}

// decideRun decides the parts that are about runs: those of callers, and those
// of workers, which come from no request.
func (m *maker) decideRun(p Part) error {
	switch d := p.Data.(type) {
	case events.ReactThread:
		return m.react(d)
	case events.StopRun:
		return m.stopRun(d)
	case events.CancelRun:
		return m.cancelRun(d)
	case events.RetryRun:
		return m.retryRun(d)
	case events.TurnRun:
		return m.turnRun(d)
	case events.GrantApproval:
		return m.grantApproval(d)
	case events.ResolveApproval:
		return m.resolveApproval(d)
	case events.DenyApproval:
		return m.denyApproval(d)
	case events.QueueTool:
		return m.queueTool(d)
	case events.AssignAgent:
		return m.assignAgent(d)
	case events.RemoveQueued:
		return m.removeQueued(d)
	case events.EditQueued:
		return m.editQueued(d)
	case events.MoveQueued:
		return m.moveQueued(d)
	case ReactFor:
		return m.reactFor(d.ReactThread, &d.Parent)
	case ClaimRun:
		return m.claimRun(d)
	case ReactStep:
		return m.reactStep(d)
	case EndCalls:
		return m.endCalls(d)
	case HoldCalls:
		return m.holdCalls(d)
	case ResumeCalls:
		return m.resumeCalls(d)
	case FailRun:
		return m.failRun(d)
	case AwaitWorkers:
		return m.awaitWorkers(d)
	case ParkRun:
		return m.parkRun(d)
	case WakeRun:
		return m.wakeRun(d)
	case RecordRun:
		return m.recordRun(d)
	}
	return events.Invalid("", "no such command: %s", p.Name)
}
