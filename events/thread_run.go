package events

// ThreadRun is the run under way on a thread, as the thread's document has it: what
// lists of runs and metrics look at, so that they read no execution that is over.
type ThreadRun struct {
	ExecutionID string    `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
	WaitingFor  []RunWait `json:"waitingFor,omitempty" doc:"What it waits for now."`
	Parked      bool      `json:"parked,omitzero" doc:"It waits without a worker."`
	Until       string    `json:"until,omitzero" schema:"pattern=time" doc:"When the wait for a worker ends."`
}
