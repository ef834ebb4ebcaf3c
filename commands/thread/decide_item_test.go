package thread

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// An item is counted, and stands in a context of its thread (EK-31, EK-36,
// EK-37, EK-161).
func TestCreateItem(t *testing.T) {
	k := begun(t)
	k.do(events.CreateContext{ID: "ctx_a"})
	main := k.state.ContextID()
	full := events.NewItem{
		ID: "itm_a", Type: events.Message, Role: events.Assistant, Status: events.ItemPending, Channel: events.Web, Content: raw(`[]`),
		CreatedAt: "2026-02-20T12:00:00.000Z", ParentItemID: "itm_user", Depth: to(int64(2)), Silent: true, Metadata: raw(`{"k":1}`),
	}
	want(t, k.do(events.CreateItem{ContextID: "ctx_a", Item: full}), fact{events.ItemCreatedType, "itm_a", "", events.ItemCreated{
		ID: "itm_a", ContextID: "ctx_a", Index: 1, Type: events.Message, Role: events.Assistant, Status: events.ItemPending, Channel: events.Web,
		Content: raw(`[]`), CreatedAt: full.CreatedAt, ParentItemID: "itm_user", Depth: 2, Silent: true, Metadata: raw(`{"k":1}`),
		MessageID: to(int64(1)),
	}})
	for i, kind := range []events.ItemType{events.Message, events.ActionExecute, events.ActionResult, events.ItemReference} {
		made := k.do(events.CreateItem{Item: events.NewItem{Type: kind}})
		id := events.DeriveID(events.ItemPrefix, k.now, tenant, threadID, made[0].CommandID, 1)
		created := events.ItemCreated{ID: id, ContextID: main, Index: int64(i) + 2, Type: kind, Status: events.ItemStored}
		if kind == events.Message {
			created.MessageID = to(int64(2))
		}
		want(t, made, fact{events.ItemCreatedType, id, "", created})
	}
}

func TestCreateItem_Refusals(t *testing.T) {
	k := begun(t)
	k.do(message("itm_gone", "x"))
	k.do(events.DeleteMessage{ItemID: "itm_gone"})
	item := func(change func(*events.CreateItem)) events.CreateItem {
		c := message("", "x")
		change(&c)
		return c
	}
	for _, c := range []struct {
		create  events.CreateItem
		code    events.Code
		details events.ErrorDetails
	}{
		{message("itm_user", "x"), events.AlreadyExists, events.ErrorDetails{Entity: "item", ID: "itm_user"}},
		{message("itm_gone", "x"), events.AlreadyExists, events.ErrorDetails{Entity: "item", ID: "itm_gone"}},
		{item(func(c *events.CreateItem) { c.ContextID = "ctx_b" }), events.NotFound, events.ErrorDetails{Entity: "context", ID: "ctx_b"}},
		{item(func(c *events.CreateItem) { c.Item.ParentItemID = "itm_b" }), events.NotFound, events.ErrorDetails{Entity: "item", ID: "itm_b"}},
		{item(func(c *events.CreateItem) { c.Item.ParentItemID = "itm_gone" }), events.NotFound, events.ErrorDetails{Entity: "item", ID: "itm_gone"}},
		{item(func(c *events.CreateItem) { c.Item.CreatedAt = "2026-02-30T10:00:00Z" }), events.InvalidRequest, events.ErrorDetails{Path: "/data/item/createdAt"}},
	} {
		wantRefusal(t, k.refuse(c.create), c.code, c.details)
	}
}

// An edit changes what it names and leaves the status alone; a deleted item is
// gone for every command, and its place is not given again (C-7).
func TestMessage_EditAndDelete(t *testing.T) {
	k := begun(t)
	main := k.state.ContextID()
	edit := events.EditMessage{ItemID: "itm_user", Content: raw(`[{"type":"input_text","text":"Y"}]`), Metadata: raw(`{"k":1}`), Silent: to(true)}
	want(t, k.do(edit), fact{events.MessageEditedType, "itm_user", "", events.MessageEdited{Content: edit.Content, Metadata: edit.Metadata, Silent: edit.Silent, WasSilent: to(false)}})
	if item, _ := k.state.item("itm_user"); item.Status != events.ItemStored {
		t.Errorf("the edited item is %s", item.Status)
	}
	wantRefusal(t, k.refuse(events.EditMessage{ItemID: "itm_user"}), events.InvalidRequest, events.ErrorDetails{Path: "/data"})
	wantRefusal(t, k.refuse(events.EditMessage{ItemID: "itm_user", Content: raw(`{}`)}), events.InvalidRequest, events.ErrorDetails{Path: "/data/content"})
	wantRefusal(t, k.refuse(events.EditMessage{ItemID: "itm_user", Content: raw(`[{"type":"input_text"}]`)}),
		events.InvalidRequest, events.ErrorDetails{Path: "/data/content/0/text"})

	want(t, k.do(events.DeleteMessage{ItemID: "itm_user"}), fact{events.MessageDeletedType, "itm_user", "",
		events.MessageDeleted{ContextID: main, Type: events.Message, Index: 0}})
	for _, data := range []any{
		events.EditMessage{ItemID: "itm_user", Silent: to(false)}, events.DeleteMessage{ItemID: "itm_user"},
		events.SetItemStatus{ItemID: "itm_user", To: events.ItemCompleted}, events.CreateExecution{TriggerItemID: "itm_user"},
	} {
		wantRefusal(t, k.refuse(data), events.NotFound, events.ErrorDetails{Entity: "item", ID: "itm_user"})
	}
	made := k.do(message("itm_next", "x"))
	if index := made[0].Data.(events.ItemCreated).Index; index != 1 {
		t.Errorf("the next item is at %d", index)
	}
}

