package thread

import (
	"github.com/skein-threads/skein/events"
)

func (m *decider) createThread(d events.CreateThread) error {
	s, id := m.state, m.command.ThreadID
	switch {
	case s.Exists():
		return events.Taken("thread", id)
	case s.Existed():
		return events.TakenByDeleted(id)
	}
	created := events.ThreadCreated{
		ID: id, Status: events.ThreadMachine().Initial(), AgentID: d.AgentID, UserID: d.UserID, Title: d.Title,
		Metadata: d.Metadata, Env: d.Env, MainThreadID: d.MainThreadID,
	}
	if d.Key != "" {
		created.Key = &d.Key
	}
	if err := m.checkType(d.ContextType, "/context", d.Context); err != nil {
		return err
	}
	if err := m.workFor(d.MainThreadID); err != nil {
		return err
	}
	m.emit(events.ThreadCreatedType, id, "", created)
	ctx := m.id("", events.ContextPrefix)
	m.emit(events.ContextCreatedType, ctx, "", events.ContextCreated{
		ID: ctx, Status: events.ContextMachine().Initial(), Default: true, Type: d.ContextType, Content: orNull(d.Context),
	})
	if d.Key != "" {
		m.emit(events.KeyClaimedType, id, "", events.KeyClaimed{Key: d.Key, ThreadID: id})
	}
	return nil
}

// workFor records on a thread's main thread that it was created. A deleted main thread refuses new
// workers; a missing one is ignored.
func (m *decider) workFor(id string) error {
	if id == "" {
		return nil
	}
	main := m.group[id]
	switch own := m.command.ThreadID; {
	case id == own:
		return events.Invalid("/mainThreadId", "thread %s cannot work for itself; name another thread", id)
	case main == nil:
		return events.Invalid("/mainThreadId", "a thread that works for another is decided with that one only")
	case main.state.Exists():
		main.emit(events.SubthreadAddedType, id, "", events.SubthreadAdded{ThreadID: own})
	case main.state.Existed():
		return events.MissingThread(id)
	}
	return nil
}

func (m *decider) resolveThread(d events.ResolveThread) error {
	created := !m.state.Exists()
	if created {
		if err := m.createThread(events.CreateThread(d)); err != nil {
			return err
		}
	}
	m.emit(events.ThreadResolvedType, m.command.ThreadID, "", events.ThreadResolved{Key: d.Key, Created: created})
	return nil
}

func (m *decider) setThreadStatus(d events.SetThreadStatus) error {
	id := m.command.ThreadID
	if err := events.ThreadMachine().Check(id, m.state.Status, d.To); err != nil {
		return err
	}
	m.emit(events.ThreadStatusChangedType, id, "", events.ThreadStatusChanged{From: m.state.Status, To: d.To, Reason: d.Reason})
	return nil
}

// changeThreadStatus sets the thread's status as a caller asks, and starts what waited for it.
// Nothing ever starts on a closed thread, so its queue is emptied.
func (m *decider) changeThreadStatus(d events.SetThreadStatus) error {
	if err := m.runsAlone(d.To); err != nil {
		return err
	}
	if err := m.setThreadStatus(d); err != nil {
		return err
	}
	if d.To == events.ThreadClosed {
		for _, q := range m.state.Queue {
			m.emit(events.QueueRemovedType, q.ID, "", events.QueueRemoved{ID: q.ID, ExecutionID: q.Execution})
		}
	}
	return m.next()
}

// runsAlone refuses to change the status of a thread while Skein executes a run on it. The run's
// end sets the status; changing it now would let a second run start.
func (m *decider) runsAlone(to events.ThreadStatus) error {
	x, _ := m.state.execution(m.state.head.Active)
	if x.Run == nil || x.Status != events.Executing {
		return nil
	}
	err := events.Errorf(events.IllegalTransition, "thread %s is %s as long as execution %s runs, whose end moves it; to end it, use run.stop or run.cancel",
		m.command.ThreadID, m.state.Status, m.state.head.Active)
	err.Details = &events.ErrorDetails{Entity: "thread", ID: m.command.ThreadID, From: string(m.state.Status), To: string(to)}
	return err
}

