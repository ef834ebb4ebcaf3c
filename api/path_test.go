package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// Whatever a path is made of, on every surface the answer is the edge's own: never a failure of the
// server, never a redirect, and never a resource that the path does not name. Nothing is changed.
func TestHandler_PathTricks(t *testing.T) {
	t.Parallel()
	s := skeintest.Start(t, func(o *skein.Options) { o.HTTPListen = "127.0.0.1:0" })
	url := s.Addresses().HTTP
	made := func(tenant, key string) string {
		c := s.Client(tenant)
		thread, err := c.Send(t.Context(), "", events.CreateThread{Key: key, Title: "secret of " + key})
		s.Must(err)
		_, err = c.Files(thread.ThreadID).WriteFile(t.Context(), "a.txt", []byte("secret of "+key), "", client.WriteFileOptions{})
		s.Must(err)
		_, err = c.Send(t.Context(), thread.ThreadID, events.CreateItem{Item: events.UserText("secret of " + key)})
		s.Must(err)
		return thread.ThreadID
	}
	thread, err := s.Client("acme").Send(t.Context(), "", events.CreateThread{Key: "own"})
	s.Must(err)
	sibling, foreign := made("acme", "sibling"), made("globex", "foreign")
	s.WaitIdle()
	state := func() string {
		var all strings.Builder
		for _, of := range []struct{ tenant, id string }{{"acme", sibling}, {"globex", foreign}} {
			got, err := client.Read(t.Context(), s.Client(of.tenant), events.GetThread{ThreadID: of.id})
			s.Must(err)
			fmt.Fprintln(&all, of.id, got.UpdatedAt)
		}
		return all.String()
	}
	tricks := []string{
		"..", "../OTHER", "%2e%2e/OTHER", "..%2fOTHER", "%2e%2e%2fOTHER", "OWN/../OTHER", "OWN%2f..%2fOTHER", "..;/OTHER", "OWN;/../OTHER", "OWN;OTHER", ";OTHER", "OTHER;", "OTHER;x=y",
		"%00", "OTHER%00", "%00OTHER", "OWN%00OTHER", "%c0%ae%c0%ae/OTHER", "%c0%ae%c0%ae%2fOTHER", "%c0%ae%c0%ae%c0%afOTHER", "%e0%80%ae%e0%80%ae/OTHER", "%ff", "OTHER%ff", "%ef%bf%bd",
		"/OTHER", "//OTHER", "./OTHER", "OWN//../OTHER", "..%5cOTHER", "..\\OTHER", "%252e%252e%252fOTHER", "OTHER%20", "%20OTHER", "OTHER.", "OTHER%0d%0aX:%20y", "OTHER%2f", "OTHER%3fx", "OTHER%23x",
		"key:own/../key:NAME", "key:own%2f..%2fkey:NAME", "key:NAME%00", "key:NAME;", "key:%c0%ae", strings.Repeat("../", 40) + "OTHER", strings.Repeat("%2e%2e%2f", 40) + "etc%2fpasswd",
	}
	for _, path := range []string{"/api/threads/" + sibling, "/api/threads/key:sibling/items", "/api/threads/" + sibling + "/files/a.txt", "/chat/sibling"} { // what would be seen
		if a := exchange(t, url, "GET", path, strings.TrimPrefix(url, "http://"), "Skein-Tenant: acme"); !strings.Contains(a.text, "secret of sibling") {
			t.Errorf("%s: %d %.300s", path, a.status, a.text)
		}
	}
	before, tried := state(), 0
	for _, surface := range []string{
		"/api/threads/*", "/api/threads/*/items", "/api/threads/OWN/*", "/api/threads/OWN/files/*", "/api/threads/OWN/files/*/files/a.txt", "/api/threads/OWN/items/*", "/api/threads/*/files/a.txt",
		"/api/definitions/agent/*", "/api/agents/*", "/api/commands/*", "/api/queries/*", "/api/*", "/v1/*", "/v1/responses/*", "/v1/conversations/*", "/v1/conversations/*/items", "/v1/models/*",
		"/chat/*", "/chat/*/stream", "/agui/*", "/agui/agent/*/stop/own", "/a2a/*/tasks", "/a2a/none/tasks/*", "/v1/files/*", "/threads/*/messages", "/threads/*/files", "/threads/OWN/*", "/console/*", "/console/threads/*", "/console/threads/OWN/*", "/*", "/healthz/*",
	} {
		for _, trick := range tricks {
			for key, other := range map[string]string{"sibling": sibling, "foreign": foreign} {
				target := strings.NewReplacer("OWN", thread.ThreadID, "OTHER", other, "NAME", key).Replace(strings.Replace(surface, "*", trick, 1))
				for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
					tried++
					a := exchange(t, url, method, target, strings.TrimPrefix(url, "http://"), "Skein-Tenant: acme", "Content-Length: 0")
					if a.status >= 400 && a.text == "" {
						t.Errorf("%s %s: %d, and not why", method, target, a.status)
					}
					if a.status >= 500 || a.status == http.StatusTooManyRequests || a.status >= 300 && a.status < 400 && !strings.HasPrefix(surface, "/console") || strings.Contains(a.text, "secret of "+key) {
						t.Errorf("%s %s: %d %.300s", method, target, a.status, a.text)
					}
				}
			}
		}
	}
	if after := state(); after != before {
		t.Errorf("after %d requests the threads are %s, and were %s", tried, after, before)
	}
}
