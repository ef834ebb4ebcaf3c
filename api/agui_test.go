package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// The routes of AG-UI have the rights of the edge: what a credential may not see does not exist for
// it, and what it may not do is forbidden.
func TestAGUI_Rights(t *testing.T) {
	t.Parallel()
	s := strangers(t)
	s.people["subscriber"] = edge.Principal{Tenant: "acme", Subject: "key:s", Roles: []string{"subscriber"}}
	const secret = "the words of ann"
	input := func(thread, run, text string) string {
		return `{"threadId":"` + thread + `","runId":"` + run + `","messages":[{"id":"u","role":"user","content":"` + text + `"}]}`
	}
	if status, text := s.ask("ann", "POST", "/agui/teller", input("page", "r", secret)); status != http.StatusOK || !strings.Contains(text, "RUN_FINISHED") {
		t.Fatalf("%d %s", status, text)
	}
	s.skein.WaitIdle()
	thread, err := client.Read(t.Context(), s.skein.Client("acme"), events.GetThread{ThreadID: "key:agui:page"})
	if err != nil {
		t.Fatal(err)
	}
	if thread.UserID != "ann" {
		t.Errorf("the thread is of %q", thread.UserID)
	}
	const connect, stop = "/agui/agent/teller/connect", "/agui/agent/teller/stop/"
	for name, c := range map[string]struct {
		who, path, body string
		want            int
	}{
		"another user's thread, by its key":    {"bob", "/agui/teller", input("page", "r2", "hi"), http.StatusNotFound},
		"another user's thread, by its id":     {"bob", "/agui/teller", input(thread.ID, "r2", "hi"), http.StatusNotFound},
		"another user's thread, connected":     {"bob", connect, input("page", "c", ""), http.StatusOK},
		"another user's thread by id":          {"bob", connect, input(thread.ID, "c", ""), http.StatusNotFound},
		"another user's runId":                 {"bob", "/agui/teller", input("own page", "r", "hi"), http.StatusOK},
		"another tenant's thread, by its id":   {"globex", "/agui/teller", input(thread.ID, "r3", "hi"), http.StatusNotFound},
		"another tenant's thread, by its name": {"globex", "/agui/teller", input("page", "r", "hi"), http.StatusOK},
		"another tenant's thread, connected":   {"globex", connect, input(thread.ID, "c", ""), http.StatusNotFound},
		"another tenant's thread, stopped":     {"globex", stop + thread.ID, "", http.StatusNotFound},
		"a key of another thread":              {"one", connect, input(thread.ID, "c", ""), http.StatusNotFound},
		"a key of another thread runs":         {"one", "/agui/teller", input(thread.ID, "r4", "hi"), http.StatusNotFound},
		"a reader connects":                    {"reader", connect, input("page", "c", ""), http.StatusOK},
		"a reader runs":                        {"reader", "/agui/teller", input("page", "r5", "hi"), http.StatusForbidden},
		"a reader stops":                       {"reader", stop + "page", "", http.StatusForbidden},
		"a subscriber runs":                    {"subscriber", "/agui/agent/teller/run", input("page", "r6", "hi"), http.StatusForbidden},
		"nobody":                               {"nobody", "/agui/teller", input("page", "r7", "hi"), http.StatusUnauthorized},
		"nobody connects":                      {"nobody", connect, input("page", "c", ""), http.StatusUnauthorized},
	} {
		status, text := s.ask(c.who, "POST", c.path, c.body)
		if status != c.want {
			t.Errorf("%s: %d %.300s, want %d", name, status, text, c.want)
		}
		if c.who != "reader" && strings.Contains(text, secret) {
			t.Errorf("%s sees %s", name, text)
		}
	}
	if _, text := s.ask("reader", "POST", connect, input("page", "c", "")); !strings.Contains(text, secret) {
		t.Errorf("the reader does not see the thread: %s", text)
	}
}
