package completions_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// world is a server with an agent whose reactor the test writes.
type world struct {
	t   *testing.T
	url string
	c   *client.Client
	s   *skeintest.Server

	mu   sync.Mutex
	seen []*skein.StepInput
}

type object = map[string]any

// start starts a server. The agent triage says how many messages it sees, or what say returns.
func start(t *testing.T, say func(in *skein.StepInput) (*skein.Reaction, error)) *world {
	t.Helper()
	s := skeintest.Start(t, func(o *skein.Options) { o.HTTPListen, o.Tenant = "127.0.0.1:0", "acme" })
	w := &world{t: t, url: s.Addresses().HTTP, c: s.Client("acme"), s: s}
	s.Must(s.Reactor("test", func(_ context.Context, in *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		w.mu.Lock()
		w.seen = append(w.seen, in)
		w.mu.Unlock()
		if say != nil {
			if r, err := say(in); r != nil || err != nil {
				return r, err
			}
		}
		answer := "answer to " + in.LastText(events.User)
		for _, piece := range strings.SplitAfter(answer, " ") {
			data, _ := json.Marshal(map[string]string{"id": "t", "delta": piece})
			out.Chunk(skein.Chunk{Type: events.ChunkTextDelta, Data: data})
		}
		return skein.Answer(answer), nil
	}))
	w.define("agent", `{"name":"triage","type":"ai_human","reactor":"test"}`)
	return w
}

func (w *world) define(pairs ...string) {
	w.t.Helper()
	d := events.ApplyDefinitions{}
	for i := 0; i < len(pairs); i += 2 {
		d.Definitions = append(d.Definitions, events.NewDefinition{Kind: events.DefinitionKind(pairs[i]), Definition: events.JSON(pairs[i+1])})
	}
	if _, err := w.c.Send(w.t.Context(), "", d); err != nil {
		w.t.Fatal(err)
	}
}

// post asks for a completion. Headers are pairs.
func (w *world) post(body string, headers ...string) (*http.Response, []byte) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "POST", w.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res, raw
}

// must asks for a completion that succeeds, and returns its choice and its thread.
func (w *world) must(body string, headers ...string) (one object, thread string) {
	w.t.Helper()
	res, raw := w.post(body, headers...)
	var out object
	if err := json.Unmarshal(raw, &out); err != nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %d %s %v", body, res.StatusCode, raw, err)
	}
	return out["choices"].([]any)[0].(object), res.Header.Get("Skein-Thread-Id")
}

// chat asks for a completion with the messages of a chat, user first, and returns the answer.
func (w *world) chat(id string, messages ...string) (text, thread string) {
	w.t.Helper()
	one, thread := w.must(body(messages...), "X-OpenWebUI-Chat-Id", id)
	return one["message"].(object)["content"].(string), thread
}

// body returns a request with messages of the user and the assistant in turn.
func body(messages ...string) string {
	var list []object
	for i, text := range messages {
		list = append(list, object{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	raw, _ := json.Marshal(object{"model": "triage", "messages": list})
	return string(raw)
}

// inputs returns what the reactor was asked.
func (w *world) inputs() []*skein.StepInput {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// last returns the texts of what the reactor saw last.
func (w *world) last() string {
	var out []string
	seen := w.inputs()
	for _, i := range seen[len(seen)-1].Items {
		var parts []struct {
			Text string `json:"text"`
		}
		_ = json.Unmarshal(i.Content, &parts)
		for _, p := range parts {
			out = append(out, string(i.Role)+": "+p.Text)
		}
	}
	return strings.Join(out, "; ")
}

// chunks returns the frames of a stream.
func (w *world) chunks(body string, headers ...string) (list []string) {
	w.t.Helper()
	res, raw := w.post(body, headers...)
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		w.t.Fatalf("%d %s: %s", res.StatusCode, got, raw)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(raw))); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			list = append(list, data)
		}
	}
	return list
}

