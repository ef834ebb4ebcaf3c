package agui_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// What of a history follows the last message that the thread has is new, and one that differs forks
// the thread.
func TestHistory(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.say("one")
	a.say("two")
	first := a.messages
	a.messages = append(append([]object{}, first[:2]...), user("e2", "second"))
	a.run()
	a.want("user: one", "assistant: answer to one", "user: second", "assistant: answer to second")
	a.say("three") // it goes on in the fork
	a.want("user: one", "assistant: answer to one", "user: second", "assistant: answer to second", "user: three", "assistant: answer to three")

	b := w.agent("t")
	b.name = "b" // and the first history in the thread
	b.messages = append([]object{}, first...)
	b.say("other")
	b.want("user: one", "assistant: answer to one", "user: two", "assistant: answer to two", "user: other", "assistant: answer to other")

	b.messages = b.messages[:1] // its answer is to be written again
	b.run()
	b.want("user: one", "assistant: answer to one")
	b.messages = []object{user("u0", "uno")} // the first message is another
	b.run()
	b.want("user: uno", "assistant: answer to uno")
	b.messages = []object{user("tail", "more")} // the client has nothing of the history
	b.run()
	if got := strings.Join(w.texts(), ", "); got != "user: uno, assistant: answer to uno, user: more" {
		t.Errorf("the reactor was shown %s", got)
	}
	list, err := client.Read(t.Context(), w.now(), events.ListThreads{})
	w.s.Must(err)
	for _, one := range list.Threads {
		if one.Key == nil || *one.Key != "agui:t" && !strings.HasPrefix(*one.Key, "agui:t/") {
			t.Errorf("the thread %+v is of no client", one)
		}
	}
	if len(list.Threads) != 4 {
		t.Errorf("%d threads, want 4", len(list.Threads))
	}
}

