package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A definition has an ETag, which conditions of its changes take, whatever else is defined.
func TestDefinitions_Conditions(t *testing.T) {
	t.Parallel()
	s := start(t)
	const at = "/api/definitions/prompt/p1"
	body := func(text string) string { return fmt.Sprintf(`{"text":%q}`, text) }
	for _, match := range []string{"*", `"x"`} {
		s.ask("PUT", at, body("none"), "If-Match", match).problem(http.StatusPreconditionFailed, "version_conflict", "")
		s.ask("DELETE", at, "", "If-Match", match).problem(http.StatusPreconditionFailed, "version_conflict", "")
	}
	s.ask("PUT", at, body("one"), "If-None-Match", "*").want(http.StatusOK)
	if m := s.ask("PUT", at, body("two"), "If-None-Match", "*").problem(http.StatusPreconditionFailed, "version_conflict", ""); !strings.Contains(m, "prompt p1") {
		t.Error(m)
	}
	got := s.ask("GET", at, "").want(http.StatusOK)
	tag := got.header.Get("ETag")
	if tag != `"`+got.text("digest")+`"` || got.text("definition.text") != "one" {
		t.Fatalf("%s %s", tag, got.body)
	}
	s.ask("GET", at, "", "If-None-Match", tag).want(http.StatusNotModified).has("ETag", tag)
	s.ask("GET", at, "", "If-Match", tag).want(http.StatusOK)
	s.ask("PUT", "/api/definitions/prompt/other", body("x")).want(http.StatusOK)
	s.ask("PUT", at, body("two"), "If-Match", tag, "Idempotency-Key", "k-1").want(http.StatusOK)
	first := s.ask("PUT", at, body("two"), "If-Match", tag, "Idempotency-Key", "k-1").want(http.StatusOK)
	if again := s.ask("PUT", at, body("two"), "If-Match", tag, "Idempotency-Key", "k-1").want(http.StatusOK); string(again.body) != string(first.body) {
		t.Errorf("a repeat: %s, first %s", again.body, first.body)
	}
	for _, stale := range []string{tag, "W/" + tag, `"x"`} {
		s.ask("PUT", at, body("three"), "If-Match", stale).problem(http.StatusPreconditionFailed, "version_conflict", "")
		s.ask("PUT", at, body("three"), "If-Match", stale, "Idempotency-Key", "k-2").problem(http.StatusPreconditionFailed, "version_conflict", "")
		s.ask("DELETE", at, "", "If-Match", stale).problem(http.StatusPreconditionFailed, "version_conflict", "")
		s.ask("GET", at, "", "If-Match", stale).problem(http.StatusPreconditionFailed, "version_conflict", "")
	}
	for _, bad := range []string{"7", "x", `"7", "8"`} {
		s.ask("PUT", at, body("three"), "If-Match", bad).problem(http.StatusBadRequest, "invalid_request", "If-Match")
	}
	s.ask("PUT", at, body("three"), "If-None-Match", tag).problem(http.StatusBadRequest, "invalid_request", "If-None-Match")
	s.ask("PUT", at, body("three"), "If-None-Match", "*", "If-Match", "*").problem(http.StatusBadRequest, "invalid_request", "If-Match")
	if now := s.ask("GET", at, "").want(http.StatusOK); now.text("definition.text") != "two" || now.text("version") != "2" {
		t.Errorf("%s", now.body)
	}
	s.ask("PUT", at, body("four"), "If-Match", "*").want(http.StatusOK)
	s.ask("DELETE", at, "", "If-Match", s.ask("GET", at, "").header.Get("ETag")).want(http.StatusOK)
	s.ask("PUT", at, body("one"), "If-None-Match", "*").want(http.StatusOK)
}

// Of many that create one definition at once, while others change, one does.
func TestDefinitions_CreatedOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	var all sync.WaitGroup
	status := make([]int, 8)
	for i := range status {
		all.Go(func() {
			r := s.open("PUT", "/api/definitions/prompt/once", fmt.Sprintf(`{"text":"of %d"}`, i), "If-None-Match", "*")
			status[i] = r.StatusCode
			r.Body.Close()
		})
	}
	all.Wait()
	made := 0
	for _, got := range status {
		if got == http.StatusOK {
			made++
		} else if got != http.StatusPreconditionFailed {
			t.Errorf("%d", got)
		}
	}
	if now := s.ask("GET", "/api/definitions/prompt/once", "").want(http.StatusOK); made != 1 || now.text("version") != "1" {
		t.Errorf("%d created it: %s", made, now.body)
	}
}

