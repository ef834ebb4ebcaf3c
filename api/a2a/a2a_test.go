package a2a_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

func TestCard(t *testing.T) {
	w := start(t)
	status, card := w.do("GET", "/a2a/triage/.well-known/agent-card.json", "")
	url := w.url + "/a2a/triage"
	if status != http.StatusOK || card["name"] != "triage" || card["description"] != "Answers." || card["version"] != "1" || card["url"] != url || card["protocolVersion"] != "0.3.0" {
		t.Errorf("%d %s", status, dump(card))
	}
	w.want("interfaces", dump(card["supportedInterfaces"]), fmt.Sprintf(
		`[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":%q},{"protocolBinding":"HTTP+JSON","protocolVersion":"1.0","url":%q},{"protocolBinding":"JSONRPC","protocolVersion":"0.3","url":%q}]`, url, url, url))
	if _, other := w.do("GET", "/.well-known/agent-card.json", ""); dump(other) != dump(card) {
		t.Errorf("the default card is %s", dump(other))
	}
	if result, _ := w.call("GetExtendedAgentCard", object{}); dump(result) != dump(card) {
		t.Errorf("the extended card is %s", dump(result))
	}
}

func TestSend(t *testing.T) {
	w := start(t)
	m := w.message(text("hello"), "contextId", "order 7")
	one := w.send(m)
	w.want("the task", shown(one), "TASK_STATE_COMPLETED: answer to hello")
	w.want("its history", strings.Join(history(one), ", "), "ROLE_USER: hello")
	if again := w.send(m); dump(again) != dump(one) {
		t.Errorf("repeated: %s, want %s", dump(again), dump(one))
	}
	m["message"].(object)["parts"] = text("other")
	if _, failure := w.call("SendMessage", m); failure["code"] != float64(-32602) || !strings.Contains(dump(failure), "messageId") {
		t.Errorf("another message with its id: %s", dump(failure))
	}
	two := w.send(w.message(text("and again"), "contextId", "order 7"))
	w.want("the next", shown(two), "TASK_STATE_COMPLETED: answer to and again")
	thread, err := client.Read(t.Context(), w.c, events.GetThread{ThreadID: "key:a2a:order 7"})
	w.s.Must(err)
	three := w.send(w.message(text("by id"), "contextId", thread.ID)) // a thread's own id will do
	if three["contextId"] != thread.ID || w.get(id(three))["contextId"] != "order 7" || one["contextId"] != "order 7" {
		t.Errorf("%s, %s", dump(one), dump(three))
	}
	none := w.message(text("nowhere"))
	fresh := w.send(none)
	if !events.ValidThreadID(fresh["contextId"].(string)) || id(w.send(none)) != id(fresh) {
		t.Errorf("%s", dump(fresh))
	}
	w.want("got", dump(w.get(id(fresh))), dump(fresh))
	_, failure := w.call("SendMessage", w.message(text("x"), "taskId", id(one)))
	w.want("a task that has ended", fmt.Sprint(failure["code"]), "-32004")
	w.want("a failure", shown(w.send(w.message(text("fail")))), "TASK_STATE_FAILED:")
	list, failure := w.call("ListTasks", object{"pageSize": 3})
	if failure != nil || list["totalSize"] != float64(5) || len(list["tasks"].([]any)) != 3 || list["nextPageToken"] == "" {
		t.Fatalf("%s %s", dump(list), dump(failure))
	}
	rest, _ := w.call("ListTasks", object{"pageSize": 3, "pageToken": list["nextPageToken"], "historyLength": 0, "includeArtifacts": true})
	if n := rest["tasks"].([]any); len(n) != 2 || rest["nextPageToken"] != "" || id(n[1].(object)) != id(one) || shown(n[1].(object)) != shown(one) || history(n[1].(object)) != nil {
		t.Errorf("%s", dump(rest))
	}
	list, _ = w.call("ListTasks", object{"contextId": "order 7", "status": "TASK_STATE_COMPLETED"})
	if list["totalSize"] != float64(3) {
		t.Errorf("%s", dump(list))
	}
}

