package rest

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/suggest"
)

// Rows returns the table of all routes, in the order of the documentation.
func Rows() []Row {
	return slices.Concat(rawRows(), threadRows(), listRows(), itemRows(), runRows(), relationRows(), fileRows(), streamRows(), tenantRows(), operatorRows())
}

func rawRows() []Row {
	return []Row{
		{Method: "POST", Path: "/api/commands/{name}", serve: (*service).anyCommand, Doc: "Executes a command."},
		{Method: "POST", Path: "/api/queries/{name}", serve: (*service).anyQuery, Doc: "Executes a query."},
		{Method: "GET", Path: "/api/openapi.json", serve: (*service).openAPI, Doc: "This description.", shows: shown{answer: jsonAnswer}},
	}
}

func threadRows() []Row {
	const thread = "/api/threads/{thread}"
	return []Row{
		{Method: "GET", Path: "/api/threads", Query: "thread.list"},
		{Method: "POST", Path: "/api/threads", Command: "thread.create", created: newThread},
		{Method: "GET", Path: thread, Query: "thread.get"},
		{Method: "PATCH", Path: thread, Command: "thread.update"},
		{Method: "DELETE", Path: thread, Command: "thread.delete"},
		{Method: "GET", Path: thread + "/document", Query: "thread.document"},
	}
}

// listRows are the lists of a thread, and their documents.
func listRows() []Row {
	const thread = "/api/threads/{thread}"
	return []Row{
		{Method: "GET", Path: thread + "/items", Query: "item.list"},
		{Method: "GET", Path: thread + "/items/{item}", Query: "item.get", fill: fills("item", "itemId")},
		{Method: "GET", Path: thread + "/messages", Query: "message.list"},
		{Method: "GET", Path: thread + "/messages/{message}", Query: "message.get", fill: fills("message", "messageId")},
		{Method: "GET", Path: thread + "/executions", Query: "execution.list"},
		{Method: "GET", Path: thread + "/executions/{execution}", Query: "execution.get", fill: fills("execution", "executionId")},
		{Method: "GET", Path: thread + "/steps", Query: "step.list"},
		{Method: "GET", Path: thread + "/parts", Query: "part.list"},
		{Method: "GET", Path: thread + "/contexts", Query: "context.list"},
		{Method: "GET", Path: thread + "/contexts/{context}", Query: "context.get", fill: fills("context", "contextId")},
		{Method: "GET", Path: thread + "/effects", Query: "effect.list"},
		{Method: "GET", Path: thread + "/logs", Query: "log.list"},
		{Method: "GET", Path: thread + "/relationships", Query: "relationship.list"},
		{Method: "GET", Path: thread + "/queue", Query: "queue.list"},
		{Method: "GET", Path: thread + "/shares", Query: "share.list"},
		{Method: "GET", Path: thread + "/state", Query: "state.get"},
	}
}

func itemRows() []Row {
	const thread = "/api/threads/{thread}"
	return []Row{
		{Method: "POST", Path: thread + "/items", Command: "item.create", created: newItem("items")},
		{Method: "POST", Path: thread + "/messages", Command: "message.add", created: newItem("messages")},
		{Method: "PATCH", Path: thread + "/messages/{message}", Command: "message.update", fill: fills("message", "messageId")},
		{Method: "DELETE", Path: thread + "/messages/{message}", Command: "message.delete", fill: fills("message", "itemId")},
	}
}

func runRows() []Row {
	const thread = "/api/threads/{thread}"
	return []Row{
		{Method: "POST", Path: thread + "/react", Command: "thread.react", serve: (*service).react},
		{Method: "POST", Path: thread + "/stop", Command: "run.stop"},
		{Method: "POST", Path: thread + "/cancel", Command: "run.cancel"},
		{Method: "POST", Path: thread + "/approvals/{call}", Command: "approval.resolve", fill: fills("call", "callId")},
		{Method: "POST", Path: thread + "/queue", Command: "tool.queue", serve: (*service).enqueue,
			Doc: "Queues a call of a tool; or, with text or item in place of name, a message for the agent, as thread.react takes it."},
		{Method: "PATCH", Path: thread + "/queue/{queued}", Command: "queue.edit", fill: fills("queued", "queuedId")},
		{Method: "DELETE", Path: thread + "/queue/{queued}", Command: "queue.remove", fill: fills("queued", "queuedId")},
		{Method: "POST", Path: thread + "/queue/{queued}/move", Command: "queue.move", fill: fills("queued", "queuedId")},
	}
}

