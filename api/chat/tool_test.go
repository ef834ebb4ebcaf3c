package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/chat"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// caller asks for two calls in its first step: one that needs an approval, and a question.
func caller(_ context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
	if in.Iteration > 0 {
		return skein.Answer("done"), nil
	}
	r := skein.Answer("let me see")
	for _, c := range []skein.ToolCall{
		{CallID: "c1", Name: "refund", Arguments: []byte(`{"eur":5}`)}, {CallID: "c2", Name: "how_much", Arguments: []byte(`{"question":"How much?"}`)},
	} {
		out.Chunk(skein.Chunk{Type: "tool-input-start", Data: []byte(`{"toolCallId":"` + c.CallID + `","toolName":"` + c.Name + `"}`)})
		out.Chunk(skein.Chunk{Type: "tool-input-delta", Data: []byte(`{"toolCallId":"` + c.CallID + `","inputTextDelta":"{"}`)})
		r.ToolCalls = append(r.ToolCalls, c)
		r.AssistantEvent.Content = append(r.AssistantEvent.Content,
			[]byte(`{"type":"tool-`+c.Name+`","toolCallId":"`+c.CallID+`","input":`+string(c.Arguments)+`}`))
	}
	return r, nil
}

// careful returns the body that sends one message to the agent with tools.
func careful(id string, message string) string {
	return strings.Replace(submit(id, message), `"agent":"assistant"`, `"agent":"careful"`, 1)
}

// answers returns a message of the assistant with parts, and the body that sends it.
func answers(chat, message string, parts ...string) string {
	return submit(chat, text("u1", "hi"), `{"id":"`+message+`","role":"assistant","parts":[`+strings.Join(parts, ",")+`]}`)
}

// A run that waits for people ends its stream. Their answers go on with the same message, from
// where the client has it; a reload shows what waits.
func TestTools_ApprovalsAndQuestions(t *testing.T) {
	for name, c := range map[string]struct {
		approval string // the first answer
		outcome  string // of the call
	}{
		"granted": {`{"type":"tool-refund","toolCallId":"c1","state":"approval-responded","input":{"eur":5},"approval":{"id":"c1","approved":true}}`, `tool-refund={"refunded":5}(output-available)`},
		"denied":  {`{"type":"tool-refund","toolCallId":"c1","state":"approval-responded","input":{"eur":5},"approval":{"id":"c1","approved":false,"reason":"too much"}}`, `tool-refund(output-denied)`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, caller)
			one := w.post(careful("c1", text("u1", "hi")))
			m := one.rest()
			got := strings.Split(m.String(), " | ") // a call is shown as soon as it is begun, if that is seen in time
			slices.Sort(got)
			if got := strings.Join(got, " | "); got != "step | text=let me see | tool-how_much(input-available) | tool-refund(approval-request)" || m.end != "tool-calls" {
				t.Fatalf("waiting: %s, %s", got, m.end)
			}
			for _, c := range one.all {
				if c.Type == "tool-input-available" && (c.ProviderExecuted == nil || *c.ProviderExecuted != (c.ToolCallID == "c1")) {
					t.Errorf("who makes it: %+v", c)
				}
			}
			if n := strings.Count(kinds(one.all), "tool-input-available"); n != 2 {
				t.Errorf("the input of 2 calls is shown %d times", n)
			}
			if status, _ := w.do(http.MethodGet, "/chat/c1/stream", ""); status != http.StatusNoContent {
				t.Errorf("a run that waits for people is resumed: %d", status)
			}
			if list := w.messages("c1"); len(list) != 2 || partState(list[1], "c1") != "approval-requested" || partState(list[1], "c2") != "input-available" {
				t.Errorf("listed: %+v", list)
			}
			var data []string // what the stream has put into the message
			for _, p := range w.messages("c1")[1].Parts {
				if p.Data != nil {
					data = append(data, p.Type+" "+p.ID+" "+string(p.Data))
				}
			}
			for _, c := range one.all {
				if c.Data != nil && !c.Transient && !slices.Contains(data, c.Type+" "+c.ID+" "+string(c.Data)) {
					t.Errorf("a reload lacks %s %s %s, and has %q", c.Type, c.ID, c.Data, data)
				}
			}
			two := w.post(answers("c1", m.id, `{"type":"step-start"}`, c.approval))
			followed := two.restChunks()
			if strings.Contains(kinds(followed), "tool-input-available") {
				t.Errorf("after an answer an input is shown again: %s", kinds(followed))
			}
			fold(t, m, followed)
			if m.end != "tool-calls" || !strings.Contains(m.String(), c.outcome) {
				t.Fatalf("after the first answer: %s, %s", m, m.end)
			}
			again := w.post(answers("c1", m.id, c.approval)) // another tab answers the same
			three := w.post(answers("c1", m.id, c.approval, `{"type":"tool-how_much","toolCallId":"c2","state":"output-available","input":{},"output":"all"}`))
			fold(t, m, three.restChunks())
			if got := m.String(); m.end != "stop" || !strings.HasSuffix(got, "| step | text=done") || !strings.Contains(got, `tool-how_much="all"(output-available)`) {
				t.Errorf("after the second answer: %s, %s", got, m.end)
			}
			again.restChunks()
			list := w.messages("c1")
			if said(list) != "user: hi | assistant: let me seedone" || partState(list[1], "c2") != "output-available" {
				t.Errorf("messages: %s, %+v", said(list), list[1])
			}
			if state := partState(list[1], "c1"); name == "denied" && state != "output-denied" || name == "granted" && state != "output-available" {
				t.Errorf("listed as %s", state)
			}
			for _, p := range list[1].Parts {
				if p.ToolCallID == "c1" && (p.Approval == nil || name == "denied" && p.Approval.Reason != "too much" || name == "granted" && p.Approval.Reason != "") {
					t.Errorf("listed with the approval %+v", p.Approval)
				}
			}
		})
	}
}