func TestSend_InputRequired(t *testing.T) {
	for name, c := range map[string]struct {
		say     string
		answer  []object
		refunds string
		history string // after the message
	}{
		"granted":  {"refund", []object{{"data": object{"grant": true}}}, "5", `, ROLE_USER: {"grant":true}`},
		"edited":   {"refund", []object{{"data": object{"grant": true, "arguments": object{"eur": 4}}}}, "4", `, ROLE_USER: {"grant":true}`},
		"denied":   {"refund", []object{{"data": object{"deny": true, "reason": "too much"}}}, "", `, ROLE_USER: {"deny":true}`},
		"question": {"ask", text("9"), "", ""},
		"data":     {"ask", []object{{"data": object{"eur": 9}}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			one := w.send(w.message(text(c.say), "contextId", "c"))
			asks := one["status"].(object)["message"].(object)
			if one["status"].(object)["state"] != "TASK_STATE_INPUT_REQUIRED" || !strings.Contains(said(asks), map[string]string{"refund": "needs an approval", "ask": "How much?"}[c.say]) {
				t.Fatalf("%s", dump(one))
			}
			if _, failure := w.call("SendMessage", w.message(text("meanwhile"), "contextId", "c")); failure["code"] != float64(-32004) || !strings.Contains(dump(failure), id(one)) {
				t.Errorf("a message meanwhile: %s", dump(failure))
			}
			if _, failure := w.call("SendMessage", w.message(text("x"), "taskId", id(one), "contextId", "other")); failure["code"] != float64(-32602) {
				t.Errorf("another context: %s", dump(failure))
			}
			if c.say == "refund" {
				if _, failure := w.call("SendMessage", w.message(text("yes"), "taskId", id(one))); failure["code"] != float64(-32602) || !strings.Contains(dump(failure), "grant") {
					t.Errorf("a text: %s", dump(failure))
				}
			}
			again := w.read(w.stream(t.Context(), "SubscribeToTask", object{"id": id(one)}))
			w.want("subscribed", again.state, "TASK_STATE_INPUT_REQUIRED")
			answer := w.message(c.answer, "taskId", id(one), "contextId", "c")
			end := w.send(answer)
			if id(end) != id(one) || !strings.HasPrefix(shown(end), "TASK_STATE_COMPLETED: ") || !strings.HasSuffix(shown(end), "done") {
				t.Errorf("%s", dump(end))
			}
			w.want("repeated", dump(w.send(answer)), dump(end))
			if c.refunds != "" {
				w.want("refunded", <-w.out, c.refunds)
			}
			if got := strings.Join(history(end), ", "); !strings.HasPrefix(got, "ROLE_USER: "+c.say+", ROLE_AGENT: ") || !strings.HasSuffix(got, c.history) {
				t.Errorf("the history is %s", got)
			}
		})
	}
}

func TestStream(t *testing.T) {
	w := start(t)
	for said, want := range map[string]string{"hello": "answer to hello", "begin again": "second try", "chart": `see{"x":1}`} {
		m := w.message(text(said))
		s := w.read(w.stream(t.Context(), "SendStreamingMessage", m))
		if s.state != "TASK_STATE_COMPLETED" || s.answer() != want {
			t.Errorf("%s: %s %q, want %q: %s", said, s.state, s.answer(), want, dump(s.updates))
		}
		w.want("got", shown(w.get(id(s.first))), "TASK_STATE_COMPLETED: "+want)
		if again := w.read(w.stream(t.Context(), "SendStreamingMessage", m)); id(again.first) != id(s.first) || again.answer() != want || again.state != s.state {
			t.Errorf("repeated: %s", dump(again.updates))
		}
	}
	s := w.read(w.stream(t.Context(), "SendStreamingMessage", w.message(text("refund"))))
	w.want("it asks", s.state, "TASK_STATE_INPUT_REQUIRED")
	s = w.read(w.stream(t.Context(), "SendStreamingMessage", w.message([]object{{"data": object{"grant": true}}}, "taskId", id(s.first))))
	if s.state != "TASK_STATE_COMPLETED" || !strings.HasSuffix(s.answer(), "done") {
		t.Errorf("%s", dump(s.updates))
	}
	s = w.read(w.stream(t.Context(), "SendStreamingMessage", w.message(text("fail"))))
	if s.state != "TASK_STATE_FAILED" || !strings.Contains(said(s.asks), "gone") {
		t.Errorf("%s", dump(s.updates))
	}
}

