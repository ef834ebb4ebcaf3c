package agui_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// An answer to an interrupt that was answered before is a repeat if it says the same, however much of the
// history comes with it, and is refused by name if it says anything else.
func TestResume_AnsweredBefore(t *testing.T) {
	w := start(t)
	for name, c := range map[string]struct {
		say           string
		first, repeat any
		others        map[string]any
	}{
		"granted": {
			"refund", object{"approved": true, "reason": "ok"}, object{"reason": "ok", "approved": true},
			map[string]any{
				"another decision": object{"approved": false}, "other arguments": object{"approved": true, "arguments": object{"eur": 9}}, "another reason": object{"approved": true, "reason": "no"},
			},
		},
		"granted with arguments": {
			"refund", object{"approved": true, "arguments": object{"eur": 4}}, object{"approved": true, "arguments": object{"eur": 4.0}},
			map[string]any{"other arguments": object{"approved": true, "arguments": object{"eur": 40}}},
		},
		"denied": {"refund", object{"approved": false, "reason": "too much"}, object{"approved": false}, map[string]any{"another decision": object{"approved": true}, "another reason": object{"approved": false, "reason": "x"}}},
		"told":   {"ask", object{"eur": 5, "of": "a"}, object{"of": "a", "eur": 5}, map[string]any{"another result": object{"eur": 6, "of": "a"}}},
	} {
		a := w.agent("t " + name)
		i := w.interrupts(a.say(c.say))[0]
		history := a.messages
		a.resume(resolved(i, c.first))
		for what, payload := range c.others {
			a.messages, a.more = history, object{"resume": []object{resolved(i, payload)}}
			status, body := w.post("/agui/triage", a.input("other "+what))
			if status != http.StatusBadRequest || !strings.Contains(body, what) || !strings.Contains(body, i["id"].(string)) {
				t.Errorf("%s, then %s: %d %s", name, what, status, body)
			}
		}
		for what, messages := range map[string][]object{"all": history, "only the user's": history[:1]} {
			a.messages, a.more = messages, object{"resume": []object{resolved(i, c.repeat)}}
			if list := a.runAs("again with " + what); !strings.Contains(strings.Join(a.shown(), "; "), "done with "+c.say) {
				t.Errorf("%s, and repeated with %s of the messages: %s", name, what, dump(list))
			}
		}
	}
}

// A runId names one request: with another state, other tools, or another result of a tool it is refused,
// whether the run works, waits in the queue, or has ended.
func TestRun_RunIDReused(t *testing.T) {
	w := start(t)
	tools := []object{{"name": "weather", "description": "Tells the weather.", "parameters": object{"type": "object"}}}
	weather := w.agent("weather")
	weather.tools = tools
	call := w.outcome(weather.say("weather"))["pendingToolCallIds"].([]any)[0]
	result := func(text string) []object {
		return append(append([]object{}, weather.messages...), object{"id": "res", "role": "tool", "toolCallId": call, "content": text})
	}
	busy := w.agent("busy")
	busy.messages = []object{user("u", "wait")}
	busy.events(busy.request(t.Context(), "/agui/triage", busy.input("works")))
	<-w.waits
	for name, c := range map[string]struct {
		thread string
		first  object
		others map[string]object
	}{
		"ended": {"ended", object{"messages": []object{user("u", "hello")}, "state": object{"a": 1}, "tools": tools}, map[string]object{
			"state": {"state": object{"a": 2}}, "no tools": {"tools": []object{}}, "context": {"context": []object{{"description": "d", "value": "v"}}},
			"props": {"forwardedProps": object{"x": 1}}, "instructions": {"messages": []object{{"id": "s", "role": "system", "content": "Be brief."}, user("u", "hello")}},
			"resume": {"resume": []object{{"interruptId": "c", "status": "cancelled"}}},
		}},
		"a result": {"weather", object{"messages": result("rain"), "tools": tools}, map[string]object{"result": {"messages": result("sun")}}},
		"queued":   {"busy", object{"messages": []object{user("u", "wait"), user("u2", "next")}, "state": object{"a": 1}}, map[string]object{"state": {"state": object{"a": 2}}, "text": {"messages": []object{user("u", "wait"), user("u2", "other")}}}},
	} {
		a := w.agent(c.thread)
		body := func(more object) string {
			a.more = object{}
			for _, o := range []object{c.first, more} {
				for k, v := range o {
					a.more[k] = v
				}
			}
			return a.input("reused " + name)
		}
		if name == "queued" {
			a.request(t.Context(), "/agui/triage", body(nil))
		} else {
			a.read(a.request(t.Context(), "/agui/triage", body(nil)))
		}
		for what, more := range c.others {
			if status, answer := w.post("/agui/triage", body(more)); status != http.StatusUnprocessableEntity || !strings.Contains(answer, "runId") {
				t.Errorf("%s, with another %s: %d %s", name, what, status, answer)
			}
		}
		again := a.request(t.Context(), "/agui/triage", body(nil))
		if again.StatusCode != http.StatusOK {
			t.Errorf("%s, repeated: %d", name, again.StatusCode)
		}
	}
	w.goOn <- struct{}{}
}

