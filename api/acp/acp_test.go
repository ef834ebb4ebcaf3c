package acp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/internal/protocoltest"
)

// What the agent says it can do is what it does.
func TestACP_Initialize(t *testing.T) {
	e := start(t).edit(nil)
	got := e.ask("initialize", object{"protocolVersion": 7, "clientCapabilities": object{}})
	raw, _ := json.Marshal(got)
	for _, part := range []string{`"protocolVersion":1`, `"loadSession":true`, `"image":true`, `"embeddedContext":true`, `"audio":false`, `"list":{}`, `"resume":{}`, `"close":{}`, `"authMethods":[]`} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("%s is not in %s", part, raw)
		}
	}
}

// A turn shows texts, thoughts, plans and calls, and stops for a reason; a session that is loaded shows
// the same again, and one that is resumed nothing.
func TestACP_TurnAndHistory(t *testing.T) {
	w := start(t)
	e := w.ready(nil)
	session := e.session()
	e.stops(e.prompt(session, "hello"), "end_turn", "agent_message: answer to hello")
	e.stops(e.prompt(session, "think"), "end_turn", "agent_thought: hm", "plan: think", "agent_message: thought")
	e.stops(e.prompt(session, "lookup"), "end_turn", "agent_message: let me see", "tool_call: in_progress", "tool_call_update: completed found", "agent_message: done")

	other := w.ready(nil)
	listed := other.ask("session/list", object{"cwd": "/work"})["sessions"].([]any)
	if len(listed) != 1 || listed[0].(object)["sessionId"] != session || listed[0].(object)["cwd"] != "/work" {
		t.Errorf("listed %v", listed)
	}
	if none := other.ask("session/list", object{"cwd": "/elsewhere"})["sessions"].([]any); len(none) != 0 {
		t.Errorf("listed %v", none)
	}
	_, told := other.answer(other.send("session/load", object{"sessionId": session, "cwd": "/work", "mcpServers": []any{}}))
	want := []string{
		"user_message: hello", "agent_message: answer to hello", "user_message: think", "agent_thought: hm", "plan: think", "agent_message: thought",
		"user_message: lookup", "agent_message: let me see", "tool_call: completed found", "agent_message: done",
	}
	if !slices.Equal(told, want) {
		t.Errorf("loaded %q", told)
	}
	other.stops(other.prompt(session, "more"), "end_turn", "agent_message: answer to more")

	third := w.ready(nil)
	if _, told := third.answer(third.send("session/resume", object{"sessionId": session, "cwd": "/work"})); len(told) != 0 {
		t.Errorf("resumed with %q", told)
	}
	third.stops(third.prompt(session, "again"), "end_turn", "agent_message: answer to again")
}

// What a prompt has besides texts reaches the model, and comes back with the history.
func TestACP_Content(t *testing.T) {
	w := start(t)
	e := w.ready(nil)
	session := e.session()
	large := strings.Repeat("QUJD", 200_000)
	id := e.send("session/prompt", object{"sessionId": session, "prompt": []object{
		{"type": "text", "text": "look"}, {"type": "image", "data": "QUJD", "mimeType": "image/png"}, {"type": "image", "data": large, "mimeType": "image/png"},
		{"type": "resource_link", "uri": "file:///a.go", "name": "a.go"}, {"type": "resource", "resource": object{"uri": "file:///b.go", "text": "package b"}},
		{"type": "resource", "resource": object{"uri": "file:///c.pdf", "blob": "QUJD", "mimeType": "application/pdf"}},
	}})
	if m, _ := e.answer(id); m["error"] != nil {
		t.Fatal(m)
	}
	w.mu.Lock()
	items := w.seen[len(w.seen)-1].Items
	w.mu.Unlock()
	shown := ""
	for _, i := range items {
		shown += string(i.Content)
	}
	for _, part := range []string{`"look"`, "data:image/png;base64,QUJD", "[a.go](file:///a.go)", `package b`, "data:application/pdf;base64,QUJD", `"c.pdf"`} {
		if !strings.Contains(shown, part) {
			t.Errorf("the model was not shown %s", part)
		}
	}
	other := w.ready(nil)
	load := other.send("session/load", object{"sessionId": session, "cwd": "/work", "mcpServers": []any{}})
	var kinds []string
	for {
		m := other.read()
		if m["id"] == float64(load) {
			break
		}
		if c := m["params"].(object)["update"].(object); c["sessionUpdate"] == "user_message_chunk" {
			b := c["content"].(object)
			kinds = append(kinds, b["type"].(string))
			if data, _ := b["data"].(string); len(kinds) == 3 && data != large {
				t.Errorf("the large image came back with %d characters", len(data))
			}
		}
	}
	if got := strings.Join(kinds, " "); got != "text image image text text resource" {
		t.Errorf("loaded %s", got)
	}
}