// A client that goes away leaves the task, a subscriber continues it, another task waits for it, and
// cancelling ends it.
func TestSubscribe_Cancel(t *testing.T) {
	w := start(t)
	ctx, gone := context.WithCancel(t.Context())
	next := w.stream(ctx, "SendStreamingMessage", w.message(text("wait"), "contextId", "c"))
	<-w.waits
	task := next()["task"].(object)
	for e := next(); e["artifactUpdate"] == nil; e = next() {
	}
	gone()
	queued := w.send(object{"message": w.message(text("later"), "contextId", "c")["message"], "configuration": object{"returnImmediately": true}})
	w.want("queued", shown(queued), "TASK_STATE_SUBMITTED:")
	w.want("queued, got", shown(w.get(id(queued))), "TASK_STATE_SUBMITTED:")
	removed := w.send(object{"message": w.message(text("never"), "contextId", "c")["message"], "configuration": object{"returnImmediately": true}})
	list, _ := w.call("ListTasks", object{"contextId": "c"})
	w.want("listed", fmt.Sprint(list["totalSize"]), "3")
	result, _ := w.call("CancelTask", object{"id": id(removed)})
	w.want("removed", shown(result), "TASK_STATE_CANCELED:")
	w.want("removed, got", shown(w.get(id(removed))), "TASK_STATE_CANCELED:")
	if _, failure := w.call("SendMessage", w.message(text("x"), "taskId", id(task))); failure["code"] != float64(-32004) {
		t.Errorf("a message to a task that is worked on: %s", dump(failure))
	}
	next = w.stream(t.Context(), "SubscribeToTask", object{"id": id(task)})
	s := &seen{artifacts: map[string]string{}}
	for e := next(); ; e = next() {
		if s.apply(w, e); s.answer() == "half an " {
			break
		}
	}
	result, failure := w.call("CancelTask", object{"id": id(task)})
	if failure != nil || result["status"].(object)["state"] != "TASK_STATE_CANCELED" {
		t.Errorf("%s %s", dump(result), dump(failure))
	}
	for e := next(); e != nil; e = next() {
		s.apply(w, e)
	}
	w.want("the stream ends", s.state, "TASK_STATE_CANCELED")
	for method, code := range map[string]int{"CancelTask": -32002, "SubscribeToTask": -32004} {
		for _, one := range []object{task, removed} {
			_, failure := w.call(method, object{"id": id(one)})
			w.want(method, fmt.Sprint(failure["code"]), fmt.Sprint(code))
		}
	}
	s = w.read(w.stream(t.Context(), "SendStreamingMessage", w.message(text("and more"), "contextId", "c")))
	w.want("afterwards", s.answer(), "answer to and more")
	w.want("what waited", shown(w.get(id(queued))), "TASK_STATE_COMPLETED: answer to later")
}

