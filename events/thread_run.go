package events

// ThreadRun is the current run of a thread in the thread's document. Lists of runs and metrics
// use it, so that they need not read executions that are over.
type ThreadRun struct {
	ExecutionID string    `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
	WaitingFor  []RunWait `json:"waitingFor,omitempty" doc:"What it waits for now."`
	Parked      bool      `json:"parked,omitzero" doc:"It waits without a worker."`
	Until       string    `json:"until,omitzero" schema:"pattern=time" doc:"When the wait for a worker ends."`
}