// An approval is asked for, and the answer decides on the call.
func TestACP_Permission(t *testing.T) {
	w := start(t)
	e := w.ready(nil)
	session := e.session()
	for answer, told := range map[string][]string{
		"allow_once":  {"tool_call_update: in_progress", `tool_call_update: completed {"refunded":5}`, "agent_message: done"},
		"reject_once": {"tool_call_update: failed the call was denied", "agent_message: done"},
	} {
		id := e.prompt(session, "refund")
		asked, before := e.request("session/request_permission")
		if got := strings.Join(joined(before), "|"); got != "agent_message: let me see|tool_call: in_progress|tool_call_update: pending" {
			t.Errorf("before it came %q", got)
		}
		p := asked["params"].(object)
		call := p["toolCall"].(object)
		if p["sessionId"] != session || call["status"] != "pending" || fmt.Sprint(call["rawInput"]) != "map[eur:5]" || len(p["options"].([]any)) != 2 {
			t.Errorf("asked %v", p)
		}
		e.reply(asked, object{"outcome": object{"outcome": "selected", "optionId": answer}})
		e.stops(id, "end_turn", told...)
	}
}

// An approval that was given elsewhere is not asked for any longer.
func TestACP_PermissionAnsweredElsewhere(t *testing.T) {
	w := start(t)
	e := w.ready(nil)
	session := e.session()
	id := e.prompt(session, "refund")
	asked, _ := e.request("session/request_permission")
	call := asked["params"].(object)["toolCall"].(object)["toolCallId"].(string)
	_, err := w.c.Send(t.Context(), session, events.ResolveApproval{CallID: call, Grant: true})
	w.s.Must(err)
	gone, before := e.request("$/cancel_request")
	if gone["params"].(object)["requestId"] != asked["id"] {
		t.Errorf("%v", gone)
	}
	m, after := e.answer(id)
	if got := strings.Join(append(before, after...), "|"); m["error"] != nil || got != `tool_call_update: in_progress|tool_call_update: completed {"refunded":5}|agent_message: done` {
		t.Errorf("%v after %q", m, got)
	}
}

// A question is a form where the client has forms, and a text that the next prompt answers otherwise.
func TestACP_Question(t *testing.T) {
	w := start(t)
	forms := object{"elicitation": object{"form": object{}}}
	t.Run("form", func(t *testing.T) {
		e := w.ready(forms)
		session := e.session()
		id := e.prompt(session, "ask")
		asked, _ := e.request("elicitation/create")
		p := asked["params"].(object)
		if p["mode"] != "form" || p["message"] != "How much?" || p["sessionId"] != session || p["requestedSchema"].(object)["type"] != "object" {
			t.Errorf("asked %v", p)
		}
		e.reply(asked, object{"action": "accept", "content": object{"answer": "7"}})
		e.stops(id, "end_turn", "tool_call_update: completed 7", "agent_message: done")
	})
	t.Run("form put away", func(t *testing.T) {
		e := w.ready(forms)
		session := e.session()
		id := e.prompt(session, "ask")
		asked, _ := e.request("elicitation/create")
		e.reply(asked, object{"action": "cancel"})
		e.stops(id, "end_turn", "agent_message: How much?")
		e.stops(e.prompt(session, "8"), "end_turn", "tool_call_update: completed 8", "agent_message: done")
	})
	t.Run("text", func(t *testing.T) {
		e := w.ready(nil)
		session := e.session()
		id := e.prompt(session, "both")
		asked, before := e.request("session/request_permission")
		e.reply(asked, object{"outcome": object{"outcome": "selected", "optionId": "allow_once"}})
		m, after := e.answer(id)
		told := append(before, after...)
		if m["result"].(object)["stopReason"] != "end_turn" || !slices.Contains(told, "agent_message: How much?") {
			t.Errorf("%v after %q", m, told)
		}
		e.stops(e.prompt(session, "9"), "end_turn", "tool_call_update: completed 9", "agent_message: done")
	})
	t.Run("two texts", func(t *testing.T) {
		e := w.ready(nil)
		session := e.session()
		m, told := e.answer(e.prompt(session, "two"))
		if m["error"] != nil || told[len(told)-1] != "agent_message: First?" {
			t.Fatalf("%v after %q", m, told)
		}
		e.stops(e.prompt(session, "1"), "end_turn", "agent_message: Second?")
		e.stops(e.prompt(session, "2"), "end_turn", "tool_call_update: completed 1", "tool_call_update: completed 2", "agent_message: done")
	})
}

