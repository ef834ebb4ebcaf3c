package openresponses_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// careful defines the agent careful, whose model says something, asks for a refund, which a person
// must approve, and in the next step says what came of it. made counts the refunds.
func (w *world) careful() (made *atomic.Int64) {
	w.t.Helper()
	made = &atomic.Int64{}
	w.s.Must(w.s.Tool(skein.NewTool("refund", func(_ context.Context, in struct {
		EUR int `json:"eur"`
	}) (any, error) {
		made.Add(1)
		return object{"refunded": in.EUR}, nil
	}, skein.Description("Refunds."))))
	w.define("tool", `{"name":"refund","description":"Refunds.","type":"go","auto":false}`,
		"tool", `{"name":"how_much","description":"Asks.","type":"person","question":"How much?","answer":{"type":"object","properties":{"eur":{"type":"integer"}},"required":["eur"]}}`,
		"agent", `{"name":"careful","type":"ai_human","model":"m","tools":["refund","how_much"]}`)
	w.model.answers(func(a *answer, asked map[string]any) {
		input := string(raw(asked["input"]))
		switch at := strings.LastIndex(input, `"output":`); {
		case at >= 0:
			a.says("It says: ", strings.Trim(strings.SplitN(input[at+len(`"output":`):], `","`, 2)[0], `"`))
		case strings.Contains(input, "both"):
			a.calls("call_1", "refund", `{"eur":5}`)
			a.calls("call_2", "how_much", `{}`)
		case strings.Contains(input, "ask"):
			a.says("I ask.")
			a.calls("call_2", "how_much", `{}`)
		default:
			a.says("Let me see.")
			a.calls("call_1", "refund", `{"eur":5}`)
		}
		a.ends("response.completed", "")
	})
	return made
}

// ways returns the ways to ask for a response: with a stream and without.
func ways(w *world) map[string]func(body string) object {
	return map[string]func(body string) object{
		"json": func(body string) object { return w.must("POST", "/v1/responses", body) },
		"stream": func(body string) object {
			list := w.stream("POST", "/v1/responses", strings.Replace(body, "{", `{"stream":true,`, 1))
			last := streams(w.t, list)
			again := w.stream("GET", fmt.Sprintf("/v1/responses/%v?stream=true", last["id"]), "")
			if len(again) != len(list) || !reflect.DeepEqual(again[len(again)-1], list[len(list)-1]) {
				w.t.Errorf("first %s, and again %s", kinds(list), kinds(again))
			}
			return last
		},
	}
}

