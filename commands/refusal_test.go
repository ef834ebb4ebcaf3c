package commands

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// refusal is what a client sees of one.
type refusal struct {
	Error struct {
		Code    events.Code         `json:"code"`
		Message string              `json:"message"`
		Details events.ErrorDetails `json:"details"`
	} `json:"error"`
}

// wantRefused sends a request that must be refused, and checks the code in the
// body and in the headers.
func wantRefused(t *testing.T, nc *nats.Conn, subject, body string, code events.Code, status int) refusal {
	t.Helper()
	m := request(t, nc, subject, []byte(body))
	var r refusal
	if err := json.Unmarshal(m.Data, &r); err != nil {
		t.Fatalf("%.100q %.100q: answered %s: %v", subject, body, m.Data, err)
	}
	if r.Error.Code != code || m.Header.Get("Nats-Service-Error-Code") != strconv.Itoa(status) || m.Header.Get("Nats-Service-Error") != string(code) || r.Error.Message == "" {
		t.Errorf("%.100q %.100q: answered %.300s with %v; want %s, %d", subject, body, m.Data, m.Header, code, status)
	}
	return r
}

// Everything that is refused over NATS is refused with its code, and nothing of
// it is in the log (EK-9, EK-73, EK-86, EK-150, EK-160..EK-164, EK-181).
func TestRefusalsOverNATS(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(w.d, 100)
	id, other := create(t, w.d), must(t, w.d, "thread.create", `{"data":{"key":"taken"}}`).ThreadID
	for _, thread := range []string{id, other} {
		n := strconv.Itoa(map[string]int{id: 1, other: 2}[thread])
		must(t, w.d, "item.create", on(thread, `{"item":{"id":"itm_`+n+`","type":"message","role":"user","content":[]}}`))
		must(t, w.d, "execution.create", on(thread, `{"id":"exe_`+n+`","triggerItemId":"itm_`+n+`"}`))
		must(t, w.d, "step.create", on(thread, `{"id":"stp_`+n+`","executionId":"exe_`+n+`"}`))
		must(t, w.d, "context.create", on(thread, `{"id":"ctx_`+n+`"}`))
	}
	const none = "T-0195e5d0-3c1a-7b2e-9f44-1d2e3f405199"
	big := strings.Repeat("x", events.MaxEventBytes)
	before := w.lastSeq()
	cases := []struct {
		name, body string
		code       events.Code
		status     int
		path       string
	}{
		{"thread.create", ``, events.InvalidRequest, 400, ""},
		{"thread.create", `{`, events.InvalidRequest, 400, ""},
		{"thread.create", `null`, events.InvalidRequest, 400, ""},
		{"thread.create", `[]`, events.InvalidRequest, 400, ""},
		{"thread.create", `"{}"`, events.InvalidRequest, 400, ""},
		{"thread.create", `{} {}`, events.InvalidRequest, 400, ""},
		{"thread.create", `{"data":{},"data":{}}`, events.InvalidRequest, 400, "/data"},
		{"thread.create", "{\"data\":{\"title\":\"\xff\"}}", events.InvalidRequest, 400, "/data/title"},
		{"thread.create", strings.Repeat(`{"data":`, 100_000), events.InvalidRequest, 400, "*"},
		{"thread.create", `{"data":{"context":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}}`, events.InvalidRequest, 400, "*"},
		{"thread.create", `{"title":"x"}`, events.InvalidRequest, 400, "/title"},
		{"thread.create", `{"data":{"titel":"x"}}`, events.InvalidRequest, 400, "/data/titel"},
		{"thread.create", `{"data":{"title":7}}`, events.InvalidRequest, 400, "/data/title"},
		{"thread.create", `{"data":{"metadata":[]}}`, events.InvalidRequest, 400, "/data/metadata"},
		{"thread.create", `{"data":{"key":"` + strings.Repeat("k", 257) + `"}}`, events.InvalidRequest, 400, "/data/key"},
		{"thread.create", `{"data":{"key":"a\nb"}}`, events.InvalidRequest, 400, "/data/key"},
		{"thread.create", `{"data":{"key":"taken"}}`, events.AlreadyExists, 409, ""},
		{"thread.create", on(id, `{}`), events.AlreadyExists, 409, ""},
		{"thread.create", on("key:new", `{}`), events.InvalidRequest, 400, "/threadId"},
		{"thread.create", `{"commandId":"a b"}`, events.InvalidRequest, 400, "/commandId"},
		{"thread.create", `{"commandId":7}`, events.InvalidRequest, 400, "/commandId"},
		{"thread.create", `{"commandId":"` + strings.Repeat("c", 1000) + `"}`, events.InvalidRequest, 400, "/commandId"},
		{"thread.create", `{"data":{"context":"` + big + `"}}`, events.PayloadTooLarge, 413, ""},
		{"thread.resolve", `{"data":{}}`, events.InvalidRequest, 400, "/data/key"},
		{"thread.fly", `{}`, events.NotFound, 404, ""},
		{"thread.status", `{"data":{"to":"open"}}`, events.InvalidRequest, 400, "/threadId"},
		{"thread.status", on(none, `{"to":"streaming"}`), events.NotFound, 404, ""},
		{"thread.status", on("key:nobody", `{"to":"streaming"}`), events.NotFound, 404, ""},
		{"thread.status", on("K-0123", `{"to":"streaming"}`), events.InvalidRequest, 400, "/threadId"},
		{"thread.status", on("tenant", `{"to":"streaming"}`), events.InvalidRequest, 400, "/threadId"},
		{"thread.status", on("T-*", `{"to":"streaming"}`), events.InvalidRequest, 400, "/threadId"},
		{"thread.status", on(strings.Repeat("T", 1000), `{"to":"streaming"}`), events.InvalidRequest, 400, "/threadId"},
		{"thread.status", on(id, `{"to":"asleep"}`), events.InvalidRequest, 400, "/data/to"},
		{"thread.status", on(id, `{}`), events.InvalidRequest, 400, "/data/to"},
		{"thread.update", on(id, `{}`), events.InvalidRequest, 400, "/data"},
		{"thread.update", on(id, `{"maxTokens":0}`), events.InvalidRequest, 400, "/data/maxTokens"},
		{"thread.update", on(id, `{"maxTokens":1.5}`), events.InvalidRequest, 400, "/data/maxTokens"},
		{"thread.update", `{"threadId":"` + id + `","expectedVersion":-1,"data":{"title":"x"}}`, events.InvalidRequest, 400, "/expectedVersion"},
		{"context.set", on(id, `{}`), events.InvalidRequest, 400, "/data"},
		{"context.set", on(id, `{"content":1,"patch":{}}`), events.InvalidRequest, 400, "/data"},
		{"context.set", on(id, `{"contextId":"ctx_2","content":1}`), events.NotFound, 404, ""},
		{"context.status", on(id, `{"contextId":"ctx_2","to":"closed"}`), events.NotFound, 404, ""},
		{"item.create", on(id, `{"item":{"type":"reasoning"}}`), events.InvalidRequest, 400, "/data/item/type"},
		{"item.create", on(id, `{"item":{"type":"message","role":"tool","content":[]}}`), events.InvalidRequest, 400, "/data/item/role"},
		{"item.create", on(id, `{"item":{"type":"message","role":"user"}}`), events.InvalidRequest, 400, "/data/item/content"},
		{"item.create", on(id, `{"item":{"id":"a.b","type":"message","role":"user","content":[]}}`), events.InvalidRequest, 400, "/data/item/id"},
		{"item.create", on(id, `{"item":{"id":"itm_1","type":"message","role":"user","content":[]}}`), events.AlreadyExists, 409, ""},
		{"item.create", on(id, `{"item":{"type":"message","role":"user","content":[],"createdAt":"2026-02-30T00:00:00Z"}}`), events.InvalidRequest, 400, "/data/item/createdAt"},
		{"item.create", on(id, `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"`+big+`"}]}}`), events.PayloadTooLarge, 413, ""},
		{"execution.create", on(id, `{"triggerItemId":"itm_2"}`), events.NotFound, 404, ""},
		{"step.create", on(id, `{"executionId":"exe_2"}`), events.NotFound, 404, ""},
		{"step.status", on(id, `{"stepId":"stp_2","to":"completed"}`), events.NotFound, 404, ""},
		{"step.status", on(id, `{"stepId":"stp_1","executionId":"exe_2","to":"completed"}`), events.NotFound, 404, ""},
		{"part.put", on(id, `{"stepId":"stp_2","idx":0}`), events.NotFound, 404, ""},
		{"part.put", on(id, `{"stepId":"stp_1","idx":0,"key":"stp_1:1"}`), events.InvalidRequest, 400, "/data/key"},
		{"part.put", on(id, `{"stepId":"stp_1","idx":-1}`), events.InvalidRequest, 400, "/data/idx"},
		{"part.put", on(id, `{"stepId":"stp_1"}`), events.InvalidRequest, 400, "/data/idx"},
		{"thread.commit", on(id, `{"commands":[]}`), events.InvalidRequest, 400, "/data/commands"},
		{"thread.commit", on(id, `{"commands":[`+strings.Repeat(`{"command":"context.resolve"},`, 200)+`{"command":"context.resolve"}]}`), events.InvalidRequest, 400, "/data/commands"},
		{"thread.commit", on(id, `{"commands":[{"command":"thread.fly"}]}`), events.InvalidRequest, 400, "/data/commands/0/command"},
		{"thread.commit", on(id, `{"commands":[{"command":"context.resolve"},{"command":"thread.delete"}]}`), events.InvalidRequest, 400, "/data/commands/1/command"},
		{"thread.commit", on(id, `{"commands":[{"command":"thread.commit","data":{"commands":[]}}]}`), events.InvalidRequest, 400, "/data/commands/0/command"},
		{"thread.commit", on(id, `{"commands":[{"command":"context.resolve"},{"command":"thread.create"}]}`), events.InvalidRequest, 400, "/data/commands/1/command"},
		{"thread.commit", on(id, `{"commands":[{"command":"context.resolve"},{"command":"thread.update","data":{"titel":"x"}}]}`), events.InvalidRequest, 400, "/data/commands/1/data/titel"},
		{"thread.commit", on(id, `{"commands":[{"command":"context.resolve"},{"command":"thread.update","data":{}}]}`), events.InvalidRequest, 400, "/data/commands/1/data"},
		{"thread.commit", on(id, `{"commands":[{"command":"context.create","data":{"content":"`+big+`"}}]}`), events.PayloadTooLarge, 413, ""},
	}
	for _, c := range cases {
		r := wantRefused(t, w.nc, "skein.cmd.acme."+c.name, c.body, c.code, c.status)
		if c.path != "*" && r.Error.Details.Path != c.path {
			t.Errorf("%s %.100q: the path is %q, want %q", c.name, c.body, r.Error.Details.Path, c.path)
		}
	}
	if after := w.lastSeq(); after != before {
		t.Errorf("the log went from %d to %d", before, after)
	}
	overNATS(t, w.nc, "thread.status", on(id, `{"to":"streaming"}`))
}