// While a run works on after an answered approval, a reload shows its whole message: the stream of
// the reload goes on to the end, and shows what any other stream shows.
func TestTools_ReloadAfterAnAnsweredApproval(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(ctx context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		if in.Iteration == 0 {
			return caller(ctx, in, out)
		}
		out.Chunk(skein.Chunk{Type: "text-delta", Data: []byte(`{"id":"a","delta":"do"}`)})
		begun <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return skein.Answer("done"), nil
	})
	m := w.post(careful("c1", text("u1", "hi"))).rest()
	answered := w.post(answers("c1", m.id, `{"type":"tool-refund","toolCallId":"c1","state":"approval-responded","input":{"eur":5},"approval":{"id":"c1","approved":true}}`,
		`{"type":"tool-how_much","toolCallId":"c2","state":"output-available","input":{},"output":"all"}`))
	<-begun
	if got := said(w.messages("c1")); got != "user: hi" {
		t.Errorf("listed: %s; the message that is written is the stream's", got)
	}
	reload := w.stream(http.MethodGet, "/chat/c1/stream", "")
	for c := reload.until("text-delta"); c.Delta != "do"; c = reload.until("text-delta") {
	}
	close(release)
	got := reload.rest()
	want := `tool-refund={"refunded":5}(output-available)`
	if got.id != m.id || got.end != "stop" || !strings.Contains(got.String(), want) || !strings.HasSuffix(got.String(), "| step | text=done") {
		t.Errorf("the reload shows %s, %s", got, got.end)
	}
	fold(t, m, answered.restChunks())
	if one, two := strings.Split(m.String(), " | "), strings.Split(got.String(), " | "); !slices.Equal(slices.Sorted(slices.Values(one)), slices.Sorted(slices.Values(two))) {
		t.Errorf("the first page shows %s; the reload %s", m, got)
	}
}

