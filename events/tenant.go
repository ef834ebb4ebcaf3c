package events

// The events of a tenant, of refused commands, and of deletion.
const (
	DefinitionChangedType  Type = "definition.changed"
	CommandRejectedType    Type = "command.rejected"
	LifecycleDestroyedType Type = "lifecycle.destroyed"
	LifecycleArchivedType  Type = "lifecycle.archived"
	LifecycleDeletedType   Type = "lifecycle.deleted"
)

// DefinitionChanged records that a definition of the tenant was created, changed or, without a
// definition, removed. If a removed name is defined again, its versions continue, so that a
// version never means two things.
type DefinitionChanged struct {
	Kind       DefinitionKind `json:"kind" schema:"required" doc:"What is defined."`
	Name       string         `json:"name" schema:"required,pattern=name" doc:"Its name."`
	Version    int64          `json:"version" schema:"required,minimum=1" doc:"Its own version, from 1."`
	Previous   int64          `json:"previous,omitzero" schema:"minimum=1" doc:"The version that it replaces, if any."`
	Digest     string         `json:"digest,omitzero" schema:"maxLength=64" doc:"Its SHA-256, in hex; absent when it was removed."`
	Definition JSON           `json:"definition,omitzero" schema:"object" doc:"In its canonical form; absent when it was removed."`
}

// CommandRejected records that a submitted command was refused, with the error that a request
// would have returned. Nothing else was written.
type CommandRejected struct {
	Command   string `json:"command" schema:"required,maxLength=128" doc:"The command, noun.verb."`
	CommandID string `json:"commandId,omitzero" schema:"maxLength=128" doc:"The id that it came with."`
	ThreadID  string `json:"threadId,omitzero" schema:"maxLength=512" doc:"The thread that it named."`
	Code      Code   `json:"code" schema:"required" doc:"The kind of the refusal."`
	Message   string `json:"message" schema:"required,maxLength=65536" doc:"What was wrong."`
	Details   JSON   `json:"details,omitzero" schema:"object" doc:"More about it; depends on the code."`
}

// LifecycleDestroyed records that a life of a thread's key-value state has ended: it takes no
// more writes. Its values can be read until state.closed, which follows at once if no
// application listens.
type LifecycleDestroyed struct {
	Reason    string   `json:"reason,omitzero" schema:"maxLength=1024" doc:"expired or destroyed."`
	Life      int64    `json:"life,omitzero" schema:"minimum=1" doc:"The life."`
	ContextID string   `json:"contextId,omitzero" schema:"pattern=id" doc:"The context that holds its values."`
	Listeners []string `json:"listeners,omitempty" schema:"maxItems=16" doc:"The applications that listen, until each sends a state.release."`
}

// LifecycleArchived records an archive: the earlier commits are in an object, back to the
// record of the previous archive, if any, which is the object's first commit. What the thread
// shows did not change.
type LifecycleArchived struct {
	Object   string `json:"object" schema:"required,minLength=1,maxLength=512" doc:"The object in the store thread_archive: tenant/thread/lastSeq."`
	Digest   string `json:"digest" schema:"required,minLength=64,maxLength=64" doc:"The hex SHA-256 of what the object holds, before it is compressed."`
	Commits  int64  `json:"commits" schema:"required,minimum=1" doc:"How many commits it holds."`
	Bytes    int64  `json:"bytes" schema:"required,minimum=1" doc:"The bytes of their bodies."`
	FirstSeq int64  `json:"firstSeq" schema:"required,minimum=1" doc:"The sequence in the log that the first of them had."`
	LastSeq  int64  `json:"lastSeq" schema:"required,minimum=1" doc:"The sequence in the log of the last."`
	Chain    string `json:"chain" schema:"required,minLength=64,maxLength=64" doc:"The chain of the last."`
}

// LifecycleDeleted is the last event of a thread: its tombstone.
type LifecycleDeleted struct {
	Purge bool `json:"purge,omitzero" doc:"The events before it are erased."`
}

type tenantRules interface {
	DefinitionChanged(e *Event, d DefinitionChanged) error
	CommandRejected(e *Event, d CommandRejected) error
}

func tenantEvents() []Row {
	return []Row{
		row(DefinitionChangedType, 1, "A definition of the tenant was added, changed or removed.", DefinitionChanged{
			Kind: PromptKind, Name: "triage", Version: 2, Previous: 1,
			Digest:     DefinitionDigest(JSON(`{"name":"triage","text":"You help with orders."}`)),
			Definition: JSON(`{"name":"triage","text":"You help with orders."}`),
		}, Rules.DefinitionChanged),
		row(CommandRejectedType, 1, "A submitted command was refused.",
			CommandRejected{Command: "thread.status", CommandID: exampleCommand, ThreadID: exampleThread, Code: IllegalTransition, Message: "thread is open and cannot become closed; allowed: streaming"}, Rules.CommandRejected),
	}
}

type lifecycleRules interface {
	LifecycleDestroyed(e *Event, d LifecycleDestroyed) error
	LifecycleArchived(e *Event, d LifecycleArchived) error
	LifecycleDeleted(e *Event, d LifecycleDeleted) error
}

func lifecycleEvents() []Row {
	return []Row{
		row(LifecycleDestroyedType, 1, "A life of the thread's key-value state ended.", LifecycleDestroyed{Reason: "expired", Life: 1, ContextID: exampleContext, Listeners: []string{"shop"}}, Rules.LifecycleDestroyed),
		row(LifecycleArchivedType, 1, "A thread's commits so far were archived; this is their record.", LifecycleArchived{
			Object: exampleTenant + "/" + exampleThread + "/4711", Digest: "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
			Commits: 12, Bytes: 9313, FirstSeq: 4688, LastSeq: 4711, Chain: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
		}, Rules.LifecycleArchived),
		row(LifecycleDeletedType, 1, "A thread was deleted; this is its tombstone.", LifecycleDeleted{Purge: true}, Rules.LifecycleDeleted),
	}
}