func (m *decider) updateThread(d events.UpdateThread) error {
	if d.Title == nil && d.Archived == nil && d.Draft == nil && d.AutoSubmitDraft == nil && d.AgentMode == nil &&
		d.MaxTokens == nil && d.UserID == nil && d.Metadata == nil && d.Env == nil && d.Policy == nil {
		return events.Invalid("", "thread.update needs at least one field to change")
	}
	if d.UserID != nil && *d.UserID != m.state.User {
		if r := m.command.credential(); r != nil && r.Scoped() {
			return events.Errorf(events.Forbidden, "the credential is limited to some threads, and changes no thread's user; leave userId out")
		}
	}
	if err := m.mayChoose(d.AgentMode); err != nil {
		return err
	}
	changed := events.ProfileChanged{
		Title: d.Title, Archived: d.Archived, Draft: d.Draft, AutoSubmitDraft: d.AutoSubmitDraft, AgentMode: d.AgentMode,
		MaxTokens: d.MaxTokens, UserID: d.UserID, Metadata: d.Metadata, Env: d.Env, Policy: d.Policy,
	}
	if d.Draft != nil || d.AutoSubmitDraft != nil {
		changed.Rights = m.command.Rights.Recorded()
	}
	m.emit(events.ProfileChangedType, m.command.ThreadID, "", changed)
	return nil
}

func (m *decider) finishThread(d events.FinishThread) error {
	x, ok := m.state.execution(d.ExecutionID)
	switch {
	case !ok:
		return events.Missing("execution", d.ExecutionID)
	case x.Finished:
		return events.Taken("thread.finished of execution", d.ExecutionID)
	case x.Status == events.Executing:
		return events.Invalid("/executionId", "execution %s is still executing; end it first", d.ExecutionID)
	}
	m.emit(events.ThreadFinishedType, m.command.ThreadID, d.ExecutionID,
		events.ThreadFinished{ExecutionID: d.ExecutionID, Status: x.Status, Reason: d.Reason})
	return nil
}

func (m *decider) deleteThread(d events.DeleteThread) error {
	id, key := m.command.ThreadID, m.state.Key
	if err := m.abort("the thread is deleted"); err != nil {
		return err
	}
	if key != "" {
		m.emit(events.KeyReleasedType, id, "", events.KeyReleased{Key: key, ThreadID: id})
	}
	m.emit(events.LifecycleDeletedType, id, "", events.LifecycleDeleted(d))
	return nil
}

// rejectCommand records that a submitted command was refused: on the thread that it named, or
// else on the tenant.
func (m *decider) rejectCommand(d events.CommandRejected) error {
	id := m.command.ThreadID
	if events.IsThread(id) && !m.state.Exists() {
		return events.Missing("thread", id)
	}
	m.emit(events.CommandRejectedType, id, "", d)
	return nil
}

// ArchiveThread records that the thread's earlier commits are archived in an object, which was
// read back and verified. Clients cannot send it.
type ArchiveThread struct{ Record events.LifecycleArchived }

// Busy returns why the thread cannot be archived, "" if it can: it has in-flight work, or
// scheduled effects.
func (s *State) Busy() string {
	switch {
	case s.Active() != "" || len(s.executing()) > 0:
		return "an execution is in progress"
	case s.Status == events.ThreadStreaming:
		return "it is streaming"
	case len(s.Queue) > 0:
		return "messages wait for the agent"
	case s.Effects > 0:
		return "effects are scheduled"
	case s.Life.open() || len(s.Ended) > 0:
		return "its key-value state has not ended, or is not cleared yet"
	}
	return ""
}

// archive refuses the record if the thread has changed since it was copied to the archive.
func (m *decider) archive(d ArchiveThread) error {
	if d.Record.Chain != m.state.Chain {
		return events.Errorf(events.VersionConflict, "the thread has changed since its commits were copied to the archive; archive it again")
	}
	if why := m.state.Busy(); why != "" {
		return events.Errorf(events.Unavailable, "the thread cannot be archived: %s", why)
	}
	m.emit(events.LifecycleArchivedType, m.command.ThreadID, "", d.Record)
	return nil
}