func TestSend_Files(t *testing.T) {
	w := start(t)
	large := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 600<<10)))
	one := w.send(w.message([]object{
		{"text": "look"}, {"raw": "aGk=", "mediaType": "text/plain", "filename": "a.txt"}, {"raw": large, "mediaType": "image/png"}, {"url": "https://example.com/b.pdf", "mediaType": "application/pdf"}, {"data": object{"a": 1}},
	}))
	parts := one["history"].([]any)[0].(object)["parts"].([]any)
	if len(parts) != 5 {
		t.Fatalf("%s", dump(parts))
	}
	w.want("a file", dump(parts[1]), `{"filename":"a.txt","mediaType":"text/plain","raw":"aGk="}`)
	w.want("a URL", dump(parts[3]), `{"mediaType":"application/pdf","url":"https://example.com/b.pdf"}`)
	w.want("data", dump(parts[4]), `{"data":{"a":1}}`)
	url, _ := parts[2].(object)["url"].(string)
	if !strings.HasPrefix(url, w.url+"/api/threads/") {
		t.Fatalf("a large file: %s", dump(parts[2]))
	}
	if answer := w.request(t.Context(), "GET", strings.TrimPrefix(url, w.url), ""); answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %d", url, answer.StatusCode)
	}
}

func TestVersion03(t *testing.T) {
	w := start(t)
	message := func(s string, more ...string) object {
		m := w.message([]object{{"kind": "text", "text": s}}, more...)
		m["message"].(object)["kind"], m["message"].(object)["role"] = "message", "user"
		return m
	}
	one, failure := w.call("message/send", message("hello"))
	if failure != nil || one["kind"] != "task" || shown(one) != "completed: answer to hello" || strings.Join(history(one), "") != "user: hello" {
		t.Fatalf("%s %s", dump(one), dump(failure))
	}
	if p := one["artifacts"].([]any)[0].(object)["parts"].([]any)[0].(object); p["kind"] != "text" {
		t.Errorf("%s", dump(one))
	}
	got, _ := w.call("tasks/get", object{"id": id(one)})
	w.want("got", dump(got), dump(one))
	next := w.stream(t.Context(), "message/stream", message("refund"))
	var list []object
	for e := next(); e != nil; e = next() {
		list = append(list, e)
	}
	last := list[len(list)-1]
	if list[0]["kind"] != "task" || last["kind"] != "status-update" || last["final"] != true || last["status"].(object)["state"] != "input-required" {
		t.Fatalf("%s", dump(list))
	}
	grant := message("", "taskId", list[0]["id"].(string))
	grant["message"].(object)["parts"] = []object{{"kind": "data", "data": object{"grant": true}}}
	end, failure := w.call("message/send", grant)
	if failure != nil || end["status"].(object)["state"] != "completed" {
		t.Errorf("%s %s", dump(end), dump(failure))
	}
	if _, failure := w.call("tasks/get", object{"id": "nothing"}); failure["code"] != float64(-32001) || failure["data"] != nil { // the Go client refuses a list
		t.Errorf("%s", dump(failure))
	}
	immediate := message("hi")
	immediate["configuration"] = object{"blocking": false}
	if quick, failure := w.call("message/send", immediate); failure != nil || quick["id"] == nil {
		t.Errorf("%s", dump(failure))
	}
}

