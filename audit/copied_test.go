package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// A fork whose items are said to be copies of items that the parent never had, or did not have yet,
// is a finding, unless the parent was erased.
func TestVerify_CopiesOfItemsThatTheParentNeverHad(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	child := h.do("thread.fork", fmt.Sprintf(`{"threadId":%q,"data":{"messageIndex":0}}`, threadOne)).Result.ChildID
	later := h.do("item.create", fmt.Sprintf(`{"threadId":%q,"data":{"item":{"type":"message","role":"user","content":[]}}}`, threadOne)).Result.ItemID
	check := func(what string, want ...string) {
		t.Helper()
		found, _ := h.verify(Options{LogOnly: true})
		for _, f := range found {
			if f.Kind != KindLink || f.Thread != child || len(want) != 1 || !strings.Contains(f.Detail, want[0]) {
				t.Errorf("%s: %+v", what, f)
			}
		}
		if len(found) != len(want) {
			t.Errorf("%s: %d findings, and not %d", what, len(found), len(want))
		}
	}
	check("an honest fork")
	state := h.stateOf(child, h.end())
	copied := func(id, source string, place int64) {
		h.forge(child, events.ItemCreatedType, id, events.ItemCreated{
			ID: id, ContextID: state.Default, Index: state.NextItem + place, Type: events.Message, Role: events.User, Status: events.ItemCompleted,
			Content: events.JSON("[]"), CreatedAt: "2026-02-20T10:00:00.000000Z", SourceItemID: source, MessageID: new(state.NextItem + place),
		})
	}
	copied("itm_forged", later, 0)
	check("an item that came after the fork", later)
	h.do("thread.delete", fmt.Sprintf(`{"threadId":%q,"data":{"purge":true}}`, threadOne))
	check("an erased parent")
}
