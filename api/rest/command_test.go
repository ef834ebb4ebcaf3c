package rest_test

import (
	"net/http"
	"strings"
	"testing"
)

// The bodies are those of the contract, as over NATS.
func TestCommands_TakeBodiesOfTheContract(t *testing.T) {
	t.Parallel()
	s := start(t)
	made := s.ask("POST", "/api/commands/thread.create", `{"commandId":"c-1","data":{"key":"support/42","title":"One"}}`).want(http.StatusOK)
	thread := made.text("threadId")
	made.has("ETag", `"`+made.text("version")+`"`).has("Skein-Seq", made.text("seq"))

	item := s.ask("POST", "/api/commands/item.create", `{"threadId":"key:support/42","data":`+hello+`}`).want(http.StatusOK)
	if item.text("threadId") != thread {
		t.Errorf("item.create: %s", item.body)
	}
	list := s.ask("POST", "/api/queries/item.list", `{"threadId":"`+thread+`"}`, "Skein-Min-Seq", item.text("seq")).want(http.StatusOK)
	if list.text("total") != "1" {
		t.Errorf("item.list: %s", list.body)
	}
	again := s.ask("POST", "/api/commands/thread.create", `{"commandId":"c-1","data":{"key":"support/42","title":"One"}}`).want(http.StatusOK)
	if string(again.body) != string(made.body) {
		t.Errorf("a repeat: %s, first %s", again.body, made.body)
	}
	s.ask("POST", "/api/queries/thread.get", `{"threadId":"`+thread+`"}`, "Skein-Min-Seq", item.text("seq")).want(http.StatusOK).
		has("ETag", `"`+item.text("version")+`"`)
}

// The events of a command record the trace that its request is part of.
func TestCommands_ContinueTheTrace(t *testing.T) {
	t.Parallel()
	s := start(t)
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	thread := "/api/threads/" + s.ask("POST", "/api/threads", `{}`, "Traceparent", trace).want(http.StatusCreated).text("threadId")
	s.ask("POST", thread+"/items", hello).want(http.StatusCreated)
	list := s.ask("GET", thread+"/events", "", "Accept", "application/json").want(http.StatusOK)
	if n := strings.Count(string(list.body), `"traceparent":"`+trace+`"`); n != 2 || !strings.Contains(string(list.body), `"item.created"`) {
		t.Errorf("%d events of the trace: %s", n, list.body)
	}
}

func TestCommands_UnknownName(t *testing.T) {
	t.Parallel()
	s := start(t)
	if m := s.ask("POST", "/api/commands/thread.creat", `{}`).problem(http.StatusNotFound, "not_found", ""); !strings.Contains(m, "did you mean thread.create?") {
		t.Errorf("thread.creat: %q", m)
	}
	if m := s.ask("POST", "/api/queries/item.lits", `{}`).problem(http.StatusNotFound, "not_found", ""); !strings.Contains(m, "did you mean item.list?") {
		t.Errorf("item.lits: %q", m)
	}
	for _, name := range []string{"thread", "..", "%2e%2e", "thread%2fcreate", "thread.create%00", strings.Repeat("a", 5000), "skein.cmd.other.thread.create", "*", ">"} {
		s.ask("POST", "/api/commands/"+name, `{}`).problem(http.StatusNotFound, "not_found", "")
	}
	if a := s.ask("GET", "/api/commands/thread.create", ""); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST" {
		t.Errorf("GET of a command: %d, Allow %q", a.status, a.header.Get("Allow"))
	}
}

// Over HTTP the actor is the principal: a body cannot name another.
func TestCommands_RefuseActor(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	s.ask("POST", "/api/commands/thread.create", `{"actor":"mallory","data":{}}`).problem(http.StatusBadRequest, "invalid_request", "actor")
	s.ask("POST", "/api/threads", `{"actor":"mallory"}`).problem(http.StatusBadRequest, "invalid_request", "actor")
	s.ask("POST", thread+"/items", `{"actor":null}`).problem(http.StatusBadRequest, "invalid_request", "actor")
	s.ask("POST", thread+"/react", `{"actor":"mallory","text":"hi"}`).problem(http.StatusBadRequest, "invalid_request", "actor")
	list := s.ask("GET", thread+"/events", "", "Accept", "application/json").want(http.StatusOK)
	if strings.Contains(string(list.body), "mallory") || !strings.Contains(string(list.body), `"actor":"desk"`) {
		t.Errorf("the events: %s", list.body)
	}
}