// brief returns frames without what differs between requests, and a text in one piece.
func brief(t *testing.T, frames []string) string {
	t.Helper()
	var out []string
	for _, f := range frames {
		var o object
		if f == "[DONE]" {
			out = append(out, f)
			continue
		}
		if err := json.Unmarshal([]byte(f), &o); err != nil {
			t.Fatalf("%v: %s", err, f)
		}
		for _, name := range []string{"id", "object", "created", "model"} {
			if o["error"] == nil && (o[name] == nil || o[name] == "") {
				t.Errorf("a chunk without %s: %s", name, f)
			}
			delete(o, name)
		}
		if list, ok := o["choices"].([]any); ok && len(list) > 0 {
			one := list[0].(object)
			delete(one, "logprobs")
			delete(one, "index")
			if one["finish_reason"] == nil {
				delete(one, "finish_reason")
			}
			o = one
		}
		raw, _ := json.Marshal(o)
		out = append(out, string(raw))
	}
	return out[0] + "\n" + strings.ReplaceAll(strings.Join(out[1:], "\n"), `"}}`+"\n"+`{"delta":{"content":"`, "") // where a text is divided does not matter
}

// Without a chat id the answer has all that clients read, and nothing stays.
func TestCreate_Stateless(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	one, thread := w.must(`{"model":"triage","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"one"},{"role":"assistant","content":"ok"},
		{"role":"user","content":[{"type":"text","text":"two"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}],"max_tokens":9,"temperature":0.5,
		"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}}}`)
	if m := one["message"].(object); m["content"] != "answer to two" || m["role"] != "assistant" || one["finish_reason"] != "stop" || one["index"] != 0.0 {
		t.Errorf("%v", one)
	}
	in := w.inputs()[0]
	if !strings.Contains(in.Instructions, "Be brief.") || w.last() != "user: one; assistant: ok; user: two; user: " {
		t.Errorf("%q %q", in.Instructions, w.last())
	}
	if raw, _ := json.Marshal(in); !strings.Contains(string(raw), `"json_schema"`) || !strings.Contains(string(raw), "data:image/png;base64,AAAA") {
		t.Errorf("%s", raw)
	}
	w.gone(thread)
}