// A prompt is cancelled in the middle of a text and while the client is asked; its run is stopped.
func TestACP_Cancel(t *testing.T) {
	w := start(t)
	e := w.ready(nil)
	session := e.session()
	cancelled := func(id int) {
		t.Helper()
		for {
			m := e.read()
			if m["id"] == float64(id) && m["method"] == nil {
				if result, _ := m["result"].(object); result["stopReason"] != "cancelled" {
					t.Errorf("%v", m)
				}
				break
			}
		}
		thread, err := client.Read(t.Context(), w.c, events.GetThread{ThreadID: session, Fresh: events.Fresh{MinSeq: w.end()}})
		w.s.Must(err)
		if thread.Run != nil {
			t.Error("the run goes on")
		}
	}
	id := e.prompt(session, "wait")
	e.until(func(m object) bool { return m["method"] == "session/update" })
	e.tell("session/cancel", object{"sessionId": session})
	cancelled(id)

	id = e.prompt(session, "refund")
	asked, _ := e.request("session/request_permission")
	e.tell("session/cancel", object{"sessionId": session})
	e.reply(asked, object{"outcome": object{"outcome": "cancelled"}})
	cancelled(id)

	id = e.prompt(session, "wait")
	e.tell("session/cancel", object{"sessionId": session}) // at once
	cancelled(id)

	id = e.prompt(session, "wait")
	e.tell("$/cancel_request", object{"requestId": id})
	cancelled(id)

	id = e.prompt(session, "wait")
	closed := e.send("session/close", object{"sessionId": session})
	cancelled(id)
	if m, _ := e.answer(closed); m["error"] != nil {
		t.Errorf("%v", m)
	}
	if m, _ := e.answer(e.prompt(session, "hello")); m["error"] == nil {
		t.Errorf("a closed session answers %v", m)
	}
}

// end returns the end of the tenant's history.
func (w *world) end() *int64 {
	end, err := w.c.HistoryEnd(w.Context())
	w.s.Must(err)
	return &end
}

// A run that fails is an error with its message, and the session goes on.
func TestACP_Failure(t *testing.T) {
	w := start(t)
	e := w.ready(nil)
	session := e.session()
	id := e.prompt(session, "fail")
	e.until(func(m object) bool { return m["method"] == "session/update" })
	second := e.prompt(session, "hello")
	if m, _ := e.answer(second); m["error"] == nil || m["error"].(object)["code"] != float64(-32600) {
		t.Errorf("a second prompt: %v", m)
	}
	w.goOn <- struct{}{}
	m, _ := e.answer(id)
	if wrong, _ := m["error"].(object); wrong == nil || !strings.Contains(fmt.Sprint(wrong["message"]), "the model is gone") {
		t.Errorf("%v", m)
	}
	e.stops(e.prompt(session, "hello"), "end_turn", "agent_message: answer to hello")
}

