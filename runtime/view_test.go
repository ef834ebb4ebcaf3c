package runtime

import (
	"reflect"
	"testing"

	"github.com/skein-threads/skein/events"
)

// The items of a worker are the documents of the same events. A reactor is not told of the
// item that one was copied from, or of the numbers of messages.
func TestConversation_ItemsAreTheDocuments(t *testing.T) {
	t.Parallel()
	number, call := int64(7), int64(1)
	d := events.ItemCreated{
		ID: "itm_a", ContextID: "ctx_a", Type: events.Message, Role: events.User, Status: events.ItemStored, Channel: events.Web,
		Content: events.JSON(`[]`), CreatedAt: "2026-02-20T10:00:00.123456Z", Index: 3, ParentItemID: "itm_b", Depth: 1, Silent: true,
		Metadata: events.JSON(`{"a":1}`), CallOf: &call, MessageID: &number, SourceItemID: "itm_c",
	}
	c := NewView()
	c.evolve(&events.Event{Type: events.ItemCreatedType, ThreadID: "T-1", Subject: d.ID, Version: 4, Time: 5, Data: d})
	want := d.Item("T-1", 5)
	want.Version, want.MessageID, want.SourceItemID = 4, nil, ""
	if got := c.byID[d.ID].Item; !reflect.DeepEqual(got, want) || got.CreatedAtMicros != 1771581600123456 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