// A client that repeats a run has the state that it was told meanwhile.
func TestRun_RepeatedWithNewState(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.more = object{"state": object{"a": 1}}
	a.say("hello")
	_, err := w.c.Send(t.Context(), "key:agui:t", events.SetContext{Content: events.JSON(`{"a":2}`)})
	w.s.Must(err)
	a.more = object{"state": object{"a": 2}}
	a.runAs("t-r1")
	if n := len(w.seen); n != 1 {
		t.Errorf("the reactor was asked %d times", n)
	}
}

// A request that resumes a run sets the state, and a repeat of it does not.
func TestResume_State(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	i := w.interrupts(a.say("refund"))[0]
	history := a.messages
	a.more = object{"resume": []object{resolved(i, object{"approved": true})}, "state": object{"a": 1}}
	a.runAs("resumes")
	if got := string(w.last().Context); got != `{"a":1}` {
		t.Errorf("the reactor has %s", got)
	}
	_, err := w.c.Send(t.Context(), "key:agui:t", events.SetContext{Content: events.JSON(`{"a":2}`)})
	w.s.Must(err)
	for state, want := range map[int]int{1: 200, 2: 200, 3: 422} {
		a.messages, a.more = history, object{"resume": []object{resolved(i, object{"approved": true})}, "state": object{"a": state}}
		if status, body := w.post("/agui/triage", a.input("resumes")); status != want {
			t.Errorf("repeated with state %d: %d %s", state, status, body)
		}
	}
	now, err := client.Read(t.Context(), w.now(), events.GetContext{ThreadID: "key:agui:t"})
	if err != nil || string(now.Content) != `{"a":2}` {
		t.Errorf("the state is %s, %v", now.Content, err)
	}
}

