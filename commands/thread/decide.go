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
	}
	if !m.state.Exists() {
		return events.Missing("thread", m.command.ThreadID)
	}
	switch d := p.Data.(type) {
	case events.SetThreadStatus:
		return m.setThreadStatus(d)
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
	}
	return events.Invalid("", "no such command: %s", p.Name)
}
