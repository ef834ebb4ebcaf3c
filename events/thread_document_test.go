package events

import (
	"testing"

	"github.com/go-json-experiment/json"
)

// Every kind of item has its message in a document, with the fields of Amp and no others.
func TestDocumentMessageOf(t *testing.T) { // AM-27 AM-28 AM-29 AM-116
	const micros = 1771581600123456
	call := func(id, name, arguments string) *Item {
		return &Item{Type: ActionExecute, Content: JSON(`{"callId":"` + id + `","name":"` + name + `","arguments":` + arguments + `}`), CallOf: new(int64)}
	}
	for name, c := range map[string]struct {
		item   Item
		calls  []*Item
		elided int
		want   string
	}{
		"text of a user": {Item{Type: Message, Role: User, Content: raw(`[{"type":"input_text","text":"Hi"}]`)}, nil, 0,
			`{"role":"user","content":[{"type":"text","text":"Hi"}],"createdAt":1771581600123}`},
		"no text": {Item{Type: Message, Role: User, Content: raw(`[{"type":"input_text","text":""}]`)}, nil, 0,
			`{"role":"user","content":[{"type":"text","text":""}],"createdAt":1771581600123}`},
		"no parts": {Item{Type: Message, Role: Assistant, Content: raw(`[]`)}, nil, 0,
			`{"role":"assistant","content":[],"createdAt":1771581600123}`},
		"system": {Item{Type: Message, Role: System, Content: raw(`[{"type":"input_text","text":"Be brief"}]`)}, nil, 0,
			`{"role":"info","content":[{"type":"text","text":"Be brief"}],"createdAt":1771581600123}`},
		"developer": {Item{Type: Message, Role: Developer, Content: raw(`[{"type":"input_text","text":"Be brief"}]`)}, nil, 0,
			`{"role":"info","content":[{"type":"text","text":"Be brief"}],"createdAt":1771581600123}`},
		"images": {Item{Type: Message, Role: User, Content: raw(`[{"type":"input_image","image_url":"https://example.com/a.png"},{"type":"input_image","image_url":"data:image/png;base64,aGk="},{"type":"input_image","file_id":"f"}]`)}, nil, 0,
			`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"image","source":{"type":"base64","mediaType":"image/png","data":"aGk="}},{"type":"part","part":{"type":"input_image","file_id":"f"}}],"createdAt":1771581600123}`},
		"thinking and refusal": {Item{Type: Message, Role: Assistant, Content: raw(`[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]},{"type":"reasoning","text":"c"},{"type":"reasoning","content":[{"text":"d"}]},{"type":"refusal","refusal":"No"}]`)}, nil, 0,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"a\nb"},{"type":"thinking","thinking":"c"},{"type":"thinking","thinking":"d"},{"type":"text","text":"No"}],"createdAt":1771581600123}`},
		"calls, each once": {Item{Type: Message, Role: Assistant, Content: raw(`[{"type":"tool-find","toolCallId":"c1","input":{"a":0},"output":1},{"type":"output_text","text":"Here"}]`)},
			[]*Item{call("c1", "find", `{"a":1}`), call("c2", "send", `"x"`)}, 0,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"find","input":{"a":1}},{"type":"text","text":"Here"},{"type":"tool_use","id":"c2","name":"send","input":"x"}],"createdAt":1771581600123}`},
		"a call that is only a part": {Item{Type: Message, Role: Assistant, Content: raw(`[{"type":"tool-find","toolCallId":"c1","input":{"a":0}}]`)}, nil, 0,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"find","input":{"a":0}}],"createdAt":1771581600123}`},
		"a call without a name or an id": {Item{Type: Message, Role: Assistant, Content: raw(`[{"type":"tool-","toolCallId":"c1"},{"type":"tool-find"}]`)}, nil, 0,
			`{"role":"assistant","content":[{"type":"part","part":{"type":"tool-","toolCallId":"c1"}},{"type":"part","part":{"type":"tool-find"}}],"createdAt":1771581600123}`},
		"thinking of nothing": {Item{Type: Message, Role: Assistant, Content: raw(`[{"type":"reasoning","content":[{"text":""}],"summary":[{"text":"s"}]}]`)}, nil, 0,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"s"}],"createdAt":1771581600123}`},
		"an elided call": {Item{Type: Message, Role: Assistant, Content: raw(`[]`)}, []*Item{call("c1", "find", `""`)}, 1,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"find","elided":true}],"createdAt":1771581600123}`},
		"a call of its own": {Item{Type: ActionExecute, Content: raw(`{"callId":"c1","name":"find","arguments":{"a":1}}`)}, nil, 0,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"find","input":{"a":1}}],"createdAt":1771581600123}`},
		"a result": {Item{Type: ActionResult, Content: raw(`{"callId":"c1","output":{"found":3}}`)}, nil, 0,
			`{"role":"user","content":[{"type":"tool_result","toolUseID":"c1","run":{"status":"success","result":{"found":3}}}],"createdAt":1771581600123}`},
		"a failure": {Item{Type: ActionResult, Content: raw(`{"callId":"c1","output":"no such order","isError":true}`)}, nil, 0,
			`{"role":"user","content":[{"type":"tool_result","toolUseID":"c1","run":{"status":"error","error":"no such order"}}],"createdAt":1771581600123}`},
		"an unknown part": {Item{Type: Message, Role: User, Content: raw(`[{"type":"com.example.chart","rows":[1]}]`)}, nil, 0,
			`{"role":"user","content":[{"type":"part","part":{"type":"com.example.chart","rows":[1]}}],"createdAt":1771581600123}`},
		"a reference": {Item{Type: ItemReference, Content: raw(`{"itemId":"itm_1"}`)}, nil, 0, `null`},
	} {
		c.item.CreatedAtMicros = micros
		got, err := json.Marshal(DocumentMessageOf(&c.item, c.calls, c.elided), json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

// A document has the fields of Amp with their names, and those that are not set are absent.
func TestThread_Document(t *testing.T) { // AM-7 AM-8 AM-9 AM-10 AM-11 AM-12 AM-13 AM-14 AM-15 AM-16 AM-17 AM-22 AM-26
	bare := Thread{ID: exampleThread, CreatedAtMicros: 1771581600123456, Status: ThreadOpen, Stamp: Stamp{Version: 2, Seq: 7}}
	whole := bare
	whole.Title, whole.Archived, whole.Draft, whole.AutoSubmitDraft, whole.AgentMode, whole.MaxTokens = "Order 42", true, "And", true, "smart", new(int64(9))
	whole.Changes, whole.NextMessageID, whole.MainThreadID, whole.Env = 3, 5, exampleChild, raw(`{"initial":{"tags":["model:gpt-5"]}}`)
	for _, c := range []struct {
		of   Thread
		want string
	}{
		{bare, `{"v":0,"id":"` + exampleThread + `","created":1771581600123,"messages":[]}`},
		{whole, `{"v":3,"id":"` + exampleThread + `","created":1771581600123,"messages":[],"title":"Order 42","archived":true,"draft":"And","autoSubmitDraft":true,"agentMode":"smart",` +
			`"maxTokens":9,"nextMessageId":5,"mainThreadID":"` + exampleChild + `","env":{"initial":{"tags":["model:gpt-5"]}}}`},
	} {
		got, err := json.Marshal(c.of.Document(), json.Deterministic(true))
		if err != nil || string(got) != c.want {
			t.Errorf("%s (%v), want\n%s", got, err, c.want)
		}
	}
}

// A summary has every field of Amp's; a title that is not set is null.
func TestThread_Summary(t *testing.T) { // AM-95 AM-96 AM-98 AM-102
	bare := Thread{ID: exampleThread, CreatedAtMicros: 1771581600123456}
	whole := bare
	whole.Title, whole.Archived, whole.AgentMode, whole.MainThreadID, whole.Env = "Order 42", true, "smart", exampleChild, raw(`{"initial":{}}`)
	whole.Changes, whole.UserLastInteractedAt, whole.DiffStats = 3, 1771581700000, &DiffStats{Added: 1, Changed: 2, Deleted: 3}
	for _, c := range []struct {
		of   Thread
		want string
	}{
		{bare, `{"id":"` + exampleThread + `","v":0,"created":1771581600123,"title":null,"userLastInteractedAt":1771581600123,"parentRelationships":[],` +
			`"summaryStats":{"diffStats":{"added":0,"changed":0,"deleted":0},"messageCount":4}}`},
		{whole, `{"id":"` + exampleThread + `","v":3,"created":1771581600123,"title":"Order 42","userLastInteractedAt":1771581700000,"env":{"initial":{}},"mainThreadID":"` + exampleChild + `",` +
			`"parentRelationships":[],"summaryStats":{"diffStats":{"added":1,"changed":2,"deleted":3},"messageCount":4},"agentMode":"smart","archived":true}`},
	} {
		got, err := json.Marshal(c.of.Summary(4), json.Deterministic(true))
		if err != nil || string(got) != c.want {
			t.Errorf("%s (%v), want\n%s", got, err, c.want)
		}
	}
}
