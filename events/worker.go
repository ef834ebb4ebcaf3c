package events

// ServedKind says which kind of definition needs workers.
type ServedKind string

// The kinds of definitions that need workers. An agent without a definition counts as one.
const (
	ServedAgent   ServedKind = "agent"
	ServedModel   ServedKind = "model"
	ServedReactor ServedKind = "reactor"
	ServedTool    ServedKind = "tool"
)

// Enum lists the kinds.
func (ServedKind) Enum() []string {
	return []string{string(ServedAgent), string(ServedModel), string(ServedReactor), string(ServedTool)}
}

// WorkerPlace says where a worker is.
type WorkerPlace string

// Where workers are.
const (
	ServerPlace WorkerPlace = "server"
	NATSPlace   WorkerPlace = "nats"
	HTTPPlace   WorkerPlace = "http"
	MCPPlace    WorkerPlace = "mcp"
	A2APlace    WorkerPlace = "a2a"
)

// Enum lists the places.
func (WorkerPlace) Enum() []string {
	return []string{string(ServerPlace), string(NATSPlace), string(HTTPPlace), string(MCPPlace), string(A2APlace)}
}

// WorkerState says whether a process serves a reactor or a tool.
type WorkerState string

// Whether a process serves a reactor or a tool.
const (
	WorkerServed    WorkerState = "served"
	WorkerAbsent    WorkerState = "absent"
	WorkerUnchecked WorkerState = "unchecked"
)

// Enum lists the states.
func (WorkerState) Enum() []string {
	return []string{string(WorkerServed), string(WorkerAbsent), string(WorkerUnchecked)}
}

// Worker is who serves a reactor or a tool.
type Worker struct {
	Kind  WorkerKind  `json:"kind" schema:"required" doc:"What it is."`
	Name  string      `json:"name" schema:"required,maxLength=256" doc:"The reactor, or the tool."`
	Place WorkerPlace `json:"place" schema:"required" doc:"server: the process that answers; nats: any process on NATS; http and mcp: what its definition names."`
	State WorkerState `json:"state" schema:"required" doc:"absent: runs wait for a process; unchecked: only a call would tell."`
	// NotPortable is true of a Go tool that uses the runtime context of its process.
	NotPortable bool `json:"notPortable,omitzero" doc:"A Go tool that depends on its process, and cannot be packed."`
}

// Serving is what an agent, a model, a reactor or a tool needs of processes.
type Serving struct {
	Kind    ServedKind `json:"kind" schema:"required" doc:"What it is."`
	Name    string     `json:"name" schema:"required,pattern=name" doc:"Its name."`
	Defined bool       `json:"defined" schema:"required" doc:"The tenant defines it. An agent that threads name needs no definition."`
	Workers []Worker   `json:"workers" schema:"required" doc:"Who serves it; empty for tools of the types agent and person."`
}

// ListWorkers returns who serves the agents, models, reactors and tools of the tenant now, by
// kind and name: those that it defines, and agents that its threads name without a definition.
type ListWorkers struct {
	Kind   ServedKind `json:"kind,omitzero" doc:"Only those of this kind."`
	Names  []string   `json:"names,omitempty" schema:"maxItems=200,items=name" doc:"Only those of these names; needs kind."`
	Limit  *int64     `json:"limit,omitzero" schema:"minimum=1,maximum=200" doc:"The largest number to return; 100 if absent."`
	Cursor string     `json:"cursor,omitzero" schema:"maxLength=512" doc:"nextCursor of the page before."`
	Fresh
}

// WorkerList is a page of who serves what.
type WorkerList struct {
	Serving    []Serving `json:"serving" schema:"required" doc:"Who serves what."`
	NextCursor string    `json:"nextCursor,omitzero" doc:"For the next page; absent on the last one."`
}

func workerQueries() []Query {
	return []Query{query("worker.list", "Who serves the tenant's agents, models, reactors and tools now.", ListWorkers{Kind: ServedTool}).of(WholeTenant)}
}

func workerDocuments() []Document {
	return []Document{document[Serving]("serving", "Which processes serve an agent, a model, a reactor or a tool."), document[WorkerList]("worker_list", "A page of who serves what.")}
}

// The document that answers each query, for [QueryFor].
func (ListWorkers) answer() (a WorkerList) { return a }
