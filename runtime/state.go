package runtime

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/skein-threads/skein/events"
)

// ThreadState is the thread as tools, hooks and effects see it: the same operations,
// with the same meaning, as client.ThreadState, which implements it, has for callers
// outside. Writes are committed when a method returns, and reads show everything the
// run has written. It is safe for concurrent use.
//
// It exposes nothing of storage or streams. Values of the process are available through
// the optional interface client.NotPortable, only for tools that declare it: see
// ToolSpec.NotPortable.
type ThreadState interface {
	ThreadID() string
	AgentID() string    // the agent currently in charge, also after a handoff
	UserID() *string    // nil if the thread belongs to no user
	CreatedAt() int64   // in microseconds since the epoch
	Scratch() *sync.Map // a store that later tools of the same execution share
	// Execution returns the active execution, nil if there is none: an effect has one
	// of its own.
	Execution() events.ExecutionState

	GetMessages(ctx context.Context, o events.GetMessagesOptions) (*events.MessageList, error)
	GetMessage(ctx context.Context, id string) (*events.ThreadMessage, error) // nil if there is none
	InjectMessage(ctx context.Context, m events.AddMessage) (*events.ThreadMessage, error)
	UpdateMessage(ctx context.Context, id string, u events.MessageUpdates) (*events.ThreadMessage, error)
	DeleteMessage(ctx context.Context, id string) (bool, error)
	GetLogs(ctx context.Context, o events.GetLogsOptions) ([]events.Log, error)

	// Definition, LoadModel, LoadPrompt and LoadAgent return a definition of the
	// tenant. The error is not_found if there is none with that name; client.LoadModel
	// and its siblings decode it into another type.
	Definition(ctx context.Context, kind events.DefinitionKind, name string) (*events.Definition, error)
	LoadModel(ctx context.Context, name string) (events.ModelDefinition, error)
	LoadPrompt(ctx context.Context, name string) (events.PromptDefinition, error)
	LoadAgent(ctx context.Context, name string) (events.AgentDefinition, error)
	GetPromptNames(ctx context.Context) ([]string, error)
	GetAgentNames(ctx context.Context) ([]string, error)
	GetModelNames(ctx context.Context) ([]string, error)

	// The thread's file system: what does not exist is nil, and a directory that does not
	// exist has no entries.
	WriteFile(ctx context.Context, path string, data []byte, mimeType string, o events.WriteFileOptions) (*events.ThreadFile, error)
	WriteFileFrom(ctx context.Context, path string, from io.Reader, mimeType string, o events.WriteFileOptions) (*events.ThreadFile, error)
	WriteExternalFile(ctx context.Context, path, location string, size int64, mimeType string, o events.WriteFileOptions) (*events.ThreadFile, error)
	ReadFile(ctx context.Context, path string) ([]byte, error)
	ReadFileStream(ctx context.Context, path string) (iter.Seq2[events.FileChunk, error], error)
	StatFile(ctx context.Context, path string) (*events.ThreadFile, error)
	ReaddirFile(ctx context.Context, path string) (*events.ThreadFileList, error)
	UnlinkFile(ctx context.Context, path string) error
	MkdirFile(ctx context.Context, path string) (*events.ThreadFile, error)
	RmdirFile(ctx context.Context, path string) error
	GetFileStats(ctx context.Context) (*events.FileStats, error)
	GrepFiles(ctx context.Context, pattern string) (*events.GrepList, error)
	FindFiles(ctx context.Context, pattern string) (*events.FindList, error)
	GetFileThumbnail(ctx context.Context, path string) ([]byte, error)

	// QueueTool queues a call and returns when that is durable: within an execution the
	// next step makes it.
	QueueTool(ctx context.Context, name string, args any) error
	// InvokeTool makes a call and waits for it: within an execution immediately, see
	// Execution.Invoke. A failure, including an unknown tool, is a result with status
	// error.
	InvokeTool(ctx context.Context, name string, args any) (events.ToolResult, error)
	// RunAgent starts a run of an agent on the thread and waits until it has ended.
	// Within an execution this requires a dual_ai agent, which works in a thread of its
	// own; for any other the error is illegal_transition: queue it as a tool, so that
	// it takes the thread over. An unknown one is a not_found.
	RunAgent(ctx context.Context, name string) error

	ScheduleEffect(ctx context.Context, name string, args any, delay time.Duration, options ...events.ScheduleOption) (id string, err error)
	GetScheduledEffects(ctx context.Context, name string) ([]events.ThreadEffect, error) // all if name is empty
	RemoveScheduledEffect(ctx context.Context, id string) (bool, error)

	Emit(ctx context.Context, event string, data any) error
}

// State returns the thread as code in a worker sees it. It is called for every call of
// a tool, hook and effect: it must be cheap, send no requests, and be safe for
// concurrent use.
type State func(tenant, thread string, x *Execution) ThreadState