// A run that waits for an approval ends its response with a request for it. The answer, in the
// input of the next request, lets the run go on, in a response of its own, and a repeat of either
// request has the same response.
func TestApproval_AnswersGoOn(t *testing.T) {
	t.Parallel()
	w := start(t)
	made := w.careful()
	for name, ask := range ways(w) {
		first := ask(`{"model":"careful","input":"refund it"}`)
		if first["status"] != "incomplete" || first["incomplete_details"].(object)["reason"] != "approval_required" || texts(first["output"]) != "Let me see. (mcp_approval_request)" {
			t.Fatalf("%s: %v", name, first)
		}
		request := first["output"].([]any)[1].(object)
		if request["name"] != "refund" || request["arguments"] != `{"eur":5}` || request["server_label"] != "skein" {
			t.Errorf("%s: %v", name, request)
		}
		for _, bad := range []string{
			`"hello"`, `[]`, `[{"type":"mcp_approval_response","approval_request_id":"mcpr_other_1","approve":true}]`,
			fmt.Sprintf(`[{"type":"mcp_approval_response","approval_request_id":%q}]`, request["id"]),
			fmt.Sprintf(`[{"type":"mcp_approval_response","approval_request_id":%q,"approve":true},{"role":"user","content":"hello"}]`, request["id"]),
		} {
			if status, e := w.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"careful","previous_response_id":%q,"input":%s}`, first["id"], bad)); status != http.StatusBadRequest {
				t.Errorf("%s: %s: %d %v", name, bad, status, e)
			}
		}
		before := made.Load()
		grant := fmt.Sprintf(`{"model":"careful","previous_response_id":%q,"input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, first["id"], request["id"])
		second := ask(grant)
		if second["status"] != "completed" || texts(second["output"]) != `(mcp_call) It says: {\"refunded\":5}` || second["id"] == first["id"] || second["previous_response_id"] != first["id"] {
			t.Errorf("%s: %v", name, second)
		}
		call := second["output"].([]any)[0].(object)
		if call["approval_request_id"] != request["id"] || call["output"] != `{"refunded":5}` {
			t.Errorf("%s: %v", name, call)
		}
		if again := ask(grant); !reflect.DeepEqual(again, second) {
			t.Errorf("%s: repeated: %v, and first %v", name, again, second)
		}
		if n := made.Load() - before; n != 1 {
			t.Errorf("%s: %d refunds", name, n)
		}
		if got := w.must("GET", fmt.Sprintf("/v1/responses/%v", first["id"]), ""); !reflect.DeepEqual(got["output"], first["output"]) || got["status"] != "incomplete" {
			t.Errorf("%s: later %v", name, got)
		}
		if status, e := w.do("POST", "/v1/responses", strings.Replace(grant, `"approve":true`, `"approve":false`, 1)); status != http.StatusBadRequest {
			t.Errorf("%s: another answer: %d %v", name, status, e)
		}
		third := ask(fmt.Sprintf(`{"model":"careful","previous_response_id":%q,"input":"ask"}`, second["id"]))
		if third["status"] != "completed" {
			t.Errorf("%s: %v", name, third)
		}
		w.s.WaitIdle()
	}
}

// A refusal goes to the model, and its response shows that the call was not made.
func TestApproval_Denied(t *testing.T) {
	t.Parallel()
	w := start(t)
	made := w.careful()
	for name, ask := range ways(w) {
		first := ask(`{"model":"careful","input":"refund it"}`)
		second := ask(fmt.Sprintf(`{"model":"careful","previous_response_id":%q,"input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":false,"reason":"too much"}]}`,
			first["id"], first["output"].([]any)[1].(object)["id"]))
		if call := second["output"].([]any)[0].(object); call["status"] != "failed" || call["error"] != "the call was denied: too much" || !strings.Contains(texts(second["output"]), "too much") {
			t.Errorf("%s: %v", name, second["output"])
		}
	}
	if made.Load() != 0 {
		t.Errorf("%d refunds", made.Load())
	}
}

// A question to a person ends the response with a function_call, and its output is the answer.
func TestApproval_Question(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.careful()
	for name, ask := range ways(w) {
		first := ask(`{"model":"careful","input":"ask"}`)
		if first["status"] != "completed" || texts(first["output"]) != "I ask. (function_call)" {
			t.Fatalf("%s: %v", name, first)
		}
		call := first["output"].([]any)[1].(object)
		body := `{"model":"careful","previous_response_id":%q,"input":[{"type":"function_call_output","call_id":%q,"output":%q}]}`
		if status, e := w.do("POST", "/v1/responses", fmt.Sprintf(body, first["id"], call["call_id"], "much")); status != http.StatusBadRequest || e["error"].(object)["param"] != "input/0/output" {
			t.Errorf("%s: an answer that does not fit: %d %v", name, status, e)
		}
		second := ask(fmt.Sprintf(body, first["id"], call["call_id"], `{"eur":7}`))
		if second["status"] != "completed" || texts(second["output"]) != `It says: {\"eur\":7}` {
			t.Errorf("%s: %v", name, second)
		}
	}
}

// A response that waits for several answers takes them in one request, and refuses a part of them.
func TestApproval_SeveralAnswers(t *testing.T) {
	t.Parallel()
	w := start(t)
	made := w.careful()
	first := w.must("POST", "/v1/responses", `{"model":"careful","input":"both"}`)
	grant, answer := "", `{"type":"function_call_output","call_id":"call_2","output":"{\"eur\":7}"}`
	for _, o := range first["output"].([]any) {
		if o.(object)["type"] == "mcp_approval_request" {
			grant = fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}`, o.(object)["id"])
		}
	}
	if first["status"] != "incomplete" || texts(first["output"]) != "(mcp_approval_request) (function_call)" {
		t.Fatalf("%v", first)
	}
	body := `{"model":"careful","previous_response_id":%q,"input":[%s]}`
	for part, missing := range map[string]string{grant: "call_2", answer: "mcp_approval_response"} {
		status, e := w.do("POST", "/v1/responses", fmt.Sprintf(body, first["id"], part))
		if status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(e), missing) {
			t.Errorf("a part of the answers: %d %v", status, e)
		}
	}
	if made.Load() != 0 {
		t.Error("a call was made before all was answered")
	}
	if second := w.must("POST", "/v1/responses", fmt.Sprintf(body, first["id"], grant+","+answer)); second["status"] != "completed" || made.Load() != 1 {
		t.Errorf("%d refunds, %v", made.Load(), second)
	}
}

// In a conversation, and with the history in the input, an answer finds its run as well. A request
// that answers nothing is refused while the run waits: it would wait with it.
func TestApproval_Conversation(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.careful()
	conversation := w.must("POST", "/v1/conversations", `{}`)["id"]
	first := w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"careful","conversation":%q,"input":"refund it"}`, conversation))
	if status, e := w.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"careful","conversation":%q,"input":"hello?"}`, conversation)); status != http.StatusBadRequest {
		t.Errorf("%d %v", status, e)
	}
	grant := `[%s{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]`
	second := w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"careful","conversation":%q,"input":`+grant+`}`, conversation, "", first["output"].([]any)[1].(object)["id"]))
	if second["status"] != "completed" || second["conversation"].(object)["id"] != conversation {
		t.Errorf("%v", second)
	}
	first = w.must("POST", "/v1/responses", `{"model":"careful","input":"refund it"}`)
	asked := first["output"].([]any)[1].(object)["id"]
	history := fmt.Sprintf(grant, fmt.Sprintf(`{"role":"user","content":"refund it"},{"type":"item_reference","id":%q},`, asked), asked)
	second = w.must("POST", "/v1/responses", `{"model":"careful","input":`+history+`}`)
	if second["status"] != "completed" || second["previous_response_id"] != first["id"] {
		t.Errorf("%v", second)
	}
	more := strings.TrimSuffix(history, "]") + `,{"role":"user","content":"Hello."}]`
	if third := w.must("POST", "/v1/responses", `{"model":"triage","input":`+more+`}`); third["status"] != "completed" || third["id"] == second["id"] {
		t.Errorf("%v", third)
	}
}

