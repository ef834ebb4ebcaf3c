package runtime

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/skein-threads/skein/events"
)

// ThreadState is the thread as tools, hooks and effects see it (SA-10): the same
// operations, with the same meaning, as client.ThreadState has for callers outside,
// which implements it. What its methods write is committed when they return, and
// what they read shows all that the run has written. Safe for concurrent use.
//
// Storage, streams and the like do not show through it (SA-172..SA-174). Values of
// the process can be reached by the optional interface client.NotPortable, only
// where they are meant to be: see ToolSpec.NotPortable.
type ThreadState interface {
	ThreadID() string   // SA-12
	AgentID() string    // the agent in charge now, also after a handoff (SA-13)
	UserID() *string    // nil if it belongs to none (SA-14)
	CreatedAt() int64   // in microseconds since the epoch (SA-15)
	Scratch() *sync.Map // what one tool puts there a later one of the same execution finds (SA-16, SA-91..SA-93)
	// Execution gives the execution under way, and nil where there is none: an
	// effect has one of its own (SA-17, SA-19, SA-20, SA-22).
	Execution() events.ExecutionState

	GetMessages(ctx context.Context, o events.GetMessagesOptions) (*events.MessageList, error)
	GetMessage(ctx context.Context, id string) (*events.ThreadMessage, error) // nil if there is none
	InjectMessage(ctx context.Context, m events.AddMessage) (*events.ThreadMessage, error)
	UpdateMessage(ctx context.Context, id string, u events.MessageUpdates) (*events.ThreadMessage, error)
	DeleteMessage(ctx context.Context, id string) (bool, error)
	GetLogs(ctx context.Context, o events.GetLogsOptions) ([]events.Log, error)

	// Definition, LoadModel, LoadPrompt and LoadAgent give a definition of the
	// tenant's. The error is not_found if there is none of that name (SA-55..SA-57,
	// SA-61); client.LoadModel and its like read it into another type.
	Definition(ctx context.Context, kind events.DefinitionKind, name string) (*events.Definition, error)
	LoadModel(ctx context.Context, name string) (events.ModelDefinition, error)
	LoadPrompt(ctx context.Context, name string) (events.PromptDefinition, error)
	LoadAgent(ctx context.Context, name string) (events.AgentDefinition, error)
	GetPromptNames(ctx context.Context) ([]string, error) // SA-58
	GetAgentNames(ctx context.Context) ([]string, error)  // SA-59
	GetModelNames(ctx context.Context) ([]string, error)  // SA-60

	// The thread's file system (SA-95): what is not there is nil.
	WriteFile(ctx context.Context, path string, data []byte, mimeType string, o events.WriteFileOptions) (*events.FileRecord, error)
	WriteFileFrom(ctx context.Context, path string, from io.Reader, mimeType string, o events.WriteFileOptions) (*events.FileRecord, error)
	WriteExternalFile(ctx context.Context, path, location string, size int64, mimeType string, o events.WriteFileOptions) (*events.FileRecord, error)
	ReadFile(ctx context.Context, path string) ([]byte, error)
	ReadFileStream(ctx context.Context, path string) (iter.Seq2[events.FileChunk, error], error)
	StatFile(ctx context.Context, path string) (*events.FileRecord, error)
	ReaddirFile(ctx context.Context, path string) (*events.FileList, error)
	UnlinkFile(ctx context.Context, path string) error
	MkdirFile(ctx context.Context, path string) (*events.FileRecord, error)
	RmdirFile(ctx context.Context, path string) error
	GetFileStats(ctx context.Context) (*events.FileStats, error)
	GrepFiles(ctx context.Context, pattern string) (*events.GrepList, error)
	FindFiles(ctx context.Context, pattern string) (*events.FindList, error)
	GetFileThumbnail(ctx context.Context, path string) ([]byte, error)

	// QueueTool queues a call and returns when that is durable: within an execution
	// its next step makes it (SA-62..SA-64).
	QueueTool(ctx context.Context, name string, args any) error
	// InvokeTool makes a call and waits for it (SA-65): within an execution at once
	// and in place, see Execution.Invoke. A failure, also an unknown tool, is a result
	// of status error (SA-66).
	InvokeTool(ctx context.Context, name string, args any) (events.ToolResult, error)
	// RunAgent has an agent work on the thread and waits until it has ended
	// (SA-69). Within an execution only a dual_ai agent can, since it works in a thread
	// of its own; for any other the error is illegal_transition: queue it as a tool, so that it
	// takes the thread over. One that is not known is a not_found.
	RunAgent(ctx context.Context, name string) error

	ScheduleEffect(ctx context.Context, name string, args any, delay time.Duration) (id string, err error) // SA-74..SA-78
	GetScheduledEffects(ctx context.Context, name string) ([]events.ScheduledEffect, error)                // all if name is empty (SA-84)
	RemoveScheduledEffect(ctx context.Context, id string) (bool, error)                                    // SA-85

	Emit(ctx context.Context, event string, data any) error // SA-87..SA-90
}

// State gives the thread as what runs in a worker sees it. It is called for every
// call of a tool, hook and effect: it must be cheap, ask nobody, and be safe for
// concurrent use.
type State func(tenant, thread string, x *Execution) ThreadState
