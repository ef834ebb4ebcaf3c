package events

import (
	"errors"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
)

// answer decodes a commit as the log returns it and replies to a command from it.
func answer(t *testing.T, list []Event, commandID string) *Reply {
	t.Helper()
	c := commitOf(t, list)
	c.Seq = 42
	back, err := reread(c)
	if err != nil {
		t.Fatal(err)
	}
	return ReplyOf(back, commandID)
}

func TestReplyOf_OneCommand(t *testing.T) {
	list := turn()
	got := answer(t, list, cmdID)
	want := &Reply{ThreadID: thread, Version: 12, Seq: 42, Time: list[0].Time.ISO(), Result: &Result{
		ContextID: ctxID, ItemID: replyID, ExecutionID: execID, ReactionItemID: replyID, StepID: stepID, Key: PartKey(stepID, 0),
	}}
	for _, e := range list {
		want.Events = append(want.Events, EventRef{ID: e.ID, Type: e.Type, Version: e.Version})
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Each entity that a command may create is named in its result.
func TestReplyOf_NamesCreatedEntities(t *testing.T) {
	for _, s := range samples() {
		if row, _ := Lookup(s.of); row.Transient {
			continue
		}
		var want *Result
		switch s.of {
		case ContextCreatedType, ContextResolvedType:
			want = &Result{ContextID: ctxID}
		case StateChangedType:
			want = &Result{Life: 2, Size: new(int64(1))}
		case StateRenewedType, LifecycleDestroyedType:
			want = &Result{Life: 2}
		case SessionStartedType, SessionCompletedType:
			want = &Result{SessionID: exampleSession}
		case ItemCreatedType: // a message that steers a run
			want = &Result{ItemID: itemID, ExecutionID: execID, ReactionItemID: replyID}
		case ExecutionCreatedType:
			want = &Result{ExecutionID: execID, ReactionItemID: replyID}
		case StepCreatedType:
			want = &Result{StepID: stepID}
		case PartCreatedType, PartUpdatedType:
			want = &Result{Key: s.subject}
		case QueuePushedType:
			want = &Result{Queued: "q-1", QueuedID: "q-1", ExecutionID: execID, ReactionItemID: replyID}
		case EffectScheduledType:
			want = &Result{EffectID: effectID}
		case EffectCancelledType:
			want = &Result{Cancelled: true}
		case DefinitionChangedType:
			want = &Result{Definitions: []DefinitionChange{{Kind: AgentKind, Name: "triage", Outcome: DefinitionUpdated, Version: 2}}}
		case FileWrittenType:
			made := s.data.(FileWritten).Record(thread, start)
			made.Stamp = Stamp{Version: 1, Seq: 42}
			want = &Result{File: &made}
		case RelationshipAddedType: // as the parent of a fork
			want = &Result{ChildID: s.data.(RelationshipAdded).ThreadID}
		case RunRequestedType:
			want = &Result{ChildID: s.data.(RunRequested).Handoff.ThreadID}
		case WriterClaimedType, WriterRenewedType:
			want = &Result{Until: exampleUntil}
		case ShareCreatedType:
			made := s.data.(ShareCreated)
			want = &Result{ShareID: made.ID, ShareDigest: made.Digest}
		case DirectoryCreatedType:
			made := s.data.(DirectoryCreated).Record(thread, start)
			made.Stamp = Stamp{Version: 1, Seq: 42}
			want = &Result{File: &made}
		}
		if got := answer(t, stream(s), cmdID).Result; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", s.of, got, want)
		}
	}
}

// Several commands that shared a commit have their own replies.
func TestReplyOf_SharedCommit(t *testing.T) {
	list := turn()
	for i := range list {
		list[i].CommandID = []string{"a", "b", "b", "c"}[min(i, 3)]
	}
	for id, want := range map[string]struct {
		events  int
		version int64
		result  *Result
	}{
		"a": {1, 1, nil},
		"b": {2, 3, &Result{ContextID: ctxID, ItemID: itemID}},
		"c": {9, 12, &Result{ItemID: replyID, ExecutionID: execID, ReactionItemID: replyID, StepID: stepID, Key: PartKey(stepID, 0)}},
	} {
		got := answer(t, list, id)
		if len(got.Events) != want.events || got.Version != want.version || got.Seq != 42 || !reflect.DeepEqual(got.Result, want.result) {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
	if got := answer(t, list, "nobody"); got.Version != 0 || got.Result != nil || got.Events == nil {
		t.Errorf("a command that made nothing: %+v", got)
	}
}

// The commands of a thread.commit each have their result, in order.
func TestReplyOf_ThreadCommit(t *testing.T) {
	list := turn()
	for i := range list {
		list[i].CommandIndex = []int{1, 1, 2, 4}[min(i, 3)]
	}
	got := answer(t, list, cmdID)
	want := &Result{Results: []Result{
		{ContextID: ctxID},
		{ItemID: itemID},
		{},
		{ItemID: replyID, ExecutionID: execID, ReactionItemID: replyID, StepID: stepID, Key: PartKey(stepID, 0)},
	}}
	if len(got.Events) != 12 || got.Version != 12 || !reflect.DeepEqual(got.Result, want) {
		t.Errorf("%+v, want %+v", got.Result, want)
	}
}

// A reply has the contract's field names, and the list is always present.
func TestReply_FieldNames(t *testing.T) {
	reply := answer(t, stream(samples()[2]), "nobody")
	got, err := json.Marshal(reply, json.Deterministic(true))
	if want := `{"threadId":"` + thread + `","version":0,"seq":42,"events":[]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// Commands and queries are found by the contract's names, and decoded strictly.
func TestLookup_CommandsAndQueries(t *testing.T) {
	for _, c := range Commands() {
		got, ok := LookupCommand(c.Name)
		if !ok || got.Name != c.Name {
			t.Errorf("%s is not found", c.Name)
		}
		for _, made := range c.Events {
			if _, ok := Lookup(made); !ok {
				t.Errorf("%s makes %s, which is in no catalog", c.Name, made)
			}
		}
		if v, err := c.Decode(raw("{}")); err != nil || reflect.TypeOf(v) != reflect.TypeOf(c.New()) {
			t.Errorf("%s reads {} as %T: %v", c.Name, v, err)
		}
		for _, bad := range []string{`{"nonsense":1}`, `[]`, `{`, ``} {
			if v, err := c.Decode(raw(bad)); err == nil {
				t.Errorf("%s takes %s as %#v", c.Name, bad, v)
			}
		}
	}
	for _, q := range Queries() {
		if got, ok := LookupQuery(q.Name); !ok || got.Name != q.Name {
			t.Errorf("%s is not found", q.Name)
		}
	}
	for _, name := range []string{"thread.create", "thread.resolve", "thread.status", "thread.update", "thread.delete", "thread.commit",
		"context.create", "context.status", "context.set", "item.create", "item.status", "message.edit", "message.delete",
		"execution.create", "execution.status", "step.create", "step.status", "part.put", "definition.apply"} {
		if _, ok := LookupCommand(name); !ok {
			t.Errorf("no command %s", name)
		}
	}
	for _, name := range []string{"thread.get", "thread.list", "context.get", "context.list", "item.get", "item.list",
		"execution.get", "execution.list", "step.list", "part.list", "event.list", "definition.get", "definition.list"} {
		if _, ok := LookupQuery(name); !ok {
			t.Errorf("no query %s", name)
		}
	}
	if _, ok := LookupCommand("thread.rename"); ok {
		t.Error("a command is found that nobody declared")
	}
}

// EK-50: the user's message of the fixture is accepted. EK-39..EK-41: required fields of a
// message; EK-38: those of the others; EK-43..EK-45, EK-48: the types of parts; EK-173,
// EK-177: those of extensions.
func TestNewItem_Check(t *testing.T) {
	for name, c := range map[string]struct {
		item NewItem
		path string // of the refusal; "ok": none
	}{
		"EK-50":                {NewItem{ID: "itm_user_01", Type: Message, Role: User, CreatedAt: "2026-02-20T10:00:00.000Z", Content: raw(`[{"type":"input_text","text":"Hi"}]`)}, "ok"},
		"no parts":             {NewItem{Type: Message, Role: Assistant, Content: raw(`[]`)}, "ok"},
		"reasoning":            {NewItem{Type: Message, Role: Assistant, Content: raw(`[{"type":"reasoning","text":"hm"}]`)}, "ok"},
		"EK-177":               {NewItem{Type: Message, Role: Assistant, Content: raw(`[{"type":"codex-event","state":"output-available","output":{"threadId":"t1","turnId":"turn1"}}]`)}, "ok"},
		"call":                 {NewItem{Type: ActionExecute, Content: raw(`{"callId":"c","name":"n","arguments":null}`)}, "ok"},
		"result":               {NewItem{Type: ActionResult, Content: raw(`{"callId":"c","output":1,"isError":true}`)}, "ok"},
		"reference":            {NewItem{Type: ItemReference, Content: raw(`{"itemId":"itm_1"}`)}, "ok"},
		"no role":              {NewItem{Type: Message, Content: raw(`[]`)}, "/role"},
		"no content":           {NewItem{Type: Message, Role: User}, "/content"},
		"text for parts":       {NewItem{Type: Message, Role: User, Content: raw(`"Hi"`)}, "/content"},
		"no type":              {NewItem{Type: Message, Role: User, Content: raw(`[{"text":"Hi"}]`)}, "/content/0/type"},
		"no text":              {NewItem{Type: Message, Role: User, Content: raw(`[{"type":"output_text","text":"a"},{"type":"output_text"}]`)}, "/content/1/text"},
		"no refusal":           {NewItem{Type: Message, Role: User, Content: raw(`[{"type":"refusal"}]`)}, "/content/0/refusal"},
		"a call with a role":   {NewItem{Type: ActionExecute, Role: User, Content: raw(`{"callId":"c","name":"n","arguments":{}}`)}, "/role"},
		"a call without an id": {NewItem{Type: ActionExecute, Content: raw(`{"name":"n","arguments":{}}`)}, "/content/callId"},
		"no arguments":         {NewItem{Type: ActionExecute, Content: raw(`{"callId":"c","name":"n"}`)}, "/content/arguments"},
		"no output":            {NewItem{Type: ActionResult, Content: raw(`{"callId":"c"}`)}, "/content/output"},
		"isError of text":      {NewItem{Type: ActionResult, Content: raw(`{"callId":"c","output":1,"isError":"yes"}`)}, "/content/isError"},
		"no item":              {NewItem{Type: ItemReference, Content: raw(`{}`)}, "/content/itemId"},
	} {
		err := c.item.Check()
		var e *Error
		switch {
		case c.path == "ok" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.path != "ok" && (!errors.As(err, &e) || e.Code != InvalidRequest || e.Details == nil || e.Details.Path != c.path):
			t.Errorf("%s: %v, want a fault at %s", name, err, c.path)
		}
	}
}

// A thread.commit of one command replies with a list, too.
func TestReplyOf_ThreadCommitOfOne(t *testing.T) {
	list := turn()
	for i := range list {
		list[i].CommandIndex = 1
	}
	if got := answer(t, list[2:3], cmdID); got.Result == nil || len(got.Result.Results) != 1 {
		t.Errorf("%+v", got.Result)
	}
}