// Somebody else may answer, in the console: then a request without input has what followed.
func TestApproval_AnsweredElsewhere(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.careful()
	first := w.must("POST", "/v1/responses", `{"model":"careful","input":"refund it"}`)
	x := w.event(events.ApprovalRequestedType)
	_, err := w.c.Send(t.Context(), x.ThreadID, events.ResolveApproval{CallID: "call_1", Grant: true})
	w.s.Must(err)
	second := w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"careful","previous_response_id":%q}`, first["id"]))
	if second["status"] != "completed" || texts(second["output"]) != `(mcp_call) It says: {\"refunded\":5}` {
		t.Errorf("%v", second)
	}
}

// A response whose run waits can be cancelled.
func TestApproval_Cancelled(t *testing.T) {
	t.Parallel()
	w := start(t)
	made := w.careful()
	first := w.must("POST", "/v1/responses", `{"model":"careful","input":"refund it"}`)
	if got := w.must("POST", fmt.Sprintf("/v1/responses/%v/cancel", first["id"]), ""); got["status"] != "cancelled" {
		t.Errorf("%v", got)
	}
	if made.Load() != 0 {
		t.Errorf("%d refunds", made.Load())
	}
}

// A response that is not stored takes its run with it, if that comes to wait: nobody could answer.
func TestApproval_Temporary(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.careful()
	if got := w.must("POST", "/v1/responses", `{"model":"careful","input":"refund it","store":false}`); got["status"] != "incomplete" {
		t.Errorf("%v", got)
	}
	w.event(events.LifecycleDeletedType)
}

