package runtime

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// Nobody is asked about a call that cannot be made: its arguments are checked first, and are an
// error of the call alone, of a model and of a caller alike.
func TestApproval_ArgumentsAreCheckedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pay := tool{ToolSpec{Name: "pay", Manual: true, Parameters: events.JSON(`{}`)}, func(context.Context, *ToolInput) (ToolResult, error) { return Done(nil), nil }}
	fit := tool{ToolSpec{Name: "fit", Manual: true, Parameters: events.JSON(`"refuse"`)}, pay.call}
	bad := []string{`[1]`, `null`, `"text"`, `{"x":`, `{"x":1,"x":2}`, `{"x":"\ud83d"}`, `{"x":{"__proto__":1}}`, `{"a":{"constructor":{"prototype":1}}}`, "\xff"}
	var calls []ToolCall
	for i, arguments := range bad {
		calls = append(calls, call(fmt.Sprint("c", i), "pay", arguments))
	}
	calls = append(calls, call("fits", "fit", `{"x":"seven"}`))
	w.agent("a", script(says("x", append(calls, call("good", "pay", `{"x":{"constructor":1}}`))...), says("y")), pay, fit)
	w.work(Config{})
	id, execution := w.begin("a", "hello")
	all := w.until(id, func(e *events.Event) bool { return e.Type == events.RunParkedType })
	for _, e := range all {
		if d, ok := e.Data.(events.ApprovalRequested); ok && d.CallID != "good" {
			t.Errorf("call %s is asked about, with %s", d.CallID, d.Arguments)
		}
	}
	queued := w.must("tool.queue", id, events.QueueTool{Name: "fit", Arguments: events.JSON(`{}`)}).Result.QueuedID
	w.must("approval.grant", id, events.GrantApproval{CallID: "good"})
	failed := map[string]bool{}
	for _, e := range w.finished(id, execution) {
		switch d := e.Data.(type) {
		case events.PartUpdated:
			for _, c := range append(calls, ToolCall{CallID: queued}) {
				if strings.Contains(string(d.Part), `"toolCallId":"`+c.CallID+`"`) && strings.Contains(string(d.Part), "output-error") {
					failed[c.CallID] = true
				}
			}
		case events.ApprovalRequested:
			if d.CallID == queued {
				t.Errorf("the queued call is asked about, with %s", d.Arguments)
			}
		}
	}
	for _, c := range append(calls, ToolCall{CallID: queued}) {
		if !failed[c.CallID] {
			t.Errorf("call %s with %s has no error", c.CallID, c.Arguments)
		}
	}
	status, text, _ := endOf(t, w.finished(id, execution))
	if status != events.ExecutionCompleted {
		t.Errorf("the run ended %s: %s", status, text)
	}
}

// What a model writes as arguments is an object, or a text that no tool accepts.
func TestCallArguments(t *testing.T) {
	for said, want := range map[string]string{
		"": `{}`, " \n": `{}`, `{ "a" : 1 }`: `{"a":1}`, `{"a":{"constructor":{}}}`: `{"a":{"constructor":{}}}`,
		`[1]`: `"[1]"`, `{"a":`: `"{\"a\":"`, `{"a":1,"a":1}`: `"{\"a\":1,\"a\":1}"`, `{"a":1}{}`: `"{\"a\":1}{}"`,
		`{"a":"\udc00"}`: `"{\"a\":\"\\udc00\"}"`, `{"\u005f_proto__":1}`: `"{\"\\u005f_proto__\":1}"`, "{\xff": `"{` + "\uFFFD" + `"`,
	} {
		got := CallArguments(said)
		if string(got) != want || !jsontext.Value(got).IsValid() {
			t.Errorf("%s: %s, not %s", said, got, want)
		}
	}
}
