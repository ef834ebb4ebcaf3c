package events

// Limits of pushes.
const (
	MaxPushesOfRun = 10   // of one run, of all callers
	MaxPushes      = 1000 // of a tenant
)

// PushForm is the protocol in which the updates of a run are sent.
type PushForm string

// The forms of pushes.
const (
	PushA2A  PushForm = "a2a/1.0"
	PushA2A0 PushForm = "a2a/0.3"
)

// Enum lists the forms.
func (PushForm) Enum() []string { return []string{string(PushA2A), string(PushA2A0)} }

// SetPush has the updates of a run sent to a URL, until the run has ended.
type SetPush struct {
	ID          string   `json:"id" schema:"required,pattern=uuid" doc:"The push's id. A push of the thread with the same id is replaced."`
	ExecutionID string   `json:"executionId" schema:"required,pattern=id" doc:"The run."`
	Form        PushForm `json:"form" schema:"required" doc:"How the updates are written."`
	Name        string   `json:"name,omitzero" schema:"maxLength=128" doc:"What its owner calls it."`
	Owner       string   `json:"owner,omitzero" schema:"maxLength=128" doc:"Who set it."`
	URL         string   `json:"url" schema:"required,minLength=1,maxLength=2048" doc:"Where they are sent, http or https."`
	Token       string   `json:"token,omitzero" schema:"maxLength=4096" doc:"Sent with each update, as X-A2A-Notification-Token."`
	Scheme      string   `json:"scheme,omitzero" schema:"maxLength=64" doc:"The scheme of the header Authorization, such as Bearer."`
	Credentials string   `json:"credentials,omitzero" schema:"maxLength=4096" doc:"What follows the scheme."`
	Base        string   `json:"base,omitzero" schema:"maxLength=2048" doc:"What URLs of files begin with."`
	FromSeq     int64    `json:"fromSeq,omitzero" schema:"minimum=0,maximum=9007199254740991" doc:"The sequence in the log from which updates are sent; from now on if absent."`
}

// DeletePush ends a push. Nothing happens if there is none.
type DeletePush struct {
	ID string `json:"id" schema:"required,pattern=uuid" doc:"The push's id."`
}

// Push is a push as queries show it, without its secrets.
type Push struct {
	ID          string   `json:"id" schema:"required,pattern=uuid" doc:"The id."`
	ExecutionID string   `json:"executionId" schema:"required,pattern=id" doc:"The run."`
	Form        PushForm `json:"form" schema:"required" doc:"How the updates are written."`
	Name        string   `json:"name,omitzero" doc:"What its owner calls it."`
	Owner       string   `json:"owner,omitzero" doc:"Who set it."`
	URL         string   `json:"url" schema:"required" doc:"Where the updates are sent."`
	Scheme      string   `json:"scheme,omitzero" doc:"The scheme of the header Authorization."`
	Failures    int64    `json:"failures,omitzero" doc:"How many attempts in a row have failed."`
}

// ListPushes asks for the pushes of a thread's runs that have not ended.
type ListPushes struct {
	ThreadID    string `json:"threadId" schema:"required,pattern=thread" doc:"The thread."`
	ExecutionID string `json:"executionId,omitzero" schema:"pattern=id" doc:"Only those of this run."`
}

// PushList is the pushes of a thread's runs.
type PushList struct {
	Pushes []Push `json:"pushes" schema:"required" doc:"The pushes, in the order of their ids."`
}

func pushCommands() []Command {
	list := []Command{
		command("push.set", "Has the updates of a run sent to a URL. Its secrets are not part of the log.",
			SetPush{ID: exampleEffect, ExecutionID: exampleExecution, Form: PushA2A, URL: "https://client.example/a2a", Token: "kept-by-the-client"}),
		command("push.delete", "Ends a push.", DeletePush{ID: exampleEffect}),
	}
	for i := range list {
		list[i].Single, list[i].Unlogged = true, true
	}
	return list
}

func pushQueries() []Query {
	return []Query{query("push.list", "The pushes of a thread's runs.", ListPushes{ThreadID: exampleThread})}
}

func pushDocuments() []Document {
	return []Document{document[PushList]("push_list", "The pushes of a thread's runs.")}
}

func (ListPushes) answer() (a PushList) { return a }