// A response that waits for another run of its conversation ends when that comes to wait for
// people, with what they are asked. It runs when they have answered.
func TestApproval_QueuedBehind(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.careful()
	begun, release := make(chan struct{}, 9), make(chan struct{}, 9)
	w.model.mu.Lock()
	then := w.model.answer
	w.model.mu.Unlock()
	w.model.answers(func(a *answer, asked map[string]any) {
		begun <- struct{}{}
		select {
		case <-release:
			then(a, asked)
		case <-a.r.Context().Done():
		}
	})
	for n, stream := range []bool{false, true} {
		conversation := w.must("POST", "/v1/conversations", `{}`)["id"]
		w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"careful","conversation":%q,"input":"refund it","background":true}`, conversation))
		<-begun
		body := fmt.Sprintf(`{"model":"triage","conversation":%q,"input":"hello"}`, conversation)
		ended := make(chan object, 1)
		go func() {
			if stream {
				ended <- streams(t, w.stream("POST", "/v1/responses", strings.Replace(body, "{", `{"stream":true,`, 1)))
			} else {
				ended <- w.must("POST", "/v1/responses", body)
			}
		}()
		w.queued(n + 1)
		release <- struct{}{}
		second := <-ended
		if second["status"] != "incomplete" || texts(second["output"]) != "(mcp_approval_request)" {
			t.Fatalf("%v", second)
		}
		if got := w.must("GET", fmt.Sprintf("/v1/responses/%v", second["id"]), ""); got["status"] != "incomplete" {
			t.Errorf("%v", got)
		}
		release <- struct{}{}
		release <- struct{}{}
		w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"careful","conversation":%q,"input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`,
			conversation, second["output"].([]any)[0].(object)["id"]))
		w.s.WaitIdle()
		if got := w.must("GET", fmt.Sprintf("/v1/responses/%v", second["id"]), ""); got["status"] != "completed" {
			t.Errorf("%v", got)
		}
		for range 2 {
			<-begun
		}
	}
}

// queued waits until the queue of a thread was pushed to so often.
func (w *world) queued(n int) {
	w.t.Helper()
	timeline, err := w.c.Timeline(w.t.Context(), client.SubscribeOptions{From: client.Seq(1), Types: []string{string(events.QueuePushedType)}})
	w.s.Must(err)
	defer timeline.Close()
	for range n {
		_, err := timeline.Next(w.t.Context())
		w.s.Must(err)
	}
}

// Another answer to a call that was answered is refused by its name; the same one is a repeat.
func TestApproval_AnsweredBefore(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.careful()
	first := w.must("POST", "/v1/responses", `{"model":"careful","input":"both"}`)
	request := ""
	for _, o := range first["output"].([]any) {
		if o.(object)["type"] == "mcp_approval_request" {
			request = o.(object)["id"].(string)
		}
	}
	answers := func(approval, output string) string {
		return fmt.Sprintf(`{"model":"careful","previous_response_id":%q,"input":[{"type":"mcp_approval_response","approval_request_id":%q,%s},{"type":"function_call_output","call_id":"call_2","output":%q}]}`, first["id"], request, approval, output)
	}
	second := w.must("POST", "/v1/responses", answers(`"approve":true,"reason":"ok"`, `{"eur":7}`))
	if again := w.must("POST", "/v1/responses", answers(`"approve":true`, `{"eur":7}`)); again["id"] != second["id"] {
		t.Errorf("repeated: %v, want %v", again["id"], second["id"])
	}
	for name, c := range map[string]struct{ body, names, says string }{
		"another decision": {answers(`"approve":false`, `{"eur":7}`), "call_1", "another decision"},
		"another reason":   {answers(`"approve":true,"reason":"no"`, `{"eur":7}`), "call_1", "another reason"},
		"another output":   {answers(`"approve":true`, `{"eur":8}`), "call_2", "another result"},
	} {
		status, e := w.do("POST", "/v1/responses", c.body)
		if text := fmt.Sprint(e); status != http.StatusBadRequest || !strings.Contains(text, c.names) || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %v", name, status, e)
		}
	}
}
