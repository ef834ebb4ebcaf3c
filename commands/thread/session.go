package thread

import (
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/compact"
)

// sessions holds a thread's sessions: the open ones, oldest first, and the ids of the last
// completed ones. Both lists are bounded and never changed in place. A nil *sessions is empty.
type sessions struct {
	Open []session `json:"open,omitempty"`
	Done []string  `json:"done,omitempty"`
}

// session is a session that has not completed.
type session struct {
	ID string      `json:"id"`
	At events.Time `json:"at"` // by its own clock
}

// maxDoneSessions is how many completed sessions a thread remembers, so that a late repeat
// changes nothing.
const maxDoneSessions = events.MaxOpenSessions

// open returns a session that has started and not completed.
func (s *sessions) open(id string) (session, bool) {
	if s == nil {
		return session{}, false
	}
	i := slices.IndexFunc(s.Open, func(o session) bool { return o.ID == id })
	if i < 0 {
		return session{}, false
	}
	return s.Open[i], true
}

// done reports whether a session is among the last that have completed.
func (s *sessions) done(id string) bool { return s != nil && slices.Contains(s.Done, id) }

// full reports whether no further session can start before another completes.
func (s *sessions) full() bool { return s != nil && len(s.Open) >= events.MaxOpenSessions }

func (s *sessions) size() int64 {
	if s == nil {
		return 0
	}
	n := int64(48)
	for _, o := range s.Open {
		n += 24 + compact.TextSize(o.ID)
	}
	for _, id := range s.Done {
		n += 16 + compact.TextSize(id)
	}
	return n
}

// with returns a copy with one more open session.
func (s *sessions) with(d events.SessionStarted) *sessions {
	after := &sessions{}
	if s != nil {
		*after = *s
	}
	after.Open = append(slices.Clip(after.Open), session{ID: d.ID, At: timeOf(d.StartedAt)})
	return after
}

// without returns a copy in which the session has completed.
func (s *sessions) without(id string) *sessions {
	after := &sessions{}
	if s != nil {
		after.Open = slices.DeleteFunc(slices.Clone(s.Open), func(o session) bool { return o.ID == id })
		after.Done = slices.Clip(s.Done[max(0, len(s.Done)+1-maxDoneSessions):])
	}
	after.Done = append(after.Done, id)
	return after
}

func (m *decider) startSession(d events.StartSession) error {
	if m.state.Sessions.done(d.SessionID) {
		return events.Errorf(events.AlreadyExists, "session %s has completed; each request needs an id of its own", d.SessionID)
	}
	at, err := m.timeOr(d.StartedAt, "/startedAt")
	if err != nil {
		return err
	}
	m.openSession(d.SessionID, at)
	return nil
}

// openSession records the start of a session, unless it has started already. If too many are open,
// it first closes the oldest.
func (m *decider) openSession(id string, at events.Time) {
	if _, open := m.state.Sessions.open(id); open {
		return
	}
	if m.state.Sessions.full() {
		m.closeSession(m.state.Sessions.Open[0].ID, events.SessionUnknown, "")
	}
	m.emit(events.SessionStartedType, id, "", events.SessionStarted{ID: id, StartedAt: at.String()})
}

// timeOr parses a time in a command's data. If text is empty, it returns the command's own time.
func (m *decider) timeOr(text, path string) (events.Time, error) {
	if text == "" {
		return m.at, nil
	}
	at, err := events.ParseTime(text)
	if err != nil {
		return 0, events.Invalid(path, "%w", err)
	}
	return at, nil
}

func (m *decider) completeSession(d events.CompleteSession) error {
	_, open := m.state.Sessions.open(d.SessionID)
	switch {
	case open:
		m.closeSession(d.SessionID, outcome(d.ErrorText), d.ErrorText)
	case !m.state.Sessions.done(d.SessionID):
		return events.Missing("session", d.SessionID)
	}
	return nil
}

func outcome(errorText string) events.SessionOutcome {
	if errorText != "" {
		return events.SessionFailed
	}
	return events.SessionDone
}

func (m *decider) closeSession(id string, as events.SessionOutcome, errorText string) {
	s, _ := m.state.Sessions.open(id)
	m.emit(events.SessionCompletedType, id, "", events.SessionCompleted{ID: id, StartedAt: s.At.String(), Outcome: as, ErrorText: errorText})
}

// beginSession starts the session that a merge names, unless it has started or completed:
// background work may merge after its session has completed.
func (m *decider) beginSession(d *events.MergeSession) error {
	if d == nil || m.state.Sessions.done(d.ID) {
		return nil
	}
	at, err := m.timeOr(d.StartedAt, "/session/startedAt")
	if err != nil {
		return err
	}
	m.openSession(d.ID, at)
	return nil
}

// endSession completes the session that a merge names, if the merge says so.
func (m *decider) endSession(d *events.MergeSession) {
	if d == nil || !d.Completed {
		return
	}
	if _, open := m.state.Sessions.open(d.ID); open {
		m.closeSession(d.ID, outcome(d.ErrorText), d.ErrorText)
	}
}

// ofSession checks that an event names the session of its run.
func ofSession(session, want string) error {
	return unless(session == want, "its run answers session %q, and not %.80q", want, session)
}

func (r preconditions) SessionStarted(e *events.Event, d events.SessionStarted) error {
	_, open := r.state.Sessions.open(d.ID)
	return firstFault(
		about(e, d.ID, ""),
		unless(events.ValidSessionID(d.ID), "%.80q is not the id of a session", d.ID),
		isNew(open || r.state.Sessions.done(d.ID), "session", d.ID),
		unless(!r.state.Sessions.full(), "%d sessions are open", events.MaxOpenSessions),
		unless(timeOf(d.StartedAt).String() == d.StartedAt, "it started at %.40q, which is no time", d.StartedAt),
	)
}

func (r preconditions) SessionCompleted(e *events.Event, d events.SessionCompleted) error {
	s, open := r.state.Sessions.open(d.ID)
	return firstFault(
		about(e, d.ID, ""), exists(open, "session", d.ID),
		unless(s.At.String() == d.StartedAt, "it started at %s, and not at %.40q", s.At, d.StartedAt),
		unless(d.Outcome == outcome(d.ErrorText) || d.Outcome == events.SessionUnknown && d.ErrorText == "" && r.state.Sessions.full(),
			"its outcome is %.40q", d.Outcome),
	)
}