// Messages that a client has from elsewhere begin the thread.
func TestHistory_Imported(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.messages = []object{
		{"id": "s", "role": "system", "content": "Be kind."}, user("u", "before"),
		{"id": "a", "role": "assistant", "toolCalls": []object{{"id": "c", "type": "function", "function": object{"name": "find", "arguments": `{"x":1}`}}}},
		{"id": "r", "role": "tool", "toolCallId": "c", "content": "found"},
		{"id": "a2", "role": "assistant", "content": "It is there."},
	}
	a.more = object{"context": []object{{"description": "The page", "value": "orders"}}}
	a.say("and now")
	if got := strings.Join(w.texts(), ", "); got != "user: before, assistant: It is there., user: and now" {
		t.Errorf("the reactor was shown %s", got)
	}
	if got := w.last().Instructions; !strings.Contains(got, "Be kind.") || !strings.Contains(got, "The page:\norders") {
		t.Errorf("instructions %q", got)
	}
	for name, m := range map[string]object{
		"of an assistant": {"id": "x", "role": "assistant", "content": "I said"}, "of no call": {"id": "x", "role": "tool", "toolCallId": "zzz", "content": "?"},
	} {
		b := w.agent("bad")
		b.messages = []object{user("u", "hi"), m}
		if status, body := w.post("/agui/triage", b.input(name)); status != 400 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestRun_Parts(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	png := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	a.messages = []object{{"id": "u", "role": "user", "content": []object{
		{"type": "text", "text": "look"}, {"type": "image", "source": object{"type": "data", "value": png, "mimeType": "image/png"}},
		{"type": "document", "source": object{"type": "url", "value": "https://example.com/a.pdf"}}, {"type": "binary", "mimeType": "image/png", "url": "https://example.com/a.png"},
	}}}
	a.run()
	last := w.last()
	var content string
	for _, i := range last.Items {
		if i.Role == events.User {
			content = string(i.Content)
		}
	}
	for _, want := range []string{`"data:image/png;base64,` + png, `"file_url":"https://example.com/a.pdf"`, `"image_url":"https://example.com/a.png"`} {
		if !strings.Contains(content, want) {
			t.Errorf("%s is not in %s", want, content)
		}
	}
	b := w.agent("t")
	b.connect()
	if got := dump(b.messages[0]["content"]); !strings.Contains(got, `{"source":{"mimeType":"image/png","type":"data","value":"`+png) || !strings.Contains(got, `"type":"document"`) {
		t.Errorf("%s", got)
	}
	a.messages = append(a.messages, object{"id": "bad", "role": "user", "content": []object{{"type": "image", "source": object{"type": "file", "value": "x"}}}})
	if status, body := w.post("/agui/triage", a.input("bad")); status != 400 || !strings.Contains(body, "source") {
		t.Errorf("%d %s", status, body)
	}
}

// The state of the protocol is the content of the thread's context.
func TestState(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.more = object{"state": object{"eur": 1}}
	a.say("one")
	if got := string(w.last().Context); got != `{"eur":1}` {
		t.Errorf("the reactor has %s", got)
	}
	a.more = object{"state": object{"eur": 2}}
	list := a.say("two")
	if got := string(w.last().Context); got != `{"eur":2}` {
		t.Errorf("the reactor has %s", got)
	}
	if got := stateIn(list); got != `{"eur":2}` {
		t.Errorf("the client is told %s", got)
	}
	a.messages = append(a.messages, user("w", "wait"))
	next := a.events(a.request(t.Context(), "/agui/triage", a.input("waits")))
	<-w.waits
	thread, err := client.Read(t.Context(), w.now(), events.GetThread{ThreadID: "key:agui:t"})
	w.s.Must(err)
	_, err = w.c.Send(t.Context(), thread.ID, events.SetContext{Content: events.JSON(`{"eur":3}`)})
	w.s.Must(err)
	for e := next(); stateIn([]object{e}) != `{"eur":3}`; e = next() {
		if e == nil {
			t.Fatal("the client is not told the state")
		}
	}
	w.goOn <- struct{}{}
	b := w.agent("t")
	if got := stateIn(b.connect()); got != `{"eur":3}` {
		t.Errorf("reloaded, the state is %s", got)
	}
}

func stateIn(list []object) string {
	for _, e := range list {
		if e["type"] == "STATE_SNAPSHOT" {
			return dump(e["snapshot"])
		}
	}
	return ""
}

// A step that is begun again leaves what it has shown with the client, whose next message goes on in
// the same thread all the same; the model is not shown it again.
func TestRun_BeginsAgain(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.say("begin again")
	if said := strings.Join(a.shown(), "; "); !strings.HasPrefix(said, "user: begin again; assistant: first try") || !strings.HasSuffix(said, "second try") {
		t.Fatalf("%s", said)
	}
	a.say("more")
	if got := strings.Join(w.texts(), "; "); got != "user: begin again; assistant: second try; user: more" {
		t.Errorf("the model is shown %s", got)
	}
	list, err := client.Read(t.Context(), w.now(), events.ListThreads{})
	if err != nil || len(list.Threads) != 1 {
		t.Errorf("%d threads, %v", len(list.Threads), err)
	}
}

// A repeated runId is answered with the same run, and another request with it is refused.
func TestRun_Repeated(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.messages = []object{user("u", "hello")}
	body := a.input("r")
	_, first := w.post("/agui/triage", body)
	substate := regexp.MustCompile(`data: \{"type":"CUSTOM"[^\n]*\n\n`) // it is live only
	if _, second := w.post("/agui/triage", body); substate.ReplaceAllString(second, "") != substate.ReplaceAllString(first, "") {
		t.Errorf("%s\nwant\n%s", second, first)
	}
	a.runAs("r") // with the answer among the messages
	a.runAs("r")
	n := len(w.seen)
	if n != 1 {
		t.Errorf("the reactor was asked %d times", n)
	}
	a.messages = append(a.messages, user("u2", "other"))
	if status, body := w.post("/agui/triage", a.input("r")); status != http.StatusUnprocessableEntity {
		t.Errorf("another request: %d %s", status, body)
	}
	a.messages = a.messages[:2]
	if status, body := w.post("/agui/triage", a.input("nothing new")); status != http.StatusBadRequest {
		t.Errorf("nothing new: %d %s", status, body)
	}
}

// A client that goes away leaves the run, connect continues it, and stop ends it.
func TestConnect_Live(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.say("one")
	a.messages = append(a.messages, user("u2", "wait"))
	ctx, gone := context.WithCancel(t.Context())
	next := a.events(a.request(ctx, "/agui/triage", a.input("live")))
	<-w.waits
	for e := next(); e["type"] != "TEXT_MESSAGE_CONTENT"; e = next() {
	}
	gone()
	b := w.agent("t")
	next = b.events(b.request(t.Context(), "/agui/agent/triage/connect", b.input("c")))
	var list []object
	for e := next(); ; e = next() {
		if list = append(list, e); e["type"] == "TEXT_MESSAGE_CONTENT" {
			break
		}
	}
	if got := strings.Join(b.shown(), "; "); got != "user: one; assistant: answer to one; user: wait; assistant: half an " {
		t.Errorf("%s", got)
	}
	if got := list[3]; got["type"] != "RUN_STARTED" || got["runId"] != "live" {
		t.Errorf("%s", dump(list))
	}
	if _, body := w.post("/agui/agent/triage/stop/t", `{"runId":"t-r1"}`); body != `{"stopped":false}` {
		t.Errorf("the run before: %s", body)
	}
	if _, body := w.post("/agui/agent/triage/stop/t", `{"runId":"live"}`); body != `{"stopped":true}` {
		t.Errorf("%s", body)
	}
	for e := next(); e != nil; e = next() {
		list = append(list, e)
	}
	if err := verify(list); err != nil || w.outcome(list)["type"] != "cancelled" {
		t.Errorf("%v: %s", err, dump(list))
	}
	if _, body := w.post("/agui/agent/triage/stop/t", ""); body != `{"stopped":false}` {
		t.Errorf("nothing runs: %s", body)
	}
	b.want("user: one", "assistant: answer to one", "user: wait", "assistant: half an ")
	c := w.agent("nobody's")
	if c.connect(); len(c.messages) != 0 {
		t.Errorf("%q", c.shown())
	}
}

// A run that resumed another is stopped by its own runId.
func TestStop_Resumed(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	one := w.interrupts(a.say("refund, then wait"))
	a.more = object{"resume": []object{{"interruptId": one[0]["id"], "status": "cancelled"}}}
	next := a.events(a.request(t.Context(), "/agui/triage", a.input("t-r2")))
	<-w.waits
	if _, body := w.post("/agui/agent/triage/stop/t", `{"runId":"t-r3"}`); body != `{"stopped":false}` {
		t.Errorf("another run: %s", body)
	}
	if _, body := w.post("/agui/agent/triage/stop/t", `{"runId":"t-r2"}`); body != `{"stopped":true}` {
		t.Errorf("%s", body)
	}
	var list []object
	for e := next(); e != nil; e = next() {
		list = append(list, e)
	}
	if w.outcome(list)["type"] != "cancelled" {
		t.Errorf("%s", dump(list))
	}
}

func TestRun_Failed(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.messages = []object{user("u", "break")}
	next := a.events(a.request(t.Context(), "/agui/triage", a.input("first")))
	var list []object
	for e := next(); e != nil; e = next() {
		if list = append(list, e); e["type"] == "TEXT_MESSAGE_CONTENT" {
			w.goOn <- struct{}{}
		}
	}
	if e := w.lastOf(list, "RUN_ERROR"); e["message"] != "the model is gone" {
		t.Errorf("%s", dump(list))
	}
	if got := strings.Join(a.shown(), "; "); got != "user: break; assistant: half an " {
		t.Errorf("%s", got)
	}
	a.messages = a.messages[:1]
	close(w.goOn)
	w.lastOf(a.run(), "RUN_ERROR") // the user tries again
	if n := len(w.seen); n != 2 {
		t.Errorf("the reactor was asked %d times", n)
	}
	for path, want := range map[string]int{"/agui/nobody": 404, "/agui/agent/nobody/run": 404} {
		if status, body := w.post(path, a.input("n")); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for name, body := range map[string]string{"no JSON": "x", "no thread": `{"runId":"r","messages":[]}`, "no run": `{"threadId":"t","messages":[]}`, "odd": `{"threadId":7}`, "empty": `{"threadId":"e","runId":"r","messages":[]}`} {
		if status, answer := w.post("/agui/triage", body); status != 400 || !strings.Contains(answer, `"error"`) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
}

func TestInfo(t *testing.T) {
	w := start(t)
	answer, err := http.Get(w.url + "/agui/info")
	w.s.Must(err)
	defer func() { _ = answer.Body.Close() }()
	raw := make([]byte, 4096)
	n, _ := answer.Body.Read(raw)
	if got := string(raw[:n]); !strings.Contains(got, `"mode":"sse"`) || !strings.Contains(got, `"triage":{"name":"triage","description":"Answers.","className":"SkeinAgent"`) {
		t.Errorf("%s", got)
	}
}
