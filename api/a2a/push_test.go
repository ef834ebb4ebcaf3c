package a2a_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// told is a notification as a receiver has it.
type told struct {
	header http.Header
	body   object
}

// receive returns the URL of a receiver, and what it accepts. It refuses the first notification once.
func (w *world) receive() (string, chan told) {
	w.Helper()
	list, refused := make(chan told, 100), false
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if !refused {
			refused = true
			http.Error(out, "not now", http.StatusServiceUnavailable)
			return
		}
		var body object
		if err := json.Unmarshal(raw, &body); err != nil {
			w.Errorf("%v: %s", err, raw)
		}
		list <- told{r.Header, body}
	}))
	w.Cleanup(s.Close)
	return s.URL, list
}

// next returns the next notification.
func (w *world) next(list chan told) told {
	w.Helper()
	select {
	case one := <-list:
		return one
	case <-w.Context().Done():
		w.Fatal("no notification")
	}
	return told{}
}

// A client that sent a configuration with its message is told of each state of the task, in order and
// with its credentials, and of the whole task at the end.
func TestPush_TellsOfATask(t *testing.T) {
	for name, c := range map[string]struct {
		send, answer, version string
		config                func(url string) object
		message               func(w *world, parts []object, task string) object
		kind                  string
		read                  func(body object) (task, state, answer string)
	}{
		"1.0": {"SendMessage", "SendMessage", "1.0", func(url string) object {
			return object{"taskPushNotificationConfig": object{"url": url, "token": "t-1", "authentication": object{"scheme": "Bearer", "credentials": "c-1"}}, "returnImmediately": true}
		}, func(w *world, parts []object, task string) object { return w.message(parts, "taskId", task) }, "application/a2a+json", func(body object) (string, string, string) {
			if u, is := body["statusUpdate"].(object); is {
				return u["taskId"].(string), u["status"].(object)["state"].(string), ""
			}
			task := body["task"].(object)
			return id(task), task["status"].(object)["state"].(string), shown(task)
		}},
		"0.3": {"message/send", "message/send", "0.3", func(url string) object {
			return object{"pushNotificationConfig": object{"url": url, "token": "t-1", "authentication": object{"schemes": []string{"Bearer"}, "credentials": "c-1"}}, "blocking": false}
		}, func(w *world, parts []object, task string) object {
			for _, p := range parts {
				p["kind"] = "text"
				if p["data"] != nil {
					p["kind"] = "data"
				}
			}
			m := w.message(parts, "taskId", task)
			m["message"].(object)["role"], m["message"].(object)["kind"] = "user", "message"
			return m
		}, "application/json", func(body object) (string, string, string) {
			if body["kind"] != "task" {
				return "", "", dump(body)
			}
			state := "TASK_STATE_" + strings.ToUpper(strings.ReplaceAll(body["status"].(object)["state"].(string), "-", "_"))
			return id(body), state, strings.Replace(shown(body), body["status"].(object)["state"].(string), state, 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			url, list := w.receive()
			m := c.message(w, text("refund"), "")
			m["configuration"] = c.config(url)
			result, failure := w.call(c.send, m, "A2A-Version", c.version)
			if failure != nil {
				t.Fatal(dump(failure))
			}
			task, is := result["task"].(object)
			if !is {
				task = result
			}
			check := func(want string) {
				t.Helper()
				one := w.next(list)
				of, state, answer := c.read(one.body)
				if of != id(task) || state != want {
					t.Fatalf("%s, want %s of %s", dump(one.body), want, id(task))
				}
				if state == "TASK_STATE_COMPLETED" {
					w.want("the end", answer, "TASK_STATE_COMPLETED: let me seedone")
				}
				if h := one.header; h.Get("Content-Type") != c.kind || h.Get("X-A2A-Notification-Token") != "t-1" || h.Get("Authorization") != "Bearer c-1" || h.Get("A2A-Version") != c.version {
					t.Errorf("%v", h)
				}
			}
			check("TASK_STATE_WORKING")
			check("TASK_STATE_INPUT_REQUIRED")
			if _, failure := w.call(c.answer, c.message(w, []object{{"data": object{"grant": true}}}, id(task)), "A2A-Version", c.version); failure != nil {
				t.Fatal(dump(failure))
			}
			check("TASK_STATE_WORKING")
			check("TASK_STATE_COMPLETED")
		})
	}
}

// Configurations are set, read, listed and deleted, with the names of both versions, by their client.
func TestPush_Configurations(t *testing.T) {
	w := start(t)
	url, list := w.receive()
	m := w.message(text("wait"))
	m["configuration"] = object{"returnImmediately": true}
	task := id(w.send(m))
	<-w.waits
	w.want("set", dump(w.result("CreateTaskPushNotificationConfig", object{"taskId": task, "id": "one", "url": url, "token": "secret"})),
		dump(object{"taskId": task, "id": "one", "url": url, "token": "secret"}))
	w.want("set as of 0.3", dump(w.result("tasks/pushNotificationConfig/set", object{"taskId": task, "pushNotificationConfig": object{"url": url + "/two"}})),
		dump(object{"taskId": task, "pushNotificationConfig": object{"id": task, "url": url + "/two"}}))
	status, answer := w.do("POST", "/a2a/triage/tasks/"+task+"/pushNotificationConfigs", dump(object{"id": "three", "url": url + "/three"}))
	w.want("over HTTP", dump(answer), dump(object{"taskId": task, "id": "three", "url": url + "/three"}))
	if status != http.StatusOK {
		t.Errorf("%d", status)
	}
	w.want("got, without its token", dump(w.result("GetTaskPushNotificationConfig", object{"taskId": task, "id": "one"})), dump(object{"taskId": task, "id": "one", "url": url}))
	w.want("got as of 0.3", dump(w.result("tasks/pushNotificationConfig/get", object{"id": task, "pushNotificationConfigId": task})),
		dump(object{"taskId": task, "pushNotificationConfig": object{"id": task, "url": url + "/two"}}))
	if all := w.result("ListTaskPushNotificationConfigs", object{"taskId": task}); len(all["configs"].([]any)) != 3 || all["nextPageToken"] != "" {
		t.Errorf("%s", dump(all))
	}
	if status, all := w.do("GET", "/a2a/triage/tasks/"+task+"/pushNotificationConfigs", ""); status != http.StatusOK || len(all["configs"].([]any)) != 3 {
		t.Errorf("%d %s", status, dump(all))
	}
	for range 2 { // the second time nothing happens
		w.result("DeleteTaskPushNotificationConfig", object{"taskId": task, "id": "one"})
	}
	w.result("tasks/pushNotificationConfig/delete", object{"id": task, "pushNotificationConfigId": task})
	if _, failure := w.call("GetTaskPushNotificationConfig", object{"taskId": task, "id": "one"}); failure["code"] != float64(-32001) {
		t.Errorf("deleted: %s", dump(failure))
	}
	thread, err := client.Read(t.Context(), w.c, events.GetExecution{ExecutionID: task})
	w.s.Must(err)
	page, err := client.Read(t.Context(), w.c, events.ListPushes{ThreadID: thread.ThreadID})
	w.s.Must(err)
	if len(page.Pushes) != 1 || page.Pushes[0].Name != "three" {
		t.Errorf("%+v", page.Pushes)
	}
	close(w.goOn)
	for {
		if one := w.next(list); one.body["task"] != nil {
			w.want("the end", shown(one.body["task"].(object)), "TASK_STATE_COMPLETED: half an answer")
			return
		}
	}
}

// What a configuration may not name is refused.
func TestPush_Refused(t *testing.T) {
	w := start(t)
	m := w.message(text("wait"))
	m["configuration"] = object{"returnImmediately": true}
	task := id(w.send(m))
	<-w.waits
	defer close(w.goOn)
	for name, c := range map[string]struct {
		config object
		says   string
	}{
		"a private address": {object{"url": "http://10.0.0.1/hook"}, "--egress-allow"},
		"metadata":          {object{"url": "http://169.254.169.254/latest"}, "--egress-allow"},
		"another scheme":    {object{"url": "file:///etc/passwd"}, "http or https"},
		"a password":        {object{"url": "https://ada:pass@example.com"}, "password"},
		"a header":          {object{"url": "https://example.com", "token": "a\r\nCookie: b"}, "header"},
		"no scheme":         {object{"url": "https://example.com", "authentication": object{"credentials": "x"}}, "scheme"},
	} {
		c.config["taskId"] = task
		if _, failure := w.call("CreateTaskPushNotificationConfig", c.config); !strings.Contains(dump(failure), c.says) {
			t.Errorf("%s: %s", name, dump(failure))
		}
	}
	for i := range events.MaxPushesOfRun + 1 {
		_, failure := w.call("CreateTaskPushNotificationConfig", object{"taskId": task, "url": "https://example.com", "id": string(rune('a' + i))})
		if (failure != nil) != (i == events.MaxPushesOfRun) {
			t.Errorf("configuration %d: %s", i, dump(failure))
		}
	}
}

// result sends a request, and returns its result.
func (w *world) result(method string, params object) object {
	w.Helper()
	result, failure := w.call(method, params)
	if failure != nil {
		w.Fatalf("%s: %s", method, dump(failure))
	}
	return result
}
