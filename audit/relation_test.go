package audit

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// AM-41: a relationship that only one of its threads records is a finding, unless the other is
// deleted, erased or was never in this log.
func TestVerify_RelationshipWithoutMatch(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fill(threadOne)
	h.fill(threadTwo)
	const three = "T-00000000-0000-7000-8000-000000000333"
	h.fill(three)
	h.do("thread.mention", `{"threadId":"`+threadOne+`","data":{"mentionedId":"`+threadTwo+`"}}`)
	h.do("thread.mention", `{"threadId":"`+threadTwo+`","data":{"mentionedId":"`+three+`"}}`)
	wholly := func(what string) {
		t.Helper()
		if found, _ := h.verify(Options{LogOnly: true}); len(found) > 0 {
			t.Errorf("%s: %+v", what, found)
		}
	}
	wholly("both threads have the record")
	h.do("thread.delete", `{"threadId":"`+three+`","data":{"purge":true}}`)
	wholly("one of the two is erased")
	h.forge(threadOne, events.RelationshipRemovedType, threadOne, events.RelationshipRemoved{ThreadID: threadTwo, Type: events.MentionRelation, Role: events.ParentRole})
	found, _ := h.verify(Options{LogOnly: true})
	if len(found) != 1 || found[0].Kind != KindLink || found[0].Thread != threadTwo || !strings.Contains(found[0].Detail, threadOne+", which records no match") {
		t.Errorf("half a relationship: %+v", found)
	}
	if found, _ := h.verify(Options{LogOnly: true, Tenant: "acme", Threads: []string{threadTwo}}); len(found) != 1 {
		t.Errorf("of that thread alone: %+v", found)
	}
}