// A message that is sent while the answer waits for the user is there after a reload, before that
// answer: the calls of the last message are those that a client can answer. When they are answered,
// the thread has the message where it was answered.
func TestTools_MessageWhileAnApprovalWaits(t *testing.T) {
	w := newWorld(t, caller)
	m := w.post(careful("c1", text("u1", "hi"))).rest()
	for _, id := range []string{"u2", "u 3"} { // the second id is no item's
		waits := w.post(careful("c1", text(id, "and "+id)))
		if _, ok := waits.next(); !ok {
			t.Fatal("the message does not wait")
		}
	}
	list := w.messages("c1")
	if got := said(list); got != "user: hi | user: and u2 | user: and u 3 | assistant: let me see" {
		t.Fatalf("while it waits: %s", got)
	}
	if list[1].ID != "u2" || list[2].ID != "u 3" || list[3].ID != m.id || partState(list[3], "c1") != "approval-requested" {
		t.Errorf("listed: %+v", list)
	}
	w.post(answers("c1", m.id, `{"type":"tool-refund","toolCallId":"c1","state":"approval-responded","input":{"eur":5},"approval":{"id":"c1","approved":true}}`,
		`{"type":"tool-how_much","toolCallId":"c2","state":"output-available","input":{},"output":"all"}`)).restChunks()
	got := said(w.messages("c1"))
	if !strings.HasPrefix(got, "user: hi | assistant: let me seedone | user: and u2 | user: and u 3") || strings.Count(got, "and u") != 2 {
		t.Errorf("after the answers: %s", got)
	}
}

// restChunks reads the rest of a stream, and returns its chunks.
func (r *reader) restChunks() []chat.Chunk {
	for {
		if _, ok := r.next(); !ok {
			return r.all
		}
	}
}

// partState returns the state of a call in a message.
func partState(m chat.Message, call string) string {
	for _, p := range m.Parts {
		if p.ToolCallID == call {
			return p.State
		}
	}
	return ""
}

// What a client makes up is refused, and changes nothing.
func TestTools_ForgedAnswers(t *testing.T) {
	w := newWorld(t, caller)
	m := w.post(careful("c1", text("u1", "hi"))).rest()
	before := w.upToDate().version("c1")
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"an approval of no call":            {answers("c1", m.id, `{"type":"tool-refund","toolCallId":"c9","state":"approval-responded","approval":{"id":"c9","approved":true}}`), 400},
		"an approval with another's id":     {answers("c1", m.id, `{"type":"tool-refund","toolCallId":"c1","state":"approval-responded","approval":{"id":"c2","approved":true}}`), 400},
		"an approval of a question":         {answers("c1", m.id, `{"type":"tool-how_much","toolCallId":"c2","state":"approval-responded","approval":{"id":"c2","approved":true}}`), 400},
		"an output in place of an approval": {answers("c1", m.id, `{"type":"tool-refund","toolCallId":"c1","state":"output-available","output":1}`), 400},
		"an output of no call":              {answers("c1", m.id, `{"type":"tool-refund","toolCallId":"c9","state":"output-available","output":1}`), 400},
		"no answer":                         {answers("c1", m.id, `{"type":"text","text":"I said so"}`), 400},
		"a message that is not there":       {answers("c1", "itm_made_up", `{"type":"text","text":"x"}`), 404},
		"a chat that is not there":          {answers("c2", m.id, `{"type":"text","text":"x"}`), 404},
	} {
		if status, body := w.do(http.MethodPost, "/chat", c.body); status != c.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if after := w.upToDate().version("c1"); after != before {
		t.Errorf("the thread is at version %d, and was at %d", after, before)
	}
}