// A refusal names fields of the request, and not those of the command that it becomes.
func TestRefusals_NameTheRequest(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	s.ask("PUT", "/api/definitions/model/m", `{"model":"x","name":"m"}`).want(http.StatusOK)
	s.ask("PUT", "/api/definitions/agent/a", `{"type":"ai_human","model":"m"}`).want(http.StatusOK)
	for _, c := range []struct{ method, path, body, param, says string }{
		{"PATCH", thread, `{}`, "", "thread.update needs at least one field to change"},
		{"POST", thread + "/fork", `{}`, "", "a fork needs exactly one of messageIndex, itemId and version"},
		{"POST", thread + "/approvals/C", `{}`, "", "exactly one of grant, deny and result is needed"},
		{"POST", thread + "/messages", `{}`, "role", "/role: is missing"},
		{"PUT", "/api/definitions/model/m", `{}`, "model", "/model: is missing"},
		{"PUT", "/api/definitions/model/m", `{"model":"x","name":"n"}`, "name", `the path names "m", and the body "n"`},
		{"PUT", "/api/definitions/model/m", `{"model":"x","name":7}`, "name", "/name: "},
		{"PUT", "/api/definitions/model/b%20d", `{"model":"x"}`, "name", "/name: must be a name"},
		{"PUT", "/api/definitions/poem/m", `{"model":"x"}`, "kind", "/kind: must be one of"},
		{"PUT", "/api/definitions/agent/a", `{"type":"ai_human","model":"none"}`, "model", "/model: agent a refers to the model none"},
		{"DELETE", "/api/definitions/model/m", ``, "", "model/m is still referred to by agent/a"},
		{"DELETE", "/api/definitions/poem/m", ``, "kind", "/kind: must be one of"},
		{"POST", "/api/commands/approval.resolve", `{"threadId":"` + id(thread) + `","data":{"callId":"C"}}`, "data", "/data: exactly one of"},
	} {
		if m := s.ask(c.method, c.path, c.body).problem(http.StatusBadRequest, "invalid_request", c.param); !strings.HasPrefix(m, c.says) {
			t.Errorf("%s %s %s: %q does not say %q", c.method, c.path, c.body, m, c.says)
		}
	}
	for _, m := range []string{
		s.ask("PUT", "/api/definitions/model/m", `{"model":"y"}`, "If-Match", `"1"`).problem(http.StatusPreconditionFailed, "version_conflict", ""),
		s.ask("POST", "/api/commands/definition.apply", `{"expectedVersion":1,"data":{"remove":[{"kind":"agent","name":"a"}]}}`).problem(http.StatusConflict, "version_conflict", ""),
	} {
		if m != "the tenant's definitions are at version 2, not 1" {
			t.Error(m)
		}
	}
	s.ask("PUT", "/api/definitions/model/m", `{"model":"y"}`, "If-Match", `"2"`).want(http.StatusOK)
}

// A condition of a reader that does not hold is told.
func TestThreads_ReadWhileUnchanged(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	tag := s.ask("GET", thread, "").want(http.StatusOK).header.Get("ETag")
	for _, match := range []string{tag, "*", `"x", ` + tag} {
		s.ask("GET", thread, "", "If-Match", match).want(http.StatusOK).has("ETag", tag)
	}
	s.ask("GET", thread, "", "If-Match", tag, "If-None-Match", tag).want(http.StatusNotModified)
	s.ask("PATCH", thread, `{"title":"B"}`).want(http.StatusOK)
	for _, match := range []string{tag, "W/" + tag, `"x", ` + tag} {
		s.ask("GET", thread, "", "If-Match", match).problem(http.StatusPreconditionFailed, "version_conflict", "")
	}
	s.ask("GET", thread, "", "If-Match", tag, "If-None-Match", "*").problem(http.StatusPreconditionFailed, "version_conflict", "")
	for _, match := range []string{"7", `"`, "", `7, "x"`} {
		s.ask("GET", thread, "", "If-Match", match).problem(http.StatusBadRequest, "invalid_request", "If-Match")
	}
}