// A tenant and a command are single tokens of letters, digits, dashes and
// underscores; every other subject is answered too, and writes nothing (EK-180).
func TestOddSubjects(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(w.d, 100)
	before := w.lastSeq()
	long := strings.Repeat("a", 1000)
	for _, tenant := range []string{"-a", "_a", "a%b", "é", "\x01", "a\x7f", "\xff", `"`, "$SYS", long, "*", ">", "a*b"} {
		wantRefused(t, w.nc, "skein.cmd."+tenant+".thread.create", `{}`, events.InvalidRequest, 400)
	}
	for _, rest := range []string{"acme", "acme.thread", "acme.thread.create.now", "a.b.thread.create"} {
		wantRefused(t, w.nc, "skein.cmd."+rest, `{}`, events.InvalidRequest, 400)
	}
	for _, name := range []string{"thread.*", "thread.>", "thread.Create", "\xff.\x01", long + "." + long, "thread.get"} {
		wantRefused(t, w.nc, "skein.cmd.acme."+name, `{}`, events.NotFound, 404)
	}
	if after := w.lastSeq(); after != before {
		t.Errorf("the log went from %d to %d", before, after)
	}
	overNATS(t, w.nc, "thread.create", `{}`)
}

// The refusal of a forbidden move lists the allowed ones, and that of an outdated version
// names the current one.
func TestRefusal_NamesAllowedMovesAndVersion(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(w.d, 100)
	id := create(t, w.d)
	r := wantRefused(t, w.nc, "skein.cmd.acme.thread.status", on(id, `{"to":"failed"}`), events.IllegalTransition, 422)
	if d := r.Error.Details; d.Entity != "thread" || d.ID != id || d.From != "open" || d.To != "failed" || strings.Join(d.Allowed, " ") != "streaming" {
		t.Errorf("the details are %+v", d)
	}
	r = wantRefused(t, w.nc, "skein.cmd.acme.thread.update", `{"threadId":"`+id+`","expectedVersion":1,"data":{"title":"x"}}`, events.VersionConflict, 409)
	if d := r.Error.Details; d.CurrentVersion == nil || *d.CurrentVersion != 2 {
		t.Errorf("the details are %+v", d)
	}
	r = wantRefused(t, w.nc, "skein.cmd.acme.thread.commit", on(id, `{"commands":[{"command":"thread.status","data":{"to":"streaming"}},{"command":"thread.status","data":{"to":"streaming"}}]}`), events.IllegalTransition, 422)
	if d := r.Error.Details; d.Command == nil || *d.Command != 1 || strings.Join(d.Allowed, " ") != "open closed failed" {
		t.Errorf("the details are %+v", d)
	}
	overNATS(t, w.nc, "thread.update", `{"threadId":"`+id+`","expectedVersion":2,"data":{"title":"x"}}`)
}

