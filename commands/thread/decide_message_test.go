package thread

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

const twoCalls = `[{"id":"c1","function":{"name":"find","arguments":"{\"a\":1}"}},{"id":"c2","function":{"name":"find","arguments":"x"}}]`

// A message is one item, and one for each of its calls, which say whose they are
// (SA-46, C-9).
func TestAddMessage(t *testing.T) {
	k := begun(t)
	main, place := k.state.ContextID(), k.state.NextItem
	made := k.do(events.AddMessage{
		ID: "itm_m", Role: events.FromAssistant, Content: to("hm"), ToolCalls: twoCalls, Depth: to(int64(2)), Silent: true,
		Metadata: raw(`{"a":1}`), ParentID: "itm_user", Status: events.MessageFailed,
	})
	of := place
	call := func(n int, content string) fact {
		return fact{events.ItemCreatedType, made[n].Subject, "", events.ItemCreated{
			ID: made[n].Subject, ContextID: main, Index: place + int64(n), Type: events.ActionExecute, Status: events.ItemCompleted,
			Content: raw(content), ParentItemID: "itm_m", Depth: 2, Silent: true, CallOf: &of,
		}}
	}
	want(t, made,
		fact{events.ItemCreatedType, "itm_m", "", events.ItemCreated{
			ID: "itm_m", ContextID: main, Index: place, Type: events.Message, Role: events.Assistant, Status: events.ItemCompleted,
			Content: raw(`[{"type":"output_text","text":"hm"}]`), ParentItemID: "itm_user", Depth: 2, Silent: true, Metadata: raw(`{"a":1}`),
		}},
		call(1, `{"callId":"c1","name":"find","arguments":{"a":1}}`), call(2, `{"callId":"c2","name":"find","arguments":"x"}`),
		fact{events.MessageEditedType, "itm_m", "", events.MessageEdited{Index: place, Failed: to(true)}},
	)
	// What a message takes with it, also after a snapshot.
	k.state = mustDecode(t, encoded(t, k.state))
	gone := k.do(events.DeleteMessage{ItemID: "itm_m"})
	if len(gone) != 3 {
		t.Errorf("%d events hide a message and its two calls", len(gone))
	}
	for n, e := range gone {
		if d, ok := e.Data.(events.MessageDeleted); !ok || d.Index != place+int64(n) {
			t.Errorf("event %d is %+v", n, e)
		}
	}
	wantRefusal(t, k.refuse(events.UpdateMessage{MessageID: "itm_m", MessageUpdates: events.MessageUpdates{Content: to("x")}}),
		events.NotFound, events.ErrorDetails{Entity: "message", ID: "itm_m"})
	wantRefusal(t, k.refuse(events.AddMessage{Role: events.FromAssistant, ToolCalls: "x"}), events.InvalidRequest, events.ErrorDetails{Path: "/data/toolCalls"})
}

func mustDecode(t *testing.T, b []byte) *State {
	t.Helper()
	s, err := DecodeState(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An update changes what it names, each thing by its own event (SA-49, C-7).
func TestUpdateMessage(t *testing.T) {
	k := begun(t)
	k.do(events.AddMessage{ID: "itm_t", Role: events.FromTool, ToolCallID: "c1", Content: to("x")})
	k.do(message("itm_ref", "x"))
	place := k.state.NextItem - 2
	u := func(d events.MessageUpdates) events.UpdateMessage {
		return events.UpdateMessage{MessageID: "itm_t", MessageUpdates: d}
	}
	want(t, k.do(u(events.MessageUpdates{Content: to("y"), ToolStatus: events.ToolError, Status: events.MessageFailed, Silent: to(true)})),
		fact{events.MessageEditedType, "itm_t", "", events.MessageEdited{
			Index: place, Output: raw(`"y"`), IsError: to(true), Silent: to(true), WasSilent: to(false), Failed: to(true),
		}},
		fact{events.ItemStatusChangedType, "itm_t", "", events.ItemStatusChanged{From: events.ItemStored, To: events.ItemCompleted}},
	)
	want(t, k.do(u(events.MessageUpdates{Status: events.MessageCompleted})),
		fact{events.MessageEditedType, "itm_t", "", events.MessageEdited{Index: place, Failed: to(false)}})
	want(t, k.do(u(events.MessageUpdates{Status: events.MessageCompleted})), // nothing is left to change, and the command is recorded
		fact{events.MessageEditedType, "itm_t", "", events.MessageEdited{Index: place}})
	wantRefusal(t, k.refuse(u(events.MessageUpdates{})), events.InvalidRequest, events.ErrorDetails{Path: "/data"})
	k.do(events.CreateItem{Item: events.NewItem{ID: "itm_r", Type: events.ItemReference, Content: raw(`{"itemId":"itm_t"}`)}})
	wantRefusal(t, k.refuse(events.UpdateMessage{MessageID: "itm_r", MessageUpdates: events.MessageUpdates{Silent: to(true)}}),
		events.NotFound, events.ErrorDetails{Entity: "message", ID: "itm_r"})
}

// SA-53: what is recorded names an execution of the thread, or none.
func TestRecordTrace(t *testing.T) {
	k := begun(t)
	line := events.RecordTrace{Kind: events.TraceLog, Text: "x", Level: events.LogWarn, ExecutionID: "exe_1", SpanID: "stp_1", Data: raw(`1`)}
	want(t, k.do(line), fact{events.TraceRecordedType, "exe_1", "exe_1", events.TraceRecorded{
		Kind: "log", Text: "x", Level: "warn", ExecutionID: "exe_1", SpanID: "stp_1", Data: raw(`1`),
	}})
	if made := k.do(events.RecordTrace{Kind: events.TraceLog, Text: "x"}); made[0].Subject != k.thread || made[0].Correlation != "" {
		t.Errorf("%+v", made[0])
	}
	line.ExecutionID = "exe_b"
	wantRefusal(t, k.refuse(line), events.NotFound, events.ErrorDetails{Entity: "execution", ID: "exe_b"})
}
