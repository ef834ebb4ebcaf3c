package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api/edge"
)

// No protocol over HTTP takes an actor from a body: it is the principal.
func TestActor_IsThePrincipal(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{"": {Tenant: "acme", Subject: "key:a"}})
	for path, body := range map[string]string{
		"/v1/responses":        `{"model":"talker","input":"hi"}`,
		"/v1/chat/completions": `{"model":"talker","messages":[{"role":"user","content":"hi"}]}`,
		"/chat":                `{"id":"c1","agent":"talker","message":{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]}}`,
		"/agui/talker":         `{"threadId":"t1","runId":"r1","messages":[{"id":"m1","role":"user","content":"hi"}]}`,
		"/api/threads":         `{"key":"k1"}`,
	} {
		for _, actor := range []string{`"mallory"`, `null`} {
			named := strings.Replace(body, "{", `{"actor":`+actor+`,`, 1)
			if status, text := s.ask("", "POST", path, named); status != http.StatusBadRequest || !strings.Contains(text, "the actor of a request over HTTP is its principal") {
				t.Errorf("%s with the actor %s: %d %s", path, actor, status, text)
			}
		}
	}
}
