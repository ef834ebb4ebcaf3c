package thread

import "github.com/skein-threads/skein/events"

// ArchiveThread records that the thread's earlier commits are archived in an object, which was
// read back and verified. No request contains it.
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
	}
	return ""
}

// archive refuses a state that is no longer the one that was archived.
func (m *maker) archive(d ArchiveThread) error {
	if d.Record.Chain != m.state.Chain {
		return events.Errorf(events.VersionConflict, "the thread has changed since its commits were copied to the archive; archive it again")
	}
	if why := m.state.Busy(); why != "" {
		return events.Errorf(events.Unavailable, "the thread cannot be archived: %s", why)
	}
	m.emit(events.LifecycleArchivedType, m.command.ThreadID, "", d.Record)
	return nil
}