// A request that resumes a run has nothing else that would be lost.
func TestResume_NothingElse(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.tools = []object{{"name": "weather", "description": "Tells the weather.", "parameters": object{"type": "object"}}}
	i := w.interrupts(a.say("refund and weather"))[0]
	var call any
	for _, m := range a.messages {
		list, _ := m["toolCalls"].([]any)
		for _, c := range list {
			if c.(object)["function"].(object)["name"] == "weather" {
				call = c.(object)["id"]
			}
		}
	}
	for name, more := range map[string][]object{
		"a result":                    append(append([]object{}, a.messages...), object{"id": "res", "role": "tool", "toolCallId": call, "content": "rain"}),
		"a message":                   append(append([]object{}, a.messages...), user("more", "more")),
		"nothing but a new message":   {user("more", "more")},
		"nothing but a result":        {{"id": "res", "role": "tool", "toolCallId": call, "content": "rain"}},
		"a message that was answered": {user("more", "more"), {"id": "as", "role": "assistant", "content": "yes"}},
	} {
		a.more = object{"resume": []object{resolved(i, object{"approved": true})}, "messages": more}
		if status, body := w.post("/agui/triage", a.input(name)); status != http.StatusBadRequest || !strings.Contains(body, "resumes a run") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	a.resume(resolved(i, object{"approved": true}))
	a.messages = append(a.messages, object{"id": "res", "role": "tool", "toolCallId": call, "content": "rain"})
	a.run()
	if got := a.shown(); got[len(got)-1] != "assistant: done with refund and weather" {
		t.Errorf("%q", got)
	}
}

// A null is no answer to a question, no text of a user, and no result of a tool.
func TestRun_Null(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	i := w.interrupts(a.say("ask"))[0]
	a.more = object{"resume": []object{{"interruptId": i["id"], "status": "resolved", "payload": nil}}}
	if status, body := w.post("/agui/triage", a.input("null")); status != http.StatusBadRequest || !strings.Contains(body, `"param":"resume/0/payload"`) {
		t.Errorf("%d %s", status, body)
	}
}

// A client that sends only what is new adds it, also if its text is that of the first message; one that
// sends its history is known by its ids, or by its texts.
func TestHistory_OnlyWhatIsNew(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.say("hi")
	a.say("more")
	for name, list := range map[string][]object{
		"the first text": {user("n1", "hi")},
		"the first two":  {user("n2", "hi"), user("n3", "more")},
		"another text":   {user("n4", "bye")},
		"without an id":  {{"role": "user", "content": "hi"}},
	} {
		b := w.agent("t")
		b.name, b.messages = " "+name, list
		before, err := client.Read(t.Context(), w.now(), events.GetThread{ThreadID: "key:agui:t"})
		w.s.Must(err)
		b.run()
		after, err := client.Read(t.Context(), w.now(), events.GetThread{ThreadID: "key:agui:t"})
		w.s.Must(err)
		if after.Version == before.Version {
			t.Errorf("%s: it is not in the thread", name)
		}
	}
	threads := func() int {
		list, err := client.Read(t.Context(), w.now(), events.ListThreads{})
		w.s.Must(err)
		return len(list.Threads)
	}
	if n := threads(); n != 1 {
		t.Errorf("%d threads, want 1", n)
	}
	c := w.agent("t")
	c.name = " with ids that it made again"
	c.messages = []object{user("x1", "hi"), {"id": "x2", "role": "assistant", "content": "answer to hi"}, user("x3", "other")}
	c.run()
	if got := strings.Join(w.texts(), ", "); got != "user: hi, assistant: answer to hi, user: other" || threads() != 2 {
		t.Errorf("the reactor was shown %s, of %d threads", got, threads())
	}
}

// A client may send the result of its tool alone.
func TestHistory_OnlyAResult(t *testing.T) {
	w := start(t)
	a := w.agent("t")
	a.tools = []object{{"name": "weather", "description": "Tells the weather.", "parameters": object{"type": "object"}}}
	call := w.outcome(a.say("weather"))["pendingToolCallIds"].([]any)[0]
	b := w.agent("t")
	b.name, b.tools = "b", a.tools
	b.messages = []object{{"id": "res", "role": "tool", "toolCallId": call, "content": "rain"}}
	b.run()
	if got := b.shown(); got[len(got)-1] != "assistant: done with weather" {
		t.Errorf("%q", got)
	}
	b.messages = []object{{"id": "res2", "role": "tool", "toolCallId": call, "content": "sun"}}
	if status, body := w.post("/agui/triage", b.input("again")); status != http.StatusBadRequest || !strings.Contains(body, "waits for a result") {
		t.Errorf("a second result: %d %s", status, body)
	}
}

// A message of a user says something.
func TestRun_EmptyMessage(t *testing.T) {
	w := start(t)
	for name, content := range map[string]any{"a text": "", "blanks": " \n", "no parts": []object{}, "empty parts": []object{{"type": "text", "text": ""}}, "null": nil} {
		a := w.agent("t")
		a.messages = []object{{"id": "u", "role": "user", "content": content}}
		if status, body := w.post("/agui/triage", a.input(name)); status != http.StatusBadRequest || !strings.Contains(body, `"param":"messages/0/content"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}