// Whatever is wrong with a body, the answer says what and where, and nothing is written.
func TestCommands_StrictJSON(t *testing.T) {
	t.Parallel()
	s := start(t)
	deep := strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001)
	for _, c := range []struct{ name, body, kind, param, says string }{
		{"no JSON", `{"data":`, "application/json", "data", "not JSON"},
		{"two values", `{} {}`, "application/json", "", "JSON"},
		{"a list", `[]`, "application/json", "", "object"},
		{"a name twice", `{"data":{"title":"a","title":"b"}}`, "application/json", "data/title", "twice"},
		{"an unknown field", `{"data":{"tilte":"a"}}`, "application/json", "data/tilte", "no such field"},
		{"an unknown field outside", `{"thread":"x","data":{}}`, "application/json", "thread", "no such field"},
		{"a wrong type", `{"data":{"title":7}}`, "application/json", "data/title", "must be"},
		{"a wrong type outside", `{"expectedVersion":"7"}`, "application/json", "expectedVersion", "wrong type"},
		{"invalid UTF-8", "{\"data\":{\"title\":\"\xff\"}}", "application/json", "data/title", "UTF-8"},
		{"10,000 levels", `{"data":` + deep + `}`, "application/json", "", "deep"},
		{"100 levels", `{"data":{"metadata":` + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100) + `}}`, "application/json", "", "deep"},
		{"a form", `data=x`, "application/x-www-form-urlencoded", "Content-Type", "application/json"},
		{"a text", `{}`, "text/plain", "Content-Type", "application/json"},
		{"no type", `{}`, "", "Content-Type", "application/json"},
		{"a broken type", `{}`, "application/json; =", "Content-Type", "application/json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.t = t
			a := s.ask("POST", "/api/commands/thread.create", c.body, "Content-Type", c.kind)
			if c.says == "deep" { // its path is as deep as it is
				a.want(http.StatusBadRequest)
				if len(a.body) > 2000 || !strings.Contains(string(a.body), c.says) {
					t.Errorf("%d bytes: %.600s", len(a.body), a.body)
				}
				return
			}
			if m := a.problem(http.StatusBadRequest, "invalid_request", c.param); !strings.Contains(m, c.says) {
				t.Errorf("%q does not say %q", m, c.says)
			}
		})
	}
	s.ask("POST", "/api/threads", `{"title":"`+strings.Repeat("a", 5<<20)+`"}`).problem(http.StatusRequestEntityTooLarge, "payload_too_large", "")
	if list := s.ask("GET", "/api/threads", "").want(http.StatusOK); string(list.body) != `{"threads":[]}` {
		t.Errorf("threads: %s", list.body)
	}
}

func TestCommands_Conditions(t *testing.T) {
	t.Parallel()
	s := start(t)
	thread := s.thread()
	a := s.ask("PATCH", thread, `{"title":"B"}`, "If-Match", `"1"`)
	a.problem(http.StatusPreconditionFailed, "version_conflict", "")
	version := s.ask("GET", thread+"?minVersion=2", "").want(http.StatusOK).header.Get("ETag")
	changed := s.ask("PATCH", thread, `{"title":"B"}`, "If-Match", version, "Idempotency-Key", "k-1").want(http.StatusOK)
	again := s.ask("PATCH", thread, `{"title":"B"}`, "If-Match", version, "Idempotency-Key", "k-1").want(http.StatusOK)
	if string(changed.body) != string(again.body) {
		t.Errorf("a repeat: %s, first %s", again.body, changed.body)
	}
	s.ask("GET", thread, "", "Skein-Min-Seq", changed.text("seq"), "If-None-Match", changed.header.Get("ETag")).want(http.StatusNotModified)
	for _, none := range []string{"*", "W/" + changed.header.Get("ETag"), `"x", ` + changed.header.Get("ETag"), `W/"1",W/` + changed.header.Get("ETag")} {
		s.ask("GET", thread, "", "If-None-Match", none).want(http.StatusNotModified).has("ETag", changed.header.Get("ETag"))
	}
	for _, none := range []string{`"1"`, `W/"1", "x"`, "7", ""} {
		s.ask("GET", thread, "", "If-None-Match", none).want(http.StatusOK)
	}
	for _, match := range []string{"7", `"7", "8"`, `"7" "8"`, `"`} {
		s.ask("PATCH", thread, `{}`, "If-Match", match).problem(http.StatusBadRequest, "invalid_request", "If-Match")
	}
	for _, match := range []string{`W/"7"`, `"x"`, `"-1"`, `"99999999999999999999"`, `""`} {
		s.ask("PATCH", thread, `{"title":"B"}`, "If-Match", match).problem(http.StatusPreconditionFailed, "version_conflict", "")
	}
	s.ask("PATCH", thread, `{"title":"B2"}`, "If-Match", "*").want(http.StatusOK)
	s.ask("POST", "/api/threads", `{}`, "If-Match", "*").problem(http.StatusBadRequest, "invalid_request", "If-Match")
	s.ask("PATCH", thread, `{}`, "Idempotency-Key", "no spaces").problem(http.StatusBadRequest, "invalid_request", "Idempotency-Key")
	s.ask("PATCH", thread, `{"title":"B"}`, "Content-Encoding", "gzip").has("Accept-Encoding", "identity").problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	s.ask("PATCH", thread, `{"title":"B"}`, "Content-Encoding", "identity").want(http.StatusOK)
	s.ask("POST", "/api/commands/thread.update", `{"commandId":"a","threadId":"`+id(thread)+`","data":{}}`, "Idempotency-Key", "b").
		problem(http.StatusBadRequest, "invalid_request", "commandId")
	s.ask("POST", "/api/commands/thread.update", `{"expectedVersion":3,"threadId":"`+id(thread)+`","data":{}}`, "If-Match", `"4"`).
		problem(http.StatusBadRequest, "invalid_request", "expectedVersion")
	s.ask("POST", "/api/commands/thread.update", `{"expectedVersion":1,"threadId":"`+id(thread)+`","data":{"title":"C"}}`).
		problem(http.StatusConflict, "version_conflict", "")
}
