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
			MessageID: to(int64(1)),
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

// A change of a message is told by its own event, and a move by its own; a move
// alone makes no edit.
func TestUpdateMessage_EditsAndMoves(t *testing.T) {
	move := fact{events.ItemStatusChangedType, "itm_t", "", events.ItemStatusChanged{From: events.ItemStored, To: events.ItemPending}}
	const status = events.MessagePending
	for name, c := range map[string]struct {
		do   events.MessageUpdates
		edit *events.MessageEdited
	}{
		"nothing else": {events.MessageUpdates{Status: status}, nil},
		"its text":     {events.MessageUpdates{Status: status, Content: to("y")}, &events.MessageEdited{Output: raw(`"y"`)}},
		"its metadata": {events.MessageUpdates{Status: status, Metadata: raw(`{"a":1}`)}, &events.MessageEdited{Metadata: raw(`{"a":1}`)}},
		"its silence":  {events.MessageUpdates{Status: status, Silent: to(true)}, &events.MessageEdited{Silent: to(true), WasSilent: to(false)}},
		"its outcome":  {events.MessageUpdates{Status: status, ToolStatus: events.ToolSuccess}, &events.MessageEdited{IsError: to(false)}},
	} {
		k := begun(t)
		k.do(events.AddMessage{ID: "itm_t", Role: events.FromTool, ToolCallID: "c1", Content: to("x")})
		expected := []fact{move}
		if c.edit != nil {
			c.edit.Index = k.state.NextItem - 1
			expected = []fact{{events.MessageEditedType, "itm_t", "", *c.edit}, move}
		}
		t.Run(name, func(t *testing.T) {
			want(t, k.do(events.UpdateMessage{MessageID: "itm_t", MessageUpdates: c.do}), expected...)
		})
	}
	k := begun(t)
	k.do(events.AddMessage{ID: "itm_f", Role: events.FromUser, Content: to("x"), Status: events.MessageFailed})
	if made := k.refuse(events.UpdateMessage{MessageID: "itm_f", MessageUpdates: events.MessageUpdates{Status: status}}); made.Code != events.IllegalTransition {
		t.Errorf("what has failed became pending: %v", made)
	}
}

// The text of a message is changed as its kind has it; a call that stands alone has
// none, and only a result has an outcome.
func TestUpdateMessage_Kinds(t *testing.T) {
	k := begun(t)
	k.do(events.AddMessage{ID: "itm_a", Role: events.FromAssistant, Content: to("x")})
	k.do(events.CreateItem{Item: events.NewItem{ID: "itm_c", Type: events.ActionExecute, Content: raw(`{"callId":"c","name":"n","arguments":{}}`)}})
	update := func(id string, d events.MessageUpdates) events.UpdateMessage {
		return events.UpdateMessage{MessageID: id, MessageUpdates: d}
	}
	for id, content := range map[string]string{"itm_user": `[{"type":"input_text","text":"y"}]`, "itm_a": `[{"type":"output_text","text":"y"}]`} {
		i, _ := k.state.item(id)
		want(t, k.do(update(id, events.MessageUpdates{Content: to("y")})), fact{events.MessageEditedType, id, "", events.MessageEdited{Index: i.Index, Content: raw(content)}})
	}
	wantRefusal(t, k.refuse(update("itm_c", events.MessageUpdates{Content: to("y")})), events.InvalidRequest, events.ErrorDetails{Path: "/data/content"})
	wantRefusal(t, k.refuse(update("itm_c", events.MessageUpdates{ToolStatus: events.ToolError})), events.InvalidRequest, events.ErrorDetails{Path: "/data/toolStatus"})
	wantRefusal(t, k.refuse(update("itm_9", events.MessageUpdates{Content: to("y")})), events.NotFound, events.ErrorDetails{Entity: "message", ID: "itm_9"})
}

// The calls of a message are hidden and shown with it, but for those that are so
// already or were deleted; an edit that says nothing of it leaves them alone.
func TestUpdateMessage_SilencesItsCalls(t *testing.T) {
	k := begun(t)
	three := twoCalls[:len(twoCalls)-1] + `,{"id":"c3","function":{"name":"find","arguments":"y"}}]`
	made := k.do(events.AddMessage{ID: "itm_m", Role: events.FromAssistant, ToolCalls: three})
	first, second, third := made[1], made[2], made[3]
	k.do(events.EditMessage{ItemID: first.Subject, Silent: to(true)})
	k.do(events.DeleteMessage{ItemID: second.Subject})
	silent := func(yes *bool) []events.Event {
		return k.do(events.UpdateMessage{MessageID: "itm_m", MessageUpdates: events.MessageUpdates{Silent: yes, Metadata: raw(`{"a":1}`)}})
	}
	edited := func(e events.Event, is bool) fact {
		return fact{events.MessageEditedType, e.Subject, "", events.MessageEdited{Index: e.Data.(events.ItemCreated).Index, Silent: &is, WasSilent: to(!is)}}
	}
	want(t, silent(to(true))[1:], edited(third, true))
	want(t, silent(to(false))[1:], edited(first, false), edited(third, false))
	if made := silent(nil); len(made) != 1 {
		t.Errorf("it made %s", kinds(made))
	}
}

// A message goes with its own calls, which are no messages of their own, and not with
// what only answers it.
func TestMessage_CallsAndAnswers(t *testing.T) {
	k := begun(t)
	made := k.do(events.AddMessage{ID: "itm_m", Role: events.FromAssistant, ToolCalls: twoCalls})
	call := made[1].Subject
	wantRefusal(t, k.refuse(events.UpdateMessage{MessageID: call, MessageUpdates: events.MessageUpdates{Silent: to(true)}}),
		events.NotFound, events.ErrorDetails{Entity: "message", ID: call})
	answer := message("itm_answer", "x")
	answer.Item.ParentItemID = "itm_m"
	k.do(answer)
	if gone := k.do(events.DeleteMessage{ItemID: "itm_m"}); len(gone) != 3 {
		t.Errorf("it made %s", kinds(gone))
	}
	k.do(events.UpdateMessage{MessageID: "itm_answer", MessageUpdates: events.MessageUpdates{Silent: to(true)}})
}