// A client that hangs up leaves its run, which the next one is shown: after the history, from its
// beginning, with what people are asked.
func TestACP_HangUp(t *testing.T) {
	w := start(t)
	e := w.ready(nil)
	session := e.session()
	e.stops(e.prompt(session, "hello"), "end_turn", "agent_message: answer to hello")
	e.prompt(session, "wait")
	e.until(func(m object) bool { return m["method"] == "session/update" })
	w.s.Must(e.in.Close())
	if err := natstest.Within(t, "the end", e.ended); err != nil {
		t.Error(err)
	}

	next := w.ready(nil)
	_, told := next.answer(next.send("session/load", object{"sessionId": session, "cwd": "/work", "mcpServers": []any{}}))
	if got := strings.Join(told, "|"); got != "user_message: hello|agent_message: answer to hello|user_message: wait" {
		t.Errorf("loaded %q", got)
	}
	w.goOn <- struct{}{}
	next.stops(next.prompt(session, "more"), "end_turn", "agent_message: half an answeranswer to more")

	next.prompt(session, "refund")
	next.request("session/request_permission")
	w.s.Must(next.in.Close())
	third := w.ready(nil)
	third.ask("session/resume", object{"sessionId": session, "cwd": "/work"})
	asked, _ := third.request("session/request_permission")
	third.reply(asked, object{"outcome": object{"outcome": "selected", "optionId": "allow_once"}})
	m, told := third.answer(third.prompt(session, "hello"))
	if m["error"] != nil || !slices.Contains(told, `tool_call_update: completed {"refunded":5}`) || joined(told)[len(joined(told))-1] != "agent_message: doneanswer to hello" {
		t.Errorf("%v after %q", m, told)
	}
}

// The connection to NATS breaks in the middle of a prompt: no text is lost, and none is repeated.
func TestACP_Reconnect(t *testing.T) {
	w := start(t)
	proxy := natstest.NewProxy(t, w.s.Addresses().NATS)
	c, err := client.New(proxy.Connect(t), client.Options{Tenant: "acme"})
	w.s.Must(err)
	e := w.edit(c)
	e.ask("initialize", object{"protocolVersion": 1})
	session := e.session()
	id := e.prompt(session, "wait")
	_, first := e.until(func(m object) bool { return m["method"] == "session/update" })
	if len(first) != 0 {
		t.Errorf("first came %q", first)
	}
	proxy.Cut()
	w.goOn <- struct{}{}
	e.stops(id, "end_turn", "agent_message: answer")
}

// Whatever a client writes, it is answered with an error, and the server goes on.
func TestACP_BadInput(t *testing.T) {
	w := start(t)
	other, err := w.s.Client("other").Send(t.Context(), "", events.CreateThread{AgentID: "triage"})
	w.s.Must(err)
	e := w.edit(w.c)
	if m, _ := e.answer(e.send("session/new", object{"cwd": "/work"})); m["error"] == nil {
		t.Errorf("before initialize: %v", m)
	}
	e.ask("initialize", object{"protocolVersion": 1})
	session := e.session()
	hello := []object{{"type": "text", "text": "hello"}}
	for _, c := range []struct {
		name, line, method string
		params             any
		code               float64
	}{
		{name: "broken JSON", line: `{"jsonrpc":"2.0","id":1,`, code: -32700},
		{name: "no object", line: `7`, code: -32600},
		{name: "batch", line: `[{"jsonrpc":"2.0","id":1,"method":"session/list"}]`, code: -32600},
		{name: "no version", line: `{"id":"x","method":"session/list"}`, code: -32600},
		{name: "odd id", line: `{"jsonrpc":"2.0","id":{},"method":"session/list"}`, code: -32600},
		{name: "too long", line: `{"x":"` + strings.Repeat("x", 17<<20) + `"}`, code: -32600},
		{name: "unknown method", method: "session/fly", code: -32601},
		{name: "not supported", method: "session/set_mode", params: object{"sessionId": session, "modeId": "x"}, code: -32601},
		{name: "authenticate", method: "authenticate", params: object{"methodId": "x"}, code: -32602},
		{name: "params of another form", method: "session/new", params: []int{1}, code: -32602},
		{name: "relative cwd", method: "session/new", params: object{"cwd": "work"}, code: -32602},
		{name: "directories", method: "session/new", params: object{"cwd": "/work", "additionalDirectories": []string{"/x"}}, code: -32602},
		{name: "bad cursor", method: "session/list", params: object{"cursor": "???"}, code: -32602},
		{name: "unknown session", method: "session/prompt", params: object{"sessionId": "nope", "prompt": hello}, code: -32002},
		{name: "unknown thread", method: "session/load", params: object{"sessionId": "T-0190c0de-0000-7000-a000-000000000001", "cwd": "/work"}, code: -32002},
		{name: "no thread", method: "session/load", params: object{"sessionId": "key:x", "cwd": "/work"}, code: -32002},
		{name: "another tenant's", method: "session/load", params: object{"sessionId": other.ThreadID, "cwd": "/work"}, code: -32002},
		{name: "another tenant's, resumed", method: "session/resume", params: object{"sessionId": other.ThreadID, "cwd": "/work"}, code: -32002},
		{name: "another tenant's, prompted", method: "session/prompt", params: object{"sessionId": other.ThreadID, "prompt": hello}, code: -32002},
		{name: "closed", method: "session/close", params: object{"sessionId": "nope"}, code: -32002},
		{name: "no prompt", method: "session/prompt", params: object{"sessionId": session}, code: -32602},
		{name: "audio", method: "session/prompt", params: object{"sessionId": session, "prompt": []object{{"type": "audio", "data": "QQ==", "mimeType": "audio/wav"}}}, code: -32602},
		{name: "empty block", method: "session/prompt", params: object{"sessionId": session, "prompt": []object{{}}}, code: -32602},
		{name: "image without data", method: "session/prompt", params: object{"sessionId": session, "prompt": []object{{"type": "image"}}}, code: -32602},
		{name: "prompt of another form", method: "session/prompt", params: object{"sessionId": session, "prompt": "hello"}, code: -32602},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m object
			if c.line != "" {
				e.write(c.line)
				m = e.read()
			} else {
				m, _ = e.answer(e.send(c.method, c.params))
			}
			wrong, _ := m["error"].(object)
			if wrong == nil || wrong["code"] != c.code || wrong["message"] == "" {
				t.Errorf("%v, want code %v", m, c.code)
			}
		})
	}
	e.tell("session/cancel", object{"sessionId": "nope"})
	e.tell("session/cancel", 7)
	e.tell("$/unknown", nil)
	e.write(`{"jsonrpc":"2.0","id":99,"result":{}}`) // to no request
	e.write("")
	e.stops(e.prompt(session, "hello"), "end_turn", "agent_message: answer to hello")

	made := e.ask("session/new", object{"cwd": "/work", "mcpServers": []object{{"name": "fs", "command": "/bin/fs", "args": []string{}, "env": []string{}}}})
	if raw, _ := json.Marshal(made); !strings.Contains(string(raw), `"field":"mcpServers"`) {
		t.Errorf("a server that is not connected to is not named in %s", raw)
	}
}

