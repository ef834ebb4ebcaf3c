package events

// ThreadRun is the run under way on a thread, as the thread's document has it: what
// lists of runs and metrics look at, so that they read no execution that is over.
type ThreadRun struct {
	ExecutionID string    `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
	WaitingFor  []RunWait `json:"waitingFor,omitempty" doc:"What it waits for now."`
	Parked      bool      `json:"parked,omitzero" doc:"No worker holds it meanwhile."`
	Until       string    `json:"until,omitzero" schema:"pattern=time" doc:"How long it waits for a worker at most."`
}