// Bodies that no client sends are refused with the place at fault.
func TestChat_HostileBodies(t *testing.T) {
	w := newWorld(t, echo)
	deep := strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000)
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no JSON":             {`{"id":`, 400, "invalid_request"},
		"a list":              {`[]`, 400, "invalid_request"},
		"two ids":             {`{"id":"a","id":"b"}`, 400, "duplicate"},
		"broken UTF-8":        {"{\"id\":\"\xff\"}", 400, "invalid_request"},
		"a wrong type":        {`{"id":"a","trigger":7}`, 400, `"param":"trigger"`},
		"a wrong part":        {`{"id":"a","messages":[{"id":"u","role":"user","parts":7}]}`, 400, `"param":"messages/0/parts"`},
		"no id":               {`{"messages":[]}`, 400, `"param":"id"`},
		"a control character": {submit("a\n", text("u", "x")), 400, `"param":"id"`},
		"no agent":            {`{"id":"a","message":` + text("u", "x") + `}`, 400, `"param":"agent"`},
		"no messages":         {`{"id":"a"}`, 400, `"param":"messages"`},
		"null":                {`{"id":"a","messages":[null]}`, 400, `"param":"messages/0/role"`},
		"a number":            {`{"id":"a","messages":[1]}`, 400, `"param":"messages/0"`},
		"a wrong trigger":     {`{"id":"a","trigger":"x","message":` + text("u", "x") + `}`, 400, `"param":"trigger"`},
		"a wrong role":        {submit("a", `{"id":"u","role":"tool","parts":[{"type":"text","text":"x"}]}`), 400, "not of the role"},
		"a system message":    {submit("a", `{"id":"u","role":"system","parts":[{"type":"text","text":"x"}]}`), 400, "not of the role"},
		"an earlier wrong role": {submit("a", `{"id":"u0","role":"developer","parts":[{"type":"text","text":"x"}]}`, text("u", "x")), 400,
			`"param":"messages/0/role"`},
		"a user's call": {submit("a", `{"id":"u","role":"user","parts":[{"type":"tool-x","toolCallId":"c","state":"output-available"}]}`), 400, `"param":"messages/0/parts/0"`},
		"no parts":      {submit("a", `{"id":"u","role":"user","parts":[]}`), 400, "has a part"},
		"a script":      {submit("a", `{"id":"u","role":"user","parts":[{"type":"file","mediaType":"text/html","url":"javascript:alert(1)"}]}`), 400, "data URL"},
		"a file of others": {submit("a", `{"id":"u","role":"user","parts":[{"type":"file","mediaType":"text/plain","url":"/api/threads/key:b/files/x"}]}`), 400,
			"not one of the chat's own thread"},
		"one id twice": {submit("a", text("u", "x"), text("u", "y")), 409, "already_exists"},
		"deep":         {submit("a", `{"id":"u","role":"user","parts":[{"type":"data-x","data":`+deep+`}]}`), 400, "invalid_request"},
		"large":        {submit("a", text("u", strings.Repeat("x", 5<<20))), 413, "payload_too_large"},
		"a long text":  {submit("a", text("u", strings.Repeat("x", 3<<20))), 413, "payload_too_large"},
		"a long id":    {submit("a", text(strings.Repeat("u", 300), "x")), 400, "at most 256 bytes"},
	} {
		status, body := w.do(http.MethodPost, "/chat", c.body)
		if status != c.status || !strings.Contains(body, c.want) || strings.Contains(body, "Go ") {
			t.Errorf("%s: %d %.300s; want %d %s", name, status, body, c.status, c.want)
		}
	}
	if list, err := client.Read(t.Context(), w.upToDate().client, events.ListThreads{}); err != nil || len(list.Threads) != 0 {
		t.Errorf("threads were created: %+v, %v", list, err)
	}
}

