package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// a2aCall is a request of A2A that says something.
func a2aCall(method string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}}`
}

// The routes of A2A have the rights of the edge: what a credential may not see does not exist for it,
// and what it may not do is forbidden.
func TestA2A_Rights(t *testing.T) {
	t.Parallel()
	s := strangers(t, func(o *api.Options) { o.A2AAgent = "teller" })
	s.people["subscriber"] = edge.Principal{Tenant: "acme", Subject: "key:s", Roles: []string{"subscriber"}}
	const secret = "the words of ann"
	send := func(context, id, text string) string {
		return `{"message":{"messageId":"` + id + `","contextId":"` + context + `","role":"ROLE_USER","parts":[{"text":"` + text + `"}]}}`
	}
	status, text := s.ask("ann", "POST", "/a2a/teller/message:send", send("page", "m", secret))
	var answer struct{ Task struct{ ID string } }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK || answer.Task.ID == "" {
		t.Fatalf("%d %s", status, text)
	}
	s.skein.WaitIdle()
	thread, err := client.Read(t.Context(), s.skein.Client("acme"), events.GetThread{ThreadID: "key:a2a:page"})
	if err != nil {
		t.Fatal(err)
	}
	if thread.UserID != "ann" {
		t.Errorf("the thread is of %q", thread.UserID)
	}
	const card, message = "/a2a/teller/.well-known/agent-card.json", "/a2a/teller/message:send"
	task := "/a2a/teller/tasks/" + answer.Task.ID
	for name, c := range map[string]struct {
		who, method, path, body string
		want                    int
	}{
		"her own task":                           {"ann", "GET", task, "", http.StatusOK},
		"another user's context":                 {"bob", "POST", message, send("page", "m2", "hi"), http.StatusNotFound},
		"another user's thread, by its id":       {"bob", "POST", message, send(thread.ID, "m2", "hi"), http.StatusNotFound},
		"another user's messageId":               {"bob", "POST", message, send("own page", "m", "hi"), http.StatusOK},
		"another user's task":                    {"bob", "GET", task, "", http.StatusNotFound},
		"another user's task, cancelled":         {"bob", "POST", task + ":cancel", "", http.StatusNotFound},
		"another user's task, streamed":          {"bob", "POST", task + ":subscribe", "", http.StatusNotFound},
		"another user's tasks":                   {"bob", "GET", "/a2a/teller/tasks", "", http.StatusOK},
		"another user's tasks, of her context":   {"bob", "GET", "/a2a/teller/tasks?contextId=page", "", http.StatusOK},
		"another tenant's task":                  {"globex", "GET", task, "", http.StatusNotFound},
		"another tenant's context":               {"globex", "POST", message, send("page", "m", "hi"), http.StatusOK},
		"another tenant's thread, by its id":     {"globex", "POST", message, send(thread.ID, "m", "hi"), http.StatusNotFound},
		"another tenant's tasks":                 {"globex", "GET", "/a2a/teller/tasks?contextId=" + thread.ID, "", http.StatusOK},
		"another agent's task":                   {"ann", "GET", strings.Replace(task, "teller", "other", 1), "", http.StatusNotFound},
		"a key of another thread":                {"one", "GET", task, "", http.StatusNotFound},
		"a key of another thread sends":          {"one", "POST", message, send(thread.ID, "m3", "hi"), http.StatusNotFound},
		"a reader":                               {"reader", "GET", task, "", http.StatusOK},
		"a reader sends":                         {"reader", "POST", message, send("page", "m4", "hi"), http.StatusForbidden},
		"a subscriber sends":                     {"subscriber", "POST", message, send("page", "m5", "hi"), http.StatusForbidden},
		"nobody":                                 {"nobody", "GET", task, "", http.StatusUnauthorized},
		"nobody sends":                           {"nobody", "POST", message, send("page", "m6", "hi"), http.StatusUnauthorized},
		"a card":                                 {"bob", "GET", card, "", http.StatusOK},
		"a card, by a key of another thread":     {"one", "GET", card, "", http.StatusOK},
		"a card, by nobody":                      {"nobody", "GET", card, "", http.StatusUnauthorized},
		"a card of no agent":                     {"ann", "GET", "/a2a/none/.well-known/agent-card.json", "", http.StatusNotFound},
		"the card of the tenant's default agent": {"globex", "GET", "/.well-known/agent-card.json", "", http.StatusOK},
		"the default card, by nobody":            {"nobody", "GET", "/.well-known/agent-card.json", "", http.StatusUnauthorized},
	} {
		status, text := s.ask(c.who, c.method, c.path, c.body)
		if status != c.want {
			t.Errorf("%s: %d %.300s, want %d", name, status, text, c.want)
		}
		if c.who != "reader" && c.who != "ann" && (strings.Contains(text, secret) || !strings.HasPrefix(c.path, task) && strings.Contains(text, answer.Task.ID)) {
			t.Errorf("%s sees %s", name, text)
		}
	}
	if status, text := s.ask("nobody", "POST", "/a2a/teller", a2aCall("SendMessage")); status != http.StatusUnauthorized || !strings.Contains(text, `"jsonrpc":"2.0"`) {
		t.Errorf("nobody over JSON-RPC: %d %s", status, text)
	}
	if status, text := s.ask("bob", "POST", "/a2a/teller", `{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"`+answer.Task.ID+`"}}`); status != http.StatusOK || !strings.Contains(text, `"code":-32001`) || !strings.Contains(text, `"id":7`) {
		t.Errorf("another user's task over JSON-RPC: %d %s", status, text)
	}
}

// Where a client is told of its task is its own: another credential that may do all with the task
// neither sees, nor reads, nor replaces, nor removes it.
func TestA2A_PushOfAnotherCredential(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	s.people["other"] = edge.Principal{Tenant: "acme", Subject: "key:other"}
	release := make(chan struct{})
	s.skein.Must(s.skein.Reactor("waits", func(ctx context.Context, _ *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return skein.Answer("done"), nil
	}))
	if status, text := s.ask("acme", "PUT", "/api/definitions/agent/waits", `{"name":"waits","type":"ai_human","reactor":"waits"}`); status >= 300 {
		t.Fatalf("%d %s", status, text)
	}
	defer close(release)
	const url = "https://client.example.com/secret-of-acme"
	status, text := s.ask("acme", "POST", "/a2a/waits/message:send", `{"configuration":{"returnImmediately":true,"taskPushNotificationConfig":{"id":"mine","url":"`+url+`"}},
		"message":{"messageId":"m","contextId":"page","role":"ROLE_USER","parts":[{"text":"x"}]}}`)
	var answer struct{ Task struct{ ID string } }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	const configs = "/pushNotificationConfigs"
	task := "/a2a/waits/tasks/" + answer.Task.ID
	rpc := func(method string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"id":%q,"pushNotificationConfigId":"mine"}}`, method, answer.Task.ID)
	}
	for _, c := range []struct{ method, path, body string }{
		{"GET", task, ""}, {"GET", task + configs, ""}, {"GET", task + configs + "/mine", ""}, {"POST", task + configs, `{"id":"mine","url":"https://example.com/theirs"}`},
		{"DELETE", task + configs + "/mine", ""}, {"POST", "/a2a/waits", rpc("tasks/pushNotificationConfig/list")},
		{"POST", "/a2a/waits", rpc("tasks/pushNotificationConfig/get")}, {"POST", "/a2a/waits", rpc("tasks/pushNotificationConfig/delete")},
	} {
		if status, text := s.ask("other", c.method, c.path, c.body); status >= 500 || strings.Contains(text, url) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, status, text)
		}
	}
	if status, text := s.ask("acme", "GET", task+configs, ""); status != http.StatusOK || !strings.Contains(text, url) || strings.Contains(text, "theirs") {
		t.Errorf("its own: %d %s", status, text)
	}
}