// The answer that a run is writing is not deleted, also while the run waits; other messages are,
// and so is the answer when its run has ended, or ends in the same commit.
func TestMessage_DeleteWhileItIsWritten(t *testing.T) {
	w := asking(t)
	id := w.run().ReactionItemID
	refuse := func() {
		t.Helper()
		e := w.refuse(events.DeleteMessage{ItemID: id})
		wantRefusal(t, e, events.VersionConflict, events.ErrorDetails{CurrentVersion: new(w.state.Version)})
		if !strings.Contains(e.Message, "stop or cancel the run") {
			t.Error(e)
		}
	}
	refuse()
	w.do(w.results("call_2")) // it is parked
	refuse()
	w.do(message("itm_other", "x"))
	w.do(events.DeleteMessage{ItemID: "itm_other"})
	d := NewDraft(w.state)
	if _, err := d.Do(w.command(events.CancelRun{}, events.DeleteMessage{ItemID: id})); err != nil {
		t.Errorf("after a cancel in the same commit: %v", err)
	}
	w.do(events.CancelRun{})
	w.do(events.DeleteMessage{ItemID: id})
}

// The content that an edit brings is checked by the item's own kind.
func TestEditMessage_OtherTypes(t *testing.T) {
	k := begun(t)
	k.do(events.CreateItem{Item: events.NewItem{ID: "itm_call", Type: events.ActionExecute, Content: raw(`{"callId":"c","name":"n","arguments":{}}`)}})
	k.do(events.EditMessage{ItemID: "itm_call", Content: raw(`{"callId":"c","name":"m","arguments":{}}`)})
	wantRefusal(t, k.refuse(events.EditMessage{ItemID: "itm_call", Content: raw(`[]`)}), events.InvalidRequest, events.ErrorDetails{Path: "/data/content"})
}

// An edit puts parts into a message, each at its place; whatever cannot be one is refused.
func TestEditMessage_Parts(t *testing.T) {
	k := begun(t)
	part := func(place int64, p string) events.PartEdit { return events.PartEdit{Place: &place, Part: raw(p)} }
	k.do(message("itm_m", "x"))
	k.do(events.CreateItem{Item: events.NewItem{ID: "itm_call", Type: events.ActionExecute, Content: raw(`{"callId":"c","name":"n","arguments":{}}`)}})
	made := k.do(events.EditMessage{ItemID: "itm_m", Parts: []events.PartEdit{part(0, `{"type":"custom"}`), part(9, `{"type":"input_text","text":"y"}`)}})
	item := events.Item{Content: raw(`[{"type":"input_text","text":"x"}]`)}
	item.Edit(made[0].Data.(events.MessageEdited))
	if want := `[{"type":"custom"},{"type":"input_text","text":"y"}]`; string(item.Content) != want {
		t.Errorf("%s, not %s", item.Content, want)
	}
	for path, d := range map[string]events.EditMessage{
		"/data/parts":        {ItemID: "itm_call", Parts: []events.PartEdit{part(0, `{"type":"custom"}`)}},
		"/data/parts/1/part": {ItemID: "itm_m", Parts: []events.PartEdit{part(0, `{"type":"custom"}`), part(1, `{"type":"input_text"}`)}},
	} {
		wantRefusal(t, k.refuse(d), events.InvalidRequest, events.ErrorDetails{Path: path})
	}
	both := events.EditMessage{ItemID: "itm_m", Content: raw(`[]`), Parts: []events.PartEdit{part(0, `{"type":"custom"}`)}}
	wantRefusal(t, k.refuse(both), events.InvalidRequest, events.ErrorDetails{Path: "/data/parts"})
}