// A chat of another tenant does not exist.
func TestChat_OtherTenants(t *testing.T) {
	w := newWorld(t, echo)
	w.post(submit("c1", text("u1", "secret"))).rest()
	thread, err := client.Read(t.Context(), w.client, events.GetThread{ThreadID: "key:c1"})
	w.server.Must(err)
	for _, id := range []string{"c1", thread.ID} {
		for path, want := range map[string]int{"GET /chat/" + id: 404, "GET /chat/" + id + "/stream": 204, "POST /chat/" + id + "/stop": 404} {
			method, path, _ := strings.Cut(path, " ")
			answer := w.request(t.Context(), method, path, "other", "")
			_ = answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s %s: %d", method, path, answer.StatusCode)
			}
		}
	}
	answer := w.request(t.Context(), http.MethodPost, "/chat", "other", submit(thread.ID, text("u9", "x")))
	defer func() { _ = answer.Body.Close() }()
	var refused struct{ Error struct{ Code string } }
	if err := json.NewDecoder(answer.Body).Decode(&refused); err != nil || answer.StatusCode != 404 || refused.Error.Code != "not_found" {
		t.Errorf("a message to another tenant's thread: %d %+v, %v", answer.StatusCode, refused, err)
	}
}

// Two tabs that begin one chat together get an answer each, in one thread.
func TestChat_TwoTabs(t *testing.T) {
	w := newWorld(t, echo)
	type answer struct{ text string }
	got := make(chan answer, 2)
	for _, id := range []string{"u1", "u2"} {
		go func() {
			r := w.request(t.Context(), http.MethodPost, "/chat", "acme", submit("c1", text(id, id)))
			defer func() { _ = r.Body.Close() }()
			var raw strings.Builder
			buf := make([]byte, 4096)
			for {
				n, err := r.Body.Read(buf)
				raw.Write(buf[:n])
				if err != nil {
					break
				}
			}
			got <- answer{raw.String()}
		}()
	}
	for range 2 {
		if a := <-got; !strings.Contains(a.text, `"finishReason":"stop"`) || !strings.Contains(a.text, "[DONE]") {
			t.Errorf("%s", a.text)
		}
	}
	list := w.messages("c1")
	if s := said(list); s != "user: u1 | assistant: you said u1 | user: u2 | assistant: you said u2" && s != "user: u2 | assistant: you said u2 | user: u1 | assistant: you said u1" {
		t.Errorf("messages: %s", s)
	}
}

// Another answer to a call that was answered is refused by its name; the same one is a repeat.
func TestTools_AnsweredBefore(t *testing.T) {
	w := newWorld(t, caller)
	m := w.post(careful("c1", text("u1", "hi"))).rest()
	body := func(approved bool, reason, output string) string {
		return answers("c1", m.id, fmt.Sprintf(`{"type":"tool-refund","toolCallId":"c1","state":"approval-responded","input":{"eur":5},"approval":{"id":"c1","approved":%v,"reason":%q}}`, approved, reason),
			`{"type":"tool-how_much","toolCallId":"c2","state":"output-available","input":{},"output":`+output+`}`)
	}
	w.post(body(true, "ok", `{"a":1,"b":2}`)).restChunks()
	w.post(body(true, "ok", `{"b":2,"a":1}`)).restChunks()
	for name, c := range map[string]struct{ body, names, says string }{
		"another decision": {body(false, "ok", `{"a":1,"b":2}`), "c1", "another decision"},
		"another reason":   {body(true, "no", `{"a":1,"b":2}`), "c1", "another reason"},
		"another output":   {body(true, "ok", `{"a":2}`), "c2", "another result"},
	} {
		status, got := w.do(http.MethodPost, "/chat", c.body)
		if status != http.StatusConflict || !strings.Contains(got, c.names) || !strings.Contains(got, c.says) {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
}

// A message of a user that says nothing is refused, and stored nowhere.
func TestSend_EmptyMessage(t *testing.T) {
	w := newWorld(t, caller)
	for _, parts := range []string{`[]`, `[{"type":"text","text":""}]`, `[{"type":"text","text":" \n"}]`} {
		status, got := w.do(http.MethodPost, "/chat", `{"id":"c1","agent":"careful","message":{"id":"u","role":"user","parts":`+parts+`}}`)
		if status != http.StatusBadRequest || !strings.Contains(got, "message/parts") {
			t.Errorf("%s: %d %s", parts, status, got)
		}
	}
}
