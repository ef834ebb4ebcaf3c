package query

import (
	"fmt"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
)

// AM-35..AM-40: relationship.list shows what a thread records of others, by kind and role, now
// and as it was; the bucket is what the log says.
func TestRelationships_Listed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	one, two := h.Do("thread.create", "", `{"key":"one"}`).ThreadID, h.Do("thread.create", "", `{}`).ThreadID
	h.Do("item.create", one, `{"item":{"type":"message","role":"user","content":[]}}`)
	before := h.Do("thread.mention", one, fmt.Sprintf(`{"mentionedId":%q,"comment":"see"}`, two))
	last := h.Do("thread.mention", two, fmt.Sprintf(`{"mentionedId":%q}`, one))
	h.AwaitRunner(r)
	list := func(data string) []events.Relationship {
		t.Helper()
		return ask[events.RelationshipList](a, "relationship.list", data).Relationships
	}
	both := list(fmt.Sprintf(`{"threadId":"key:one","minSeq":%d}`, last.Seq))
	if len(both) != 2 || both[0].Role != events.ParentRole || both[1].Role != events.ChildRole {
		t.Fatalf("listed as %+v", both)
	}
	if r := both[0]; r.ThreadID != two || r.Type != events.MentionRelation || r.MessageIndex == nil || *r.MessageIndex != 0 || r.Comment != "see" || r.CreatedAt == "" || r.ItemID == "" {
		t.Errorf("listed as %+v", r)
	}
	for data, want := range map[string]int{
		fmt.Sprintf(`{"threadId":%q,"role":"parent"}`, one):                       1,
		fmt.Sprintf(`{"threadId":%q,"type":"mention"}`, one):                      2,
		fmt.Sprintf(`{"threadId":%q,"type":"fork"}`, one):                         0,
		fmt.Sprintf(`{"threadId":%q,"at":{"version":%d}}`, one, before.Version):   1,
		fmt.Sprintf(`{"threadId":%q,"at":{"version":%d}}`, one, before.Version-1): 0,
		fmt.Sprintf(`{"threadId":%q,"at":{"version":2}}`, two):                    0,
	} {
		if got := list(data); len(got) != want {
			t.Errorf("%s: %+v", data, got)
		}
	}
	a.refused(events.NotFound, "relationship.list", `{"threadId":"T-00000000-0000-7000-8000-000000000009"}`)
	h.Same(one, two)
}

// One that is recorded again is listed once, where it was recorded last.
func TestRelationships_RecordedAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	id, one, two := h.Do("thread.create", "", `{}`).ThreadID, h.Do("thread.create", "", `{}`).ThreadID, h.Do("thread.create", "", `{}`).ThreadID
	h.Do("item.create", id, `{"item":{"type":"message","role":"user","content":[]}}`)
	var version int64
	for _, all := range [][]string{{one, two}, {two, one}} {
		h.Do("item.create", id, `{"item":{"type":"message","role":"user","content":[]}}`)
		for _, other := range all {
			h.Do("thread.mention", id, fmt.Sprintf(`{"mentionedId":%q}`, other))
		}
		if version == 0 {
			version = h.Do("thread.truncate", id, `{"messageIndex":0}`).Version
		}
	}
	h.AwaitRunner(r)
	for data, want := range map[string][2]string{"": {two, one}, fmt.Sprintf(`,"at":{"version":%d}`, version-3): {one, two}} {
		list := ask[events.RelationshipList](a, "relationship.list", fmt.Sprintf(`{"threadId":%q%s}`, id, data)).Relationships
		if len(list) != 2 || list[0].ThreadID != want[0] || list[1].ThreadID != want[1] {
			t.Errorf("listed as %+v, not %v", list, want)
		}
	}
	h.Same(id, one, two)
}
