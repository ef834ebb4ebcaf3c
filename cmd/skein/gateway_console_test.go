package main_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// The console works through a gateway: one signs in, reads and changes threads, follows them, and
// shares them; it has no page of the system, and opens links of its own tenants only.
func TestGateway_Console(t *testing.T) {
	t.Parallel()
	g := newGates(t, "acme")
	p := g.gateway()
	acme := g.Client("acme")
	made, err := acme.Send(t.Context(), "", events.CreateThread{Title: "Order 42"})
	g.Must(err)
	id := made.ThreadID
	_, err = acme.Send(t.Context(), id, events.CreateItem{Item: events.UserText("Where is it?")})
	g.Must(err)
	g.WaitIdle() // the gateway does not know what others have written

	if r := p.do("GET", "/console/threads", "", ""); r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(r.Header.Get("Location"), "/console/sign-in") {
		t.Fatalf("without a session: %d to %s", r.StatusCode, r.Header.Get("Location"))
	}
	const form = "application/x-www-form-urlencoded"
	signIn := p.do("POST", "/console/sign-in", url.Values{"key": {g.key}}.Encode(), "", "Origin", p.url, "Content-Type", form)
	if len(signIn.Cookies()) != 1 {
		t.Fatalf("signing in: %d %.300s", signIn.StatusCode, signIn.text)
	}
	session := signIn.Cookies()[0].Name + "=" + signIn.Cookies()[0].Value
	get := func(path string) httpReply { t.Helper(); return p.do("GET", path, "", "", "Cookie", session) }
	post := func(path string, values url.Values) httpReply {
		t.Helper()
		return p.do("POST", path, values.Encode(), "", "Cookie", session, "Origin", p.url, "Content-Type", form)
	}
	for path, want := range map[string]string{
		"/console/threads": "Order 42", "/console/threads/" + id: "Where is it?", "/console/threads/" + id + "/timeline": "thread.created",
		"/console/threads/" + id + "/state": "Order 42", "/console/runs": "Runs", "/console/agents": "Agents", "/console/approvals": "Approvals",
		"/console/static/console.css": "main",
	} {
		if r := get(path); r.StatusCode != http.StatusOK || !strings.Contains(r.text, want) {
			t.Errorf("%s: %d, without %s", path, r.StatusCode, want)
		}
	}
	if r := get("/console/system"); r.StatusCode != http.StatusNotFound {
		t.Errorf("a gateway has a page of the system: %d", r.StatusCode)
	}
	live := p.stream("/console/live/threads/"+id, "Cookie", session)
	if r := post("/console/threads/"+id+"/say", url.Values{"text": {"Said at the gateway"}}); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("saying something: %d %.300s", r.StatusCode, r.text)
	}
	for {
		_, data, more := live.next()
		if !more {
			t.Fatal("the page that is open is not told what was said")
		}
		if strings.Contains(data, "Said at the gateway") {
			break
		}
	}
	shared := post("/console/threads/"+id+"/share", nil)
	_, rest, _ := strings.Cut(shared.text, p.url+"/console/shared/acme/")
	token, _, found := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("no link was made: %d %.300s", shared.StatusCode, shared.text)
	}
	if r := p.do("GET", "/console/shared/acme/"+token, "", ""); r.StatusCode != http.StatusOK || !strings.Contains(r.text, "Said at the gateway") {
		t.Errorf("the link: %d", r.StatusCode)
	}

	other, err := g.Client("globex").Send(t.Context(), "", events.CreateThread{})
	g.Must(err)
	foreign, err := g.Client("globex").Send(t.Context(), other.ThreadID, events.ShareThread{})
	g.Must(err)
	if r := p.do("GET", "/console/shared/globex/"+foreign.Result.Token, "", ""); r.StatusCode != http.StatusNotFound {
		t.Errorf("a link of a tenant that it does not serve: %d", r.StatusCode)
	}
}
