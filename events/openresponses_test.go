package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// asItem gives what a thread holds of an item that item.create took.
func asItem(n NewItem) *Item {
	return &Item{ID: n.ID, Type: n.Type, Role: n.Role, Status: n.Status, Content: n.Content, ThreadID: "T-1", ContextID: "ctx_1", Index: 7}
}

func sameJSON(t *testing.T, got, want jsontext.Value) {
	t.Helper()
	g, w := got.Clone(), want.Clone()
	if err := errors.Join(g.Canonicalize(), w.Canonicalize()); err != nil || string(g) != string(w) {
		t.Errorf("got  %s\nwant %s (%v)", got, want, err)
	}
}

// Each kind of item goes out to Open Responses and comes back without a loss,
// and nothing of the thread goes with it: EK-3, EK-4, EK-6, EK-8, EK-10, EK-11,
// EK-13, EK-30, EK-165, EK-166..EK-171.
func TestOpenResponsesRoundTrip(t *testing.T) {
	tests := []struct{ name, open, item string }{
		{"message", `{"type":"message","id":"itm_1","role":"user","content":[{"type":"input_text","text":"hi"}]}`,
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`},
		{"pending message with an extension part", `{"type":"message","id":"itm_2","role":"assistant","status":"in_progress","content":[{"type":"output_text","text":"a"},{"type":"codex-event","output":{"n":1.50}}]}`,
			`{"type":"message","role":"assistant","status":"pending","content":[{"type":"output_text","text":"a"},{"type":"codex-event","output":{"n":1.50}}]}`},
		{"reasoning stays a part", `{"type":"message","id":"itm_3","role":"assistant","status":"completed","content":[{"type":"reasoning","summary":[]}]}`,
			`{"type":"message","role":"assistant","status":"completed","content":[{"type":"reasoning","summary":[]}]}`},
		{"call", `{"type":"function_call","id":"itm_4","call_id":"c1","name":"find","arguments":"{\"q\":[1,2]}","status":"completed"}`,
			`{"type":"action_execute","status":"completed","content":{"callId":"c1","name":"find","arguments":{"q":[1,2]}}}`},
		{"call with text that is not quite JSON", `{"type":"function_call","id":"itm_5","call_id":"c1","name":"find","arguments":"{ \"q\": 1 }"}`,
			`{"type":"action_execute","content":{"callId":"c1","name":"find","arguments":"{ \"q\": 1 }"}}`},
		{"call without arguments", `{"type":"function_call","id":"itm_6","call_id":"c1","name":"now","arguments":""}`,
			`{"type":"action_execute","content":{"callId":"c1","name":"now","arguments":""}}`},
		{"result", `{"type":"function_call_output","id":"itm_7","call_id":"c1","output":"{\"ok\":true}","status":"completed"}`,
			`{"type":"action_result","status":"completed","content":{"callId":"c1","output":{"ok":true}}}`},
		{"result that is text", `{"type":"function_call_output","id":"itm_8","call_id":"c1","output":"42 degrees"}`,
			`{"type":"action_result","content":{"callId":"c1","output":"42 degrees"}}`},
		{"failed result", `{"type":"function_call_output","id":"itm_9","call_id":"c1","output":"no such city","status":"incomplete"}`,
			`{"type":"action_result","status":"completed","content":{"callId":"c1","output":"no such city","isError":true}}`},
		{"reference", `{"type":"item_reference","id":"itm_1"}`, `{"type":"item_reference","content":{"itemId":"itm_1"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			item, err := FromOpenResponses(jsontext.Value(tt.open))
			if err != nil {
				t.Fatal(err)
			}
			var want NewItem
			if err := json.Unmarshal([]byte(tt.item), &want); err != nil {
				t.Fatal(err)
			}
			if item.Type != want.Type || item.Role != want.Role || item.Status != want.Status {
				t.Errorf("got %+v, want %+v", item, want)
			}
			sameJSON(t, item.Content, want.Content)
			back, err := ToOpenResponses(asItem(item))
			if err != nil {
				t.Fatal(err)
			}
			sameJSON(t, back, jsontext.Value(tt.open))
			for _, own := range []string{"threadId", "contextId", "index", "T-1", "ctx_1"} {
				if strings.Contains(string(back), own) {
					t.Errorf("%s goes out: %s", own, back)
				}
			}
		})
	}
}

// Reasoning items that come in become parts of a message (EK-172); a text alone
// is a message's content; an item without a type is a message.
func TestFromOpenResponsesNormalises(t *testing.T) {
	tests := []struct{ name, open, content string }{
		{"reasoning item", `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"thinking"}],"encrypted_content":"x"}`,
			`[{"type":"reasoning","summary":[{"type":"summary_text","text":"thinking"}],"encrypted_content":"x"}]`},
		{"text of a user", `{"role":"user","content":"hi"}`, `[{"type":"input_text","text":"hi"}]`},
		{"text of an assistant", `{"role":"assistant","content":"hi"}`, `[{"type":"output_text","text":"hi"}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			item, err := FromOpenResponses(jsontext.Value(tt.open))
			if err != nil {
				t.Fatal(err)
			}
			if item.Type != Message {
				t.Errorf("type %s", item.Type)
			}
			sameJSON(t, item.Content, jsontext.Value(tt.content))
		})
	}
}

// What a thread has no place for is refused, and so is what is no item (EK-9).
func TestFromOpenResponsesRefuses(t *testing.T) {
	for _, raw := range []string{`{"type":"web_search_call","id":"x"}`, `{"type":"message"}`,
		`{"type":"function_call","name":"x","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c"}`, `{"type":"item_reference"}`, `[]`, `{`, `"hi"`} {
		item, err := FromOpenResponses(jsontext.Value(raw))
		if err == nil || AsError(err).Code != InvalidRequest {
			t.Errorf("%s gives %+v, %v", raw, item, err)
		}
	}
}