// gone waits until a thread is deleted.
func (w *world) gone(thread string) {
	w.t.Helper()
	timeline, err := w.c.Timeline(w.t.Context(), client.SubscribeOptions{Thread: thread, Types: []string{string(events.LifecycleDeletedType)}})
	if err != nil {
		w.t.Fatal(err)
	}
	defer timeline.Close()
	if _, err := timeline.Next(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// A stream begins with the role, and ends with a finish_reason, the usage and [DONE].
func TestCreate_Stream(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	const want = `{"delta":{"role":"assistant"}}
{"delta":{"content":"answer to hi"}}
{"delta":{},"finish_reason":"stop"}`
	const counted = `
{"choices":[],"usage":{"completion_tokens":0,"completion_tokens_details":{"reasoning_tokens":0},"prompt_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"total_tokens":0}}`
	const more = `,"stream":true,"messages":[{"role":"user","content":"hi"}]`
	if got := brief(t, w.chunks(`{"model":"triage"`+more+`}`)); got != want+"\n[DONE]" {
		t.Errorf("%s", got)
	}
	if got := brief(t, w.chunks(`{"model":"triage","stream_options":{"include_usage":true}`+more+`}`)); got != want+counted+"\n[DONE]" {
		t.Errorf("%s", got)
	}
}

// A run that fails is an error with a message: of the answer, or in mid-stream.
func TestCreate_RunFails(t *testing.T) {
	t.Parallel()
	w := start(t, func(*skein.StepInput) (*skein.Reaction, error) { return nil, errors.New("the model is gone") })
	res, raw := w.post(body("hi"))
	if res.StatusCode != http.StatusInternalServerError || !strings.Contains(string(raw), `"message":"`) {
		t.Errorf("%d %s", res.StatusCode, raw)
	}
	frames := w.chunks(`{"model":"triage","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	if last := frames[len(frames)-1]; !strings.HasPrefix(last, `{"error":{`) {
		t.Errorf("%s", frames)
	}
}

// calls asks for a call of a tool, and answers when it has the result.
func calls(in *skein.StepInput) (*skein.Reaction, error) {
	for _, i := range in.Items {
		if i.Type == events.ActionResult {
			return skein.Answer("It rains."), nil
		}
	}
	r := skein.Answer("Let me see.")
	r.ToolCalls = []skein.ToolCall{{CallID: "c1", Name: "weather", Arguments: []byte(`{"city":"Paris"}`)}}
	r.AssistantEvent.Content = append(r.AssistantEvent.Content, events.JSON(`{"type":"tool-weather","toolCallId":"c1","input":{"city":"Paris"}}`))
	return r, nil
}

// A call of a caller's tool ends the completion, and its result goes on: with and without a chat.
func TestCreate_CallersTools(t *testing.T) {
	t.Parallel()
	w := start(t, calls)
	const tools = `"tools":[{"type":"function","function":{"name":"weather","description":"Weather.","parameters":{"type":"object"}}}],"tool_choice":{"type":"function","function":{"name":"weather"}}`
	const asked = `{"role":"user","content":"weather?"}`
	for _, headers := range [][]string{nil, {"Skein-Thread", "w"}} {
		one, first := w.must(`{"model":"triage",`+tools+`,"messages":[`+asked+`]}`, headers...)
		raw, _ := json.Marshal(one["message"])
		const want = `{"content":"Let me see.","refusal":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"city\":\"Paris\"}","name":"weather"},"id":"c1","type":"function"}]}`
		if string(raw) != want || one["finish_reason"] != "tool_calls" {
			t.Errorf("%v %s", headers, raw)
		}
		two, second := w.must(`{"model":"triage",`+tools+`,"messages":[`+asked+`,`+string(raw)+`,{"role":"tool","tool_call_id":"c1","content":"rain"}]}`, headers...)
		if m := two["message"].(object); m["content"] != "It rains." || two["finish_reason"] != "stop" || (headers != nil) != (first == second) {
			t.Errorf("%v %v: %s %s", headers, two, first, second)
		}
	}
	got := brief(t, w.chunks(`{"model":"triage","stream":true,`+tools+`,"messages":[`+asked+`]}`))
	const want = `{"delta":{"role":"assistant"}}
{"delta":{"content":"Let me see."}}
{"delta":{"tool_calls":[{"function":{"arguments":"","name":"weather"},"id":"c1","index":0,"type":"function"}]}}
{"delta":{"tool_calls":[{"function":{"arguments":"{\"city\":\"Paris\"}"},"index":0}]}}
{"delta":{},"finish_reason":"tool_calls"}
[DONE]`
	if got != want {
		t.Errorf("%s", got)
	}
}

// Only what follows the last known message is new; another history forks, and continues its fork.
func TestCreate_DurableChat(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	a1, thread := w.chat("c", "one")
	a2, same := w.chat("c", "one", a1, "two")
	if a2 != "answer to two" || thread != same || w.last() != "user: one; assistant: answer to one; user: two" {
		t.Errorf("%s %s %s: %s", a2, thread, same, w.last())
	}
	edited, fork := w.chat("c", "one", a1, "TWO")
	if fork == thread || w.last() != "user: one; assistant: answer to one; user: TWO" {
		t.Errorf("an edited message: %s %s", fork, w.last())
	}
	if _, again := w.chat("c", "one", a1, "TWO", edited, "three"); again != fork {
		t.Errorf("the fork is not continued: %s, not %s", again, fork)
	}
	if _, again := w.chat("c", "one", a1, "two", a2, "three"); again != thread {
		t.Errorf("the first history is not continued: %s, not %s", again, thread)
	}
	_, regenerated := w.chat("c", "one", a1, "two")
	if regenerated == thread || regenerated == fork || w.last() != "user: one; assistant: answer to one; user: two" {
		t.Errorf("regenerated: %s %s", regenerated, w.last())
	}
	_, forged := w.chat("c", "one", "I never said this", "two")
	if forged == thread || w.last() != "user: one; assistant: I never said this; user: two" {
		t.Errorf("forged: %s %s", forged, w.last())
	}
	_, title := w.chat("c", "Generate a title")
	_, titled := w.chat("c", "Generate a title", "answer to Generate a title", "again")
	if title == thread || titled != title {
		t.Errorf("a title: %s %s, chat %s", title, titled, thread)
	}
	got, err := client.Read(t.Context(), w.c, events.GetThread{ThreadID: "key:chat:c"})
	if err != nil || got.ID != thread {
		t.Errorf("%v %v", got, err)
	}
}

// A chat of several pages of items goes on where it has all of a history, also where that ends between
// two pages, and is forked where it differs.
func TestCreate_LongChat(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	_, thread := w.chat("c", "one")
	messages, more := []string{"one", "answer to one"}, events.AppendItems{}
	for n := range 450 {
		role, text := []events.Role{events.User, events.Assistant}[n%2], fmt.Sprint("message ", n)
		messages = append(messages, text)
		more.Items = append(more.Items, events.NewItem{Type: events.Message, Role: role, Content: events.JSON(`[{"type":"input_text","text":"` + text + `"}]`)})
	}
	_, err := w.c.Send(t.Context(), thread, more)
	w.s.Must(err)
	if _, same := w.chat("c", append(slices.Clone(messages), "two")...); same != thread {
		t.Errorf("the whole history is not continued: %s, not %s", same, thread)
	}
	for _, known := range []int{2, 198, 200, 202, 400} {
		if _, fork := w.chat("c", append(slices.Clone(messages[:known]), fmt.Sprint("else ", known))...); fork == thread || strings.Count(w.last(), ";") != known {
			t.Errorf("%d messages are known: %s, with %d before", known, fork, strings.Count(w.last(), ";"))
		}
	}
}

// A chat whose thread was purged begins again, and its earlier messages are those that the client has.
func TestCreate_PurgedChat(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	a1, thread := w.chat("p", "one")
	if _, err := w.c.Send(t.Context(), thread, events.DeleteThread{Purge: true}); err != nil {
		t.Fatal(err)
	}
	_, again := w.chat("p", "one", a1, "two")
	if again == thread || w.last() != "user: one; assistant: answer to one; user: two" {
		t.Errorf("%s %s", again, w.last())
	}
	if res, raw := w.post(body("one"), "Skein-Thread", thread); res.StatusCode != http.StatusNotFound {
		t.Errorf("%d %s", res.StatusCode, raw)
	}
}

// Requests that begin a chat together, as several tabs do, all are answered.
func TestCreate_Together(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			if res, raw := w.post(body(fmt.Sprintf("one %d", n%2)), "Skein-Thread", "t"); res.StatusCode != http.StatusOK {
				t.Errorf("%d %s", res.StatusCode, raw)
			}
		})
	}
	all.Wait()
}

// The first of the headers names the chat.
func TestCreate_ChatHeaders(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	headers := []string{"Skein-Thread", "X-OpenWebUI-Chat-Id", "X-Conversation-Id", "X-Session-ID"}
	for i := range headers {
		var pairs []string
		for n, name := range headers[i:] {
			pairs = append(pairs, name, fmt.Sprintf("chat-%d", i+n))
		}
		_, thread := w.must(body("one"), pairs...)
		if got, err := client.Read(t.Context(), w.c, events.GetThread{ThreadID: fmt.Sprintf("key:chat:chat-%d", i)}); err != nil || got.ID != thread {
			t.Errorf("%v: %v %v", pairs, got, err)
		}
	}
	_, thread := w.chat("mine", "one")
	if _, again := w.must(body("one", "answer to one", "two"), "Skein-Thread", thread); again != thread {
		t.Errorf("by the thread's id: %s, not %s", again, thread)
	}
	if res, raw := w.post(body("one"), "Skein-Thread", "a\xffb"); res.StatusCode != http.StatusBadRequest || !strings.Contains(string(raw), `"headers/Skein-Thread"`) {
		t.Errorf("a header that is no UTF-8: %d %s", res.StatusCode, raw)
	}
	empty, err := w.c.Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	if _, begun := w.must(body("one"), "Skein-Thread", empty.ThreadID); begun != empty.ThreadID {
		t.Errorf("by the id of a thread without messages: %s, not %s", begun, empty.ThreadID)
	}
}

// The sequences of stop, one or several, are params of the model.
func TestCreate_Stop(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	for stop, want := range map[string]string{`"x"`: `{"stop":["x"]}`, `["x","y"]`: `{"stop":["x","y"]}`, `null`: "", `[]`: ""} {
		w.must(`{"model":"triage","stop":` + stop + `,"messages":[{"role":"user","content":"hello"}]}`)
		w.mu.Lock()
		got := string(w.seen[len(w.seen)-1].Model.Params)
		w.mu.Unlock()
		if got != want {
			t.Errorf("stop %s: the model has the params %s", stop, got)
		}
	}
}

// A completion that was not kept says so when its request is repeated, without the id of a response.
func TestCreate_RepeatedAfterItsEnd(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	res, raw := w.post(body("one"), "Idempotency-Key", "k")
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, raw)
	}
	thread := res.Header.Get("Skein-Thread-Id")
	for { // its thread is purged once it was answered
		if _, err := client.Read(t.Context(), w.c, events.GetThread{ThreadID: thread}); events.IsNotFound(err) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if res, raw := w.post(body("one"), "Idempotency-Key", "k"); res.StatusCode != http.StatusNotFound || strings.Contains(string(raw), "resp_") || !strings.Contains(string(raw), "was not kept") {
		t.Errorf("%d %s", res.StatusCode, raw)
	}
}

// A repeat with the same Idempotency-Key is answered as the first was, and another body is refused.
func TestCreate_IdempotencyKey(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	for _, messages := range [][]string{{"one"}, {"one", "answer to one", "two"}} {
		key := fmt.Sprintf("k%d", len(messages))
		for range 2 {
			w.must(body(messages...), "Skein-Thread", "i", "Idempotency-Key", key)
		}
		if res, raw := w.post(body("other"), "Skein-Thread", "i", "Idempotency-Key", key); res.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%d %s", res.StatusCode, raw)
		}
	}
	forks, err := client.Read(t.Context(), w.c, events.ListRelationships{ThreadID: "key:chat:i", Type: events.ForkRelation})
	if err != nil || len(forks.Relationships) != 0 {
		t.Errorf("a repeat has forked the thread: %+v %v", forks, err)
	}
	if n := len(w.inputs()); n != 2 {
		t.Errorf("the agent was asked %d times", n)
	}
}

// A run that waits for people ends the completion without tool_calls, and says what it waits for. A
// stateless thread is kept until they have answered.
func TestCreate_WaitsForPeople(t *testing.T) {
	t.Parallel()
	w := start(t, func(in *skein.StepInput) (*skein.Reaction, error) {
		if in.Iteration > 0 {
			return skein.Answer("Refunded."), nil
		}
		r := skein.Answer("Let me see. ")
		r.ToolCalls = []skein.ToolCall{{CallID: "c1", Name: "refund", Arguments: []byte(`{"eur":5}`)}}
		r.AssistantEvent.Content = append(r.AssistantEvent.Content, events.JSON(`{"type":"tool-refund","toolCallId":"c1","input":{"eur":5}}`))
		if len(in.Tools) > 1 {
			r.ToolCalls = append(r.ToolCalls, skein.ToolCall{CallID: "c2", Name: "weather", Arguments: []byte(`{}`)})
			r.AssistantEvent.Content = append(r.AssistantEvent.Content, events.JSON(`{"type":"tool-weather","toolCallId":"c2","input":{}}`))
		}
		return r, nil
	})
	w.s.Must(w.s.Tool(skein.NewTool("refund", func(context.Context, struct {
		EUR int `json:"eur"`
	}) (any, error) {
		return "done", nil
	}, skein.Description("Refunds."))))
	w.define("tool", `{"name":"refund","description":"Refunds.","type":"go","auto":false}`, "agent", `{"name":"careful","type":"ai_human","reactor":"test","tools":["refund"]}`)
	body := func(messages ...string) string { return strings.Replace(body(messages...), "triage", "careful", 1) }
	one, thread := w.must(body("refund"))
	said, _ := one["skein"].(object)
	raw, _ := json.Marshal(said["waiting"])
	if m := one["message"].(object); one["finish_reason"] != "stop" || m["tool_calls"] != nil || m["content"] != "Let me see. " ||
		said["threadId"] != thread || string(raw) != `[{"callId":"c1","kind":"approval","tool":"refund"}]` {
		t.Errorf("%v", one)
	}
	frames := w.chunks(`{"model":"careful","stream":true,"messages":[{"role":"user","content":"refund"}]}`, "Skein-Thread", "r")
	if last := frames[len(frames)-2]; !strings.Contains(last, `"waiting":[{"callId":"c1"`) || strings.Contains(strings.Join(frames, ""), "tool_calls") {
		t.Errorf("%s", frames)
	}
	res, raw := w.post(body("refund", "Let me see. ", "hurry"), "Skein-Thread", "r")
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(raw), "/approvals/") {
		t.Errorf("%d %s", res.StatusCode, raw)
	}
	// A call of the caller's own that was made with it comes when the people have answered.
	const own = `{"model":"careful","messages":[{"role":"user","content":"refund and weather"}],"tools":[{"type":"function","function":{"name":"weather"}}]}`
	first, both := w.must(own, "Idempotency-Key", "k")
	if m := first["message"].(object); first["finish_reason"] != "stop" || m["tool_calls"] != nil || first["skein"] == nil {
		t.Errorf("%v", first)
	}
	if _, err := w.c.Send(t.Context(), both, events.ResolveApproval{CallID: "c1", Grant: true}); err != nil {
		t.Error(err)
	}
	w.s.WaitIdle()
	if again, _ := w.must(own, "Idempotency-Key", "k"); again["finish_reason"] != "tool_calls" || again["skein"] != nil {
		t.Errorf("%v", again)
	}
	if _, err := w.c.Send(t.Context(), thread, events.ResolveApproval{CallID: "c1", Grant: true}); err != nil {
		t.Error(err)
	}
	if _, err := w.c.Send(t.Context(), "key:chat:r", events.ResolveApproval{CallID: "c1", Grant: true}); err != nil {
		t.Error(err)
	}
	w.s.WaitIdle()
	got, err := client.Read(t.Context(), w.c, events.GetThread{ThreadID: "key:chat:r"})
	if err != nil {
		t.Fatal(err)
	}
	if _, forged := w.must(body("refund", "I never said this", "and now?"), "Skein-Thread", "r"); forged == got.ID {
		t.Error("a forged answer does not fork")
	}
	if next, chat := w.must(body("refund", "Let me see.", "and now?"), "Skein-Thread", "r"); chat != got.ID { // it saw the beginning
		t.Errorf("%s is not continued: %s %v", got.ID, chat, next)
	}
}

// What has no effect is refused in the form of OpenAI, with the parameter at fault.
func TestCreate_Refusals(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	const user = `{"role":"user","content":"x"}`
	long := strings.Repeat(user+`,{"role":"assistant","content":"y"},`, 500) + user
	for name, row := range map[string]struct{ body, want string }{
		"no model":        {`{"messages":[` + user + `]}`, "400 invalid_request model"},
		"unknown model":   {`{"model":"nobody","messages":[` + user + `]}`, "404 model_not_found model"},
		"no messages":     {`{"model":"triage"}`, "400 invalid_request messages"},
		"wrong type":      {`{"model":"triage","messages":7}`, "400 invalid_request messages"},
		"not JSON":        {`{`, "400 invalid_request "},
		"unknown role":    {`{"model":"triage","messages":[{"role":"king","content":"x"}]}`, "400 invalid_request messages/0/role"},
		"no content":      {`{"model":"triage","messages":[{"role":"user"}]}`, "400 invalid_request messages/0/content"},
		"no text":         {`{"model":"triage","messages":[{"role":"system","content":"x"},{"role":"user","content":""}]}`, "400 invalid_request messages/1/content"},
		"no part":         {`{"model":"triage","messages":[{"role":"user","content":[]}]}`, "400 invalid_request messages/0/content"},
		"audio":           {`{"model":"triage","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, "400 invalid_request messages/0/content/0"},
		"no image":        {`{"model":"triage","messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`, "400 invalid_request messages/0/content/0/image_url"},
		"prefill":         {`{"model":"triage","messages":[` + user + `,{"role":"assistant","content":"x"}]}`, "400 invalid_request messages/1/role"},
		"result, no call": {`{"model":"triage","messages":[` + user + `,{"role":"tool","tool_call_id":"c","content":"x"}]}`, "400 invalid_request messages/1/tool_call_id"},
		"huge history":    {`{"model":"triage","messages":[` + long + `]}`, "400 invalid_request messages"},
		"two choices":     {`{"model":"triage","n":2,"messages":[` + user + `]}`, "400 invalid_request n"},
		"an empty stop":   {`{"model":"triage","stop":["x",""],"messages":[` + user + `]}`, "400 invalid_request stop"},
		"many stops":      {`{"model":"triage","stop":["a","b","c","d","e"],"messages":[` + user + `]}`, "400 invalid_request stop"},
		"stop, no text":   {`{"model":"triage","stop":7,"messages":[` + user + `]}`, "400 invalid_request stop"},
		"temperature":     {`{"model":"triage","temperature":7,"messages":[` + user + `]}`, "400 invalid_request temperature"},
		"limit":           {`{"model":"triage","max_tokens":0,"messages":[` + user + `]}`, "400 invalid_request max_tokens"},
		"new limit":       {`{"model":"triage","max_completion_tokens":0,"messages":[` + user + `]}`, "400 invalid_request max_completion_tokens"},
		"null of a user":  {`{"model":"triage","messages":[{"role":"user","content":null}]}`, "400 invalid_request messages/0/content"},
		"null of system":  {`{"model":"triage","messages":[{"role":"system","content":null},` + user + `]}`, "400 invalid_request messages/0/content"},
		"null of a tool":  {`{"model":"triage","messages":[` + user + `,{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":null}]}`, "400 invalid_request messages/2/content"},
		"schema":          {`{"model":"triage","response_format":{"type":"json_schema","json_schema":{"name":"a"}},"messages":[` + user + `]}`, "400 invalid_request response_format/json_schema/schema"},
		"tool's name":     {`{"model":"triage","tools":[{"type":"function","function":{"name":"a b"}}],"messages":[` + user + `]}`, "400 invalid_request tools/0/function/name"},
	} {
		for _, headers := range [][]string{nil, {"Skein-Thread", "refused"}} {
			if name == "huge history" && headers != nil {
				continue // what of it is new counts
			}
			res, raw := w.post(row.body, headers...)
			var out struct {
				Error struct{ Type, Code, Message, Param string } `json:"error"`
			}
			_ = json.Unmarshal(raw, &out)
			if got := fmt.Sprintf("%d %s %s", res.StatusCode, out.Error.Code, out.Error.Param); got != row.want || out.Error.Message == "" {
				t.Errorf("%s: %s, not %s: %s", name, got, row.want, raw)
			}
		}
	}
	for id, want := range map[string]int{strings.Repeat("x", 300): http.StatusBadRequest, "T-0190a3c5-0000-7000-8000-000000000000": http.StatusNotFound} {
		if res, raw := w.post(body("x"), "Skein-Thread", id); res.StatusCode != want {
			t.Errorf("chat %s: %d %s", id, res.StatusCode, raw)
		}
	}
	if _, err := client.Read(t.Context(), w.c, events.GetThread{ThreadID: "key:chat:refused"}); !events.IsNotFound(err) {
		t.Errorf("a refused request has made a thread: %v", err)
	}
}