func TestRefused(t *testing.T) {
	w := start(t)
	for name, c := range map[string]struct {
		method string
		params any
		header string
		want   int
	}{
		"no method":             {"SendNothing", object{}, "", -32601},
		"a method of 0.3":       {"message/send", object{}, "1.0", -32601},
		"a method of 1.0":       {"SendMessage", object{}, "0.3", -32601},
		"another version":       {"SendMessage", object{}, "2.0", -32009},
		"no message":            {"SendMessage", object{}, "", -32602},
		"no parts":              {"SendMessage", w.message(nil), "1.0", -32602},
		"an empty part":         {"SendMessage", w.message([]object{{}}), "1.0", -32602},
		"a part with two":       {"SendMessage", w.message([]object{{"text": "x", "data": object{"a": 1}}}), "1.0", -32602},
		"an empty text":         {"SendMessage", w.message(text("")), "1.0", -32602},
		"no messageId":          {"SendMessage", object{"message": object{"role": "ROLE_USER", "parts": text("x")}}, "1.0", -32602},
		"the agent's role":      {"SendMessage", object{"message": object{"messageId": "r", "role": "ROLE_AGENT", "parts": text("x")}}, "1.0", -32602},
		"an unknown task":       {"SendMessage", w.message(text("x"), "taskId", "exe_0190a3c500007000800000000000000a"), "1.0", -32001},
		"get an unknown task":   {"GetTask", object{"id": "nothing"}, "1.0", -32001},
		"get a negative length": {"GetTask", object{"id": "nothing", "historyLength": -1}, "1.0", -32602},
		"a page of nothing":     {"ListTasks", object{"pageSize": 0}, "1.0", -32602},
		"a page after nothing":  {"ListTasks", object{"pageToken": "nothing"}, "1.0", -32602},
		"push of no task":       {"CreateTaskPushNotificationConfig", object{"taskId": "x", "url": "https://example.com"}, "1.0", -32001},
		"push without a url":    {"CreateTaskPushNotificationConfig", object{"taskId": "x"}, "1.0", -32602},
	} {
		headers := []string{}
		if c.header != "" {
			headers = []string{"A2A-Version", c.header}
		}
		_, failure := w.call(c.method, c.params, headers...)
		if failure["code"] != float64(c.want) {
			t.Errorf("%s: %s, want %d", name, dump(failure), c.want)
		}
		if c.want == -32001 && !strings.Contains(dump(failure["data"]), `"reason":"TASK_NOT_FOUND"`) {
			t.Errorf("%s: %s", name, dump(failure))
		}
	}
	for body, want := range map[string]int{"{": -32700, "[]": -32600, `{"jsonrpc":"2.0","id":{},"method":"GetTask"}`: -32600, `{"id":1,"method":"GetTask"}`: -32600} {
		if status, out := w.do("POST", "/a2a/triage", body); status != http.StatusOK || out["error"].(object)["code"] != float64(want) {
			t.Errorf("%s: %d %s", body, status, dump(out))
		}
	}
	if status, out := w.do("POST", "/a2a/nobody", dump(object{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": w.message(text("x"))})); status != http.StatusNotFound || out["id"] != float64(1) {
		t.Errorf("no agent: %d %s", status, dump(out))
	}
}

func TestHTTPJSON(t *testing.T) {
	w := start(t)
	status, out := w.do("POST", "/a2a/triage/message:send", dump(w.message(text("hello"), "contextId", "c")), "A2A-Version", "1.0")
	one, _ := out["task"].(object)
	if status != http.StatusOK || one == nil || shown(one) != "TASK_STATE_COMPLETED: answer to hello" {
		t.Fatalf("%d %s", status, dump(out))
	}
	answer := w.request(t.Context(), "GET", "/a2a/triage/tasks/"+id(one), "")
	w.want("the type", answer.Header.Get("Content-Type"), "application/a2a+json")
	_, got := w.do("GET", "/a2a/triage/tasks/"+id(one)+"?historyLength=0", "")
	if shown(got) != shown(one) || got["history"] != nil {
		t.Errorf("%s", dump(got))
	}
	_, list := w.do("GET", "/a2a/triage/tasks?contextId=c&pageSize=1&includeArtifacts=true&status=TASK_STATE_COMPLETED", "")
	if n, _ := list["tasks"].([]any); len(n) != 1 || shown(n[0].(object)) != shown(one) || list["nextPageToken"] != "" {
		t.Errorf("%s", dump(list))
	}
	stream := w.request(t.Context(), "POST", "/a2a/triage/message:stream", dump(w.message(text("refund"))), "Accept", "text/event-stream")
	body := make([]byte, 0, 4096)
	for buf := make([]byte, 4096); ; {
		n, err := stream.Body.Read(buf)
		if body = append(body, buf[:n]...); err != nil {
			break
		}
	}
	if text := string(body); !strings.HasPrefix(strings.TrimPrefix(text, ": ping\n\n"), `data: {"task":`) || !strings.Contains(text, "TASK_STATE_INPUT_REQUIRED") {
		t.Errorf("%s", text)
	}
	_, waiting := w.do("GET", "/a2a/triage/tasks?status=TASK_STATE_INPUT_REQUIRED", "")
	asking := waiting["tasks"].([]any)[0].(object)
	if status, out := w.do("POST", "/a2a/triage/tasks/"+id(asking)+":cancel", "{}"); status != http.StatusOK || shown(out) != "TASK_STATE_CANCELED: let me see" && shown(out) != "TASK_STATE_CANCELED:" {
		t.Errorf("%d %s", status, dump(out))
	}
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		reason             string
	}{
		"an unknown task": {"GET", "/a2a/triage/tasks/nothing", "", 404, "TASK_NOT_FOUND"},
		"cancelled twice": {"POST", "/a2a/triage/tasks/" + id(asking) + ":cancel", "", 400, "TASK_NOT_CANCELABLE"},
		"has ended":       {"POST", "/a2a/triage/tasks/" + id(one) + ":subscribe", "", 400, "UNSUPPORTED_OPERATION"},
		"another agent's": {"GET", "/a2a/other/tasks/" + id(one), "", 404, "TASK_NOT_FOUND"},
		"no message":      {"POST", "/a2a/triage/message:send", "{}", 400, "invalid_request"},
		"not JSON":        {"POST", "/a2a/triage/message:send", "{", 400, "invalid_request"},
		"no such verb":    {"POST", "/a2a/triage/tasks/" + id(one) + ":explain", "", 404, "not_found"},
		"push":            {"POST", "/a2a/triage/tasks/" + id(one) + "/pushNotificationConfigs", "{}", 400, "invalid_request"},
	} {
		status, out := w.do(c.method, c.path, c.body)
		e, _ := out["error"].(object)
		if status != c.status || e["code"] != float64(c.status) || !strings.Contains(dump(e["details"]), `"reason":"`+c.reason+`"`) {
			t.Errorf("%s: %d %s", name, status, dump(out))
		}
	}
}

// The requests that released clients send are taken: testdata/requests.json has them as they were sent,
// with TASK in place of a task.
func TestReleasedClients(t *testing.T) {
	w := start(t)
	w.n = 100 // the clients have numbered theirs
	raw, err := os.ReadFile("testdata/requests.json")
	w.s.Must(err)
	var list []struct {
		Client, Method, Path string
		Headers              map[string]string
		Body                 json.RawMessage
	}
	w.s.Must(json.Unmarshal(raw, &list))
	tasks := map[string]string{} // by client
	for _, one := range list {
		task := tasks[one.Client]
		if strings.Contains(one.Path+string(one.Body), "ancel") || strings.Contains(one.Path+string(one.Body), "ubscri") { // of a task that waits
			task = id(w.send(w.message(text("refund"))))
		}
		headers := []string{}
		for name, value := range one.Headers {
			headers = append(headers, name, value)
		}
		named := strings.NewReplacer("TASK\"", task+"\"", "/TASK", "/"+task)
		answer := w.request(t.Context(), one.Method, named.Replace(one.Path), named.Replace(string(one.Body)), headers...)
		body, err := io.ReadAll(answer.Body)
		w.s.Must(err)
		if answer.StatusCode != http.StatusOK || strings.Contains(string(body), `"error"`) {
			t.Errorf("%s: %s %s %s: %d %s", one.Client, one.Method, one.Path, one.Body, answer.StatusCode, body)
		}
		if _, rest, is := strings.Cut(string(body), `"id":"exe_`); is && task == "" {
			number, _, _ := strings.Cut(rest, `"`)
			tasks[one.Client] = "exe_" + number
		}
	}
	if len(tasks) != 3 {
		t.Errorf("%v", tasks)
	}
}
