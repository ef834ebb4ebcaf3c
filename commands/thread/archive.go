package thread

import "github.com/skein-threads/skein/events"

// ArchiveThread records that the thread's commits so far are archived, as they lie
// in an object that was read back. It comes from no request.
type ArchiveThread struct{ Record events.LifecycleArchived }

// Busy says why the thread cannot be archived, or nothing: something is under way
// on it, or is to happen by itself.
func (s *State) Busy() string {
	switch {
	case s.Active() != "" || len(s.executing()) > 0:
		return "an execution is under way"
	case s.Status == events.ThreadStreaming:
		return "it is streaming"
	case len(s.Queue) > 0:
		return "messages wait for the agent"
	case s.Effects > 0:
		return "effects are scheduled"
	}
	return ""
}

// archive decides on a state that must be the one that was archived.
func (m *maker) archive(d ArchiveThread) error {
	if d.Record.Chain != m.state.Chain {
		return events.Errorf(events.VersionConflict, "the thread has gone on since it was archived")
	}
	if why := m.state.Busy(); why != "" {
		return events.Errorf(events.Unavailable, "the thread cannot be archived: %s", why)
	}
	m.emit(events.LifecycleArchivedType, m.command.ThreadID, "", d.Record)
	return nil
}