// A commit that is larger than the log takes is refused whole, alone or
// together with others that are not.
func TestCommitTooLarge(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	written := 0
	large := func(n int) string { // of contents that differ: a commit holds equal ones once
		parts := make([]string, n)
		for i := range parts {
			written++
			parts[i] = fmt.Sprintf(`{"command":"context.create","data":{"content":"%d%s"}}`, written, strings.Repeat("x", 511<<10))
		}
		return on(id, `{"commands":[`+strings.Join(parts, ",")+`]}`)
	}
	e := refused(t, w.d, events.PayloadTooLarge, "thread.commit", large(8))
	if e.Details == nil || e.Details.Limit == 0 || e.Details.Size <= e.Details.Limit && e.Details.Size != 0 {
		t.Errorf("the details are %+v", e.Details)
	}
	version := must(t, w.d, "thread.commit", large(4)).Version
	jobs := jobsOf(t, w.d, [2]string{"thread.commit", large(4)}, [2]string{"thread.commit", large(5)}, [2]string{"item.create", on(id, hello)})
	rounds(w.d, id, jobs)
	for i, j := range jobs {
		if a := <-j.done; a.err != nil {
			t.Errorf("job %d: %v", i, a.err)
		}
	}
	if list := w.commits(id); list[len(list)-1].Version != version+10 {
		t.Errorf("from version %d to %d", version, list[len(list)-1].Version)
	}
}

// Over the server's limit a client cannot even send; the connection and the
// service live on.
func TestPayloadOverTheLimit(t *testing.T) {
	w := newWorld(t, Config{})
	w.serve(w.d, 100)
	nc := natstest.Connect(t, w.server)
	if err := nc.Publish("skein.cmd.acme.thread.create", make([]byte, events.MaxPayload+1)); err == nil {
		t.Error("a message over the limit was taken")
	}
	overNATS(t, nc, "thread.create", `{}`)
}
