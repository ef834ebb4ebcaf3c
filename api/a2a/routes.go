package a2a

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/events"
)

// The headers that name the thread and the run of an answer.
const (
	headerThread    = "Skein-Thread-Id"
	headerExecution = "Skein-Execution-Id"
)

// Options configures Routes.
type Options struct {
	Agent string // whose card is at /.well-known/agent-card.json; default none
}

// server has the routes.
type server struct {
	edge *edge.Edge
	o    Options
}

// Routes adds /a2a, and the card of one agent, to an edge.
func Routes(e *edge.Edge, o Options) {
	s := &server{e, o}
	e.Handle("GET "+cardPath, func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		if o.Agent == "" {
			return events.Errorf(events.NotFound, "no agent has its card here; GET /a2a/{agent}%s, or name one with --a2a-agent", cardPath)
		}
		return s.sendCard(w, r, c, o.Agent)
	})
	e.Handle("GET /a2a/{agent}"+cardPath, func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		return s.sendCard(w, r, c, r.PathValue("agent"))
	})
	e.HandlePages("POST /a2a/{agent}", s.call, refuseWith(rpc{}))
	for pattern, name := range map[string]string{
		"POST /a2a/{agent}/message:send": "SendMessage", "POST /a2a/{agent}/message:stream": "SendStreamingMessage",
		"GET /a2a/{agent}/tasks": "ListTasks", "GET /a2a/{agent}/extendedAgentCard": "GetExtendedAgentCard",
		"GET /a2a/{agent}/tasks/{task}": "GetTask", "POST /a2a/{agent}/tasks/{task}": "",
		"POST /a2a/{agent}/tasks/{task}/pushNotificationConfigs":        "CreateTaskPushNotificationConfig",
		"GET /a2a/{agent}/tasks/{task}/pushNotificationConfigs":         "ListTaskPushNotificationConfigs",
		"GET /a2a/{agent}/tasks/{task}/pushNotificationConfigs/{id}":    "GetTaskPushNotificationConfig",
		"DELETE /a2a/{agent}/tasks/{task}/pushNotificationConfigs/{id}": "DeleteTaskPushNotificationConfig",
	} {
		e.HandlePages(pattern, func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error { return s.rest(w, r, c, name) }, refuseWith(rest{}))
	}
}

// url returns the URL of an agent.
func (s *server) url(r *http.Request, agent string) string {
	return s.edge.BaseURL(r) + "/a2a/" + url.PathEscape(agent)
}

// call answers a request of JSON-RPC.
func (s *server) call(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
	in, err := readRPC(r)
	b := rpc{}
	if in != nil {
		b.id = in.ID
	}
	if err != nil {
		return &refused{err, b}
	}
	o := operation{server: s, w: w, r: r, c: c, agent: r.PathValue("agent"), version: v1, params: in.Params}
	name := in.Method
	if modern, is := oldMethods()[name]; is {
		o.version, name, b.old = v0, modern, true
	}
	o.binding = b
	switch v := versionOf(r); {
	case v != "" && v != string(v1) && v != string(v0):
		return &refused{wrongVersion(v), b}
	case v != "" && v != string(o.version):
		name = ""
	}
	do, known := methods()[name]
	if !known {
		return &refused{&refusal{code: methodNotFound, text: "there is no method " + strconv.Quote(in.Method) + " in this version of the protocol"}, b}
	}
	if err := do(&o); err != nil {
		return &refused{err, b}
	}
	return nil
}

// rest answers a request of HTTP+JSON.
func (s *server) rest(w http.ResponseWriter, r *http.Request, c *edge.Caller, name string) (err error) {
	if v := versionOf(r); v != "" && v != string(v1) {
		return wrongVersion(v)
	}
	o := operation{server: s, w: w, r: r, c: c, agent: r.PathValue("agent"), binding: rest{}, version: v1}
	if r.Method == http.MethodPost {
		body, err := edge.Body(r, edge.MaxMessageBody)
		if err != nil {
			return err
		}
		if len(body) > 0 && !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
			return events.Invalid("", "the body is not JSON")
		}
		o.params = events.JSON(body)
	} else {
		o.params = parameters(r.URL.Query())
	}
	if id := r.PathValue("task"); id != "" {
		id, verb, verbed := strings.Cut(id, ":")
		switch {
		case verbed && verb == "cancel" && r.Method == http.MethodPost:
			name = "CancelTask"
		case verbed && verb == "subscribe":
			name = "SubscribeToTask"
		case verbed || name == "":
			return events.Errorf(events.NotFound, "a task has no operation %.64q with %s: POST to tasks/ID:cancel or tasks/ID:subscribe", verb, r.Method)
		}
		if name != "CreateTaskPushNotificationConfig" {
			config := cmp.Or(r.PathValue("id"), id)
			o.params = marshal(map[string]any{"id": config, "taskId": id, "historyLength": number(r.URL.Query().Get("historyLength"))})
		} else if o.params, err = withTask(o.params, id); err != nil {
			return err
		}
	}
	return methods()[name](&o)
}

// withTask returns the parameters of an operation with the task that its path names.
func withTask(params events.JSON, id string) (events.JSON, error) {
	var fields map[string]events.JSON
	if err := json.Unmarshal(params, &fields, jsontext.AllowDuplicateNames(true)); err != nil || fields == nil {
		return nil, events.Invalid("", "the body is not a JSON object")
	}
	fields["taskId"] = marshal(id)
	return marshal(fields), nil
}

// number returns a number of a query, nil if it is none.
func number(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}

// parameters returns the parameters of a query as JSON: numbers and booleans are not texts.
func parameters(q url.Values) events.JSON {
	out := map[string]any{}
	for name := range q {
		switch text := q.Get(name); name {
		case "pageSize", "historyLength", "includeArtifacts":
			out[name] = text
			var v any
			if json.Unmarshal([]byte(text), &v) == nil {
				out[name] = v
			}
		default:
			out[name] = text
		}
	}
	return marshal(out)
}

// methods returns the operations by their names in 1.0.
func methods() map[string]func(*operation) error {
	return map[string]func(*operation) error{
		"SendMessage": (*operation).sendMessage, "SendStreamingMessage": (*operation).streamMessage,
		"GetTask": (*operation).getTask, "ListTasks": (*operation).listTasks, "CancelTask": (*operation).cancelTask,
		"SubscribeToTask": (*operation).subscribe, "GetExtendedAgentCard": (*operation).extendedCard,
		"CreateTaskPushNotificationConfig": (*operation).setPush, "GetTaskPushNotificationConfig": (*operation).getPush,
		"ListTaskPushNotificationConfigs": (*operation).listPushes, "DeleteTaskPushNotificationConfig": (*operation).deletePush,
	}
}

// oldMethods returns the names of 1.0 by those of 0.3.
func oldMethods() map[string]string {
	return map[string]string{
		"message/send": "SendMessage", "message/stream": "SendStreamingMessage", "tasks/get": "GetTask", "tasks/cancel": "CancelTask",
		"tasks/resubscribe": "SubscribeToTask", "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
		"tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
		"tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
	}
}