// A refusal speaks of what the editor has sent.
func TestACP_RefusalsSpeakOfTheRequest(t *testing.T) {
	w := start(t)
	e := w.ready(object{})
	session, internal := e.session(), protocoltest.InternalWords(`\bmax_output_tokens`)
	for _, c := range []struct{ method, params string }{
		{"none", `{}`}, {"session/new", `7`}, {"session/new", `{"cwd":7}`}, {"session/new", `{"cwd":"relative","mcpServers":[]}`},
		{"session/load", `{"sessionId":7}`}, {"session/load", `{"sessionId":"nothing","cwd":"/","mcpServers":[]}`}, {"session/load", `{"sessionId":"a\u0000b","cwd":"/","mcpServers":[]}`},
		{"session/prompt", `7`}, {"session/prompt", `{}`}, {"session/prompt", `{"sessionId":"nothing","prompt":[{"type":"text","text":"x"}]}`},
		{"session/prompt", `{"sessionId":"` + session + `"}`}, {"session/prompt", `{"sessionId":"` + session + `","prompt":[7]}`}, {"session/prompt", `{"sessionId":"` + session + `","prompt":[{"type":"none"}]}`},
		{"session/prompt", `{"sessionId":"` + session + `","prompt":[{"type":"text","text":7}]}`}, {"session/prompt", `{"sessionId":"` + session + `","prompt":[{"type":"image","data":"???","mimeType":"x"}]}`},
		{"session/prompt", `{"sessionId":"` + session + `","prompt":[{"type":"text","text":"` + strings.Repeat("x", 2<<20) + `"}]}`},
		{"session/set_mode", `{"sessionId":"` + session + `","modeId":"x"}`}, {"session/resume", `{"sessionId":7}`}, {"session/list", `{"cursor":7}`}, {"session/list", `{"cursor":"x"}`},
	} {
		answer, _ := e.answer(e.send(c.method, json.RawMessage(c.params)))
		out, _ := json.Marshal(answer["error"])
		if bad := internal.FindString(string(out)); bad != "" {
			t.Errorf("%s %.100s: %q in %.400s", c.method, c.params, bad, out)
		}
		if answer["error"] == nil {
			t.Errorf("%s %.100s: it is not refused", c.method, c.params)
		}
	}
}
