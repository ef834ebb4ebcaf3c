package events

// The events of sessions: single requests of a conversation. See docs/state.md.
const (
	SessionStartedType   Type = "session.started"
	SessionCompletedType Type = "session.completed"
)

// SessionPrefix begins the ids of sessions; lower-case hex digits follow.
const SessionPrefix = "sess_"

// MaxOpenSessions bounds the sessions of a thread that have started and not completed: when a
// further one starts, the oldest is completed with the outcome unknown.
const MaxOpenSessions = 100

// SessionOutcome is how a session ended.
type SessionOutcome string

// The outcomes of a session.
const (
	SessionDone    SessionOutcome = "completed"
	SessionFailed  SessionOutcome = "failed"
	SessionUnknown SessionOutcome = "unknown" // nobody completed it, and many others started since
)

// Enum lists the outcomes.
func (SessionOutcome) Enum() []string {
	return []string{string(SessionDone), string(SessionFailed), string(SessionUnknown)}
}

// SessionStarted records that a request of the conversation started. The time is the caller's
// own.
type SessionStarted struct {
	ID        string `json:"id" schema:"required,pattern=session" doc:"The session's id."`
	StartedAt string `json:"startedAt" schema:"required,pattern=time" doc:"When it started, by the clock of its process."`
}

// SessionCompleted records that a request of the conversation has ended, with its background
// work.
type SessionCompleted struct {
	ID        string         `json:"id" schema:"required,pattern=session" doc:"The session's id."`
	StartedAt string         `json:"startedAt" schema:"required,pattern=time" doc:"When it started, by the clock of its process."`
	Outcome   SessionOutcome `json:"outcome" schema:"required" doc:"How it ended; unknown: nobody said so."`
	ErrorText string         `json:"errorText,omitzero" schema:"maxLength=65536" doc:"Why it failed."`
}

// Data of the commands.
type (
	// StartSession starts a session. A repeat changes nothing.
	StartSession struct {
		SessionID string `json:"sessionId" schema:"required,pattern=session" doc:"The session, new for each request."`
		StartedAt string `json:"startedAt,omitzero" schema:"pattern=time" doc:"When it started; now if absent."`
	}
	// CompleteSession completes a session that has started. A repeat changes nothing.
	CompleteSession struct {
		SessionID string `json:"sessionId" schema:"required,pattern=session" doc:"The session."`
		ErrorText string `json:"errorText,omitzero" schema:"maxLength=65536" doc:"Why it failed; absent if it succeeded."`
	}
	// MergeSession names the session of a merge, so that its start and its end need no command
	// of their own.
	MergeSession struct {
		ID        string `json:"id" schema:"required,pattern=session" doc:"The session, which this merge starts unless it has started."`
		StartedAt string `json:"startedAt,omitzero" schema:"pattern=time" doc:"When it started; now if absent."`
		Completed bool   `json:"completed,omitzero" doc:"It completes with this merge."`
		ErrorText string `json:"errorText,omitzero" schema:"maxLength=65536" doc:"With completed: why it failed, if it did."`
	}
)

// Check validates what spans more than one field.
func (s MergeSession) Check() error {
	if s.ErrorText != "" && !s.Completed {
		return Invalid("/errorText", "only a session that completes has an error; set completed")
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (MergeSession) Constraint() string {
	return `{"anyOf":[{"properties":{"errorText":{"enum":["",null]}}},{"required":["completed"],"properties":{"completed":{"const":true}}}]}`
}

type sessionRules interface {
	SessionStarted(e *Event, d SessionStarted) error
	SessionCompleted(e *Event, d SessionCompleted) error
}

func sessionEvents() []Row {
	return []Row{
		row(SessionStartedType, 1, "A request of the conversation started.",
			SessionStarted{ID: exampleSession, StartedAt: exampleMoment}, Rules.SessionStarted),
		row(SessionCompletedType, 1, "A request of the conversation has ended.",
			SessionCompleted{ID: exampleSession, StartedAt: exampleMoment, Outcome: SessionDone}, Rules.SessionCompleted),
	}
}

func sessionCommands() []Command {
	return []Command{
		command("session.start", "Records that a request of the conversation started.",
			StartSession{SessionID: exampleSession}, SessionStartedType, SessionCompletedType),
		command("session.complete", "Records that a request of the conversation has ended.",
			CompleteSession{SessionID: exampleSession}, SessionCompletedType),
	}
}