func relationRows() []Row {
	const thread = "/api/threads/{thread}"
	return []Row{
		{Method: "POST", Path: thread + "/fork", Command: "thread.fork", created: newChild},
		{Method: "POST", Path: thread + "/handoff", Command: "thread.handoff", created: newChild},
		{Method: "POST", Path: thread + "/mention", Command: "thread.mention"},
		{Method: "POST", Path: thread + "/truncate", Command: "thread.truncate"},
	}
}

// tenantRows are the routes that belong to no thread.
func tenantRows() []Row {
	definition := map[string]string{"kind": "kind", "name": "name"}
	return []Row{
		{Method: "GET", Path: "/api/agents", Query: "definition.list", fixed: fills("kind", string(events.AgentKind)), Doc: "The tenant's agents."},
		{Method: "GET", Path: "/api/agents/{name...}", Query: "agent.get", fill: fills("name", "name")},
		{Method: "GET", Path: "/api/definitions", Query: "definition.list"},
		{Method: "GET", Path: "/api/definitions/{kind}/{name...}", Query: "definition.get", fill: definition},
		{Method: "PUT", Path: "/api/definitions/{kind}/{name...}", Command: "definition.apply", serve: (*service).putDefinition,
			Doc: "Adds or changes a definition: the body is the definition itself.", shows: shown{body: anyObject}},
		{Method: "DELETE", Path: "/api/definitions/{kind}/{name...}", Command: "definition.apply", serve: (*service).deleteDefinition,
			Doc: "Removes a definition.", shows: shown{body: noBody}},
		{Method: "GET", Path: "/api/workers", Query: "worker.list"},
		{Method: "GET", Path: "/api/runs", Query: "run.list"},
		{Method: "GET", Path: "/api/approvals", Query: "approval.list"},
		{Method: "GET", Path: "/api/effects", Query: "effect.list"},
		{Method: "GET", Path: "/api/shares", Query: "share.list"},
	}
}

// operatorRows are for operators, and of all tenants together.
func operatorRows() []Row {
	return []Row{
		{Method: "GET", Path: "/api/operations", serve: (*service).listOperations,
			Doc: "The last audits and backups, for operators.", shows: shown{answer: "operation_list"}},
	}
}

// fills says that a value of the path fills a field.
func fills(value, field string) map[string]string { return map[string]string{value: field} }

// threadPath returns the path of a thread.
func threadPath(thread string) string { return "/api/threads/" + url.PathEscape(thread) }

func newThread(r *events.Reply) (int, string) { return http.StatusCreated, threadPath(r.ThreadID) }

func newItem(list string) func(*events.Reply) (int, string) {
	return func(r *events.Reply) (int, string) {
		return http.StatusCreated, threadPath(r.ThreadID) + "/" + list + "/" + url.PathEscape(resultOf(r).ItemID)
	}
}

// newChild is of commands that create a thread. A summary that an agent writes first makes
// it later.
func newChild(r *events.Reply) (int, string) {
	result := resultOf(r)
	if result.ExecutionID != "" {
		return http.StatusAccepted, threadPath(result.ChildID)
	}
	return http.StatusCreated, threadPath(result.ChildID)
}

// resultOf returns the result of a reply, which may have none.
func resultOf(r *events.Reply) events.Result {
	if r.Result == nil {
		return events.Result{}
	}
	return *r.Result
}

// unknown returns the refusal of a name that is not in the contract.
func unknown(kind, name string, known []string) error {
	err := events.Missing(kind, name)
	if near := suggest.Nearest(name, known); near != "" {
		err.Message += "; did you mean " + near + "?"
	}
	return err
}
