package events

import (
	"slices"
	"testing"
)

func inheritedPage() []InheritedItem {
	return []InheritedItem{
		{Index: 3, ID: "itm_u", Type: Message, Role: User, CreatedAt: 7, Content: JSON(`[]`)},
		{Index: 4, ID: "itm_x", Type: ActionExecute, CallOf: ref(int64(3)), Parent: ref(int64(3))},
		{Index: 6, ID: "itm_r", Type: ActionResult, Depth: 1, Silent: true},
	}
}

// A page has its items at their places, under the digest of its bytes.
func TestHistoryPage(t *testing.T) {
	content, digest, err := EncodeHistoryPage(inheritedPage())
	if err != nil {
		t.Fatal(err)
	}
	page, err := DecodeHistoryPage(content, digest)
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range map[int64]string{2: "", 3: "itm_u", 4: "itm_x", 5: "", 6: "itm_r", 7: ""} {
		got := ""
		if i := page.Find(place); i != nil {
			got = i.ID
		}
		if got != want {
			t.Errorf("at %d is %q, not %q", place, got, want)
		}
	}
	if _, err := DecodeHistoryPage(append(content, ' '), digest); err == nil {
		t.Error("a page with other bytes was decoded")
	}
	_, empty, _ := EncodeHistoryPage(nil)
	if _, err := DecodeHistoryPage(content, empty); err == nil {
		t.Error("a page with another digest was decoded")
	}
}

// A place belongs to the page that begins at it, or before it.
func TestHistoryInherited_Part(t *testing.T) {
	d := &HistoryInherited{NextIndex: 32, Pages: []HistoryPart{{Digest: "a", From: 0, Size: 1}, {Digest: "b", From: 5, Size: 2}, {Digest: "c", From: 16, Size: 3}}}
	for place, want := range map[int64]string{-1: "", 0: "a", 4: "a", 5: "b", 15: "b", 16: "c", 31: "c", 32: ""} {
		got := ""
		if p := d.Part(place); p != nil {
			got = p.Digest
		}
		if got != want {
			t.Errorf("place %d is on page %q, not %q", place, got, want)
		}
	}
	var named []string
	var size int64
	for digest, bytes := range (&Event{Data: *d}).Contents() {
		if named, size = append(named, digest), size+bytes; len(named) == 2 {
			break
		}
	}
	if !slices.Equal(named, []string{"a", "b"}) || size != 3 {
		t.Errorf("it names %v, of %d bytes", named, size)
	}
	for digest, want := range map[string]int{"a": 1, "": 0} {
		n := 0
		for range (&Event{Data: FileWritten{Digest: digest}}).Contents() {
			n++
		}
		if n != want {
			t.Errorf("a file of digest %q names %d contents", digest, n)
		}
	}
}

// A page counts its items by kind, and those that are shown alone by their class.
func TestHistoryPart_Count(t *testing.T) {
	var p HistoryPart
	for _, i := range inheritedPage() {
		p.Count(&i)
	}
	p.Count(&InheritedItem{Type: ActionExecute})
	if p.Items != (ItemCounts{Message: 1, ActionExecute: 2, ActionResult: 1}) || !slices.Equal(p.Messages, []int64{2, 0, 0, 0, 0, 1}) {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct {
		depth           int64
		foreign, silent bool
		want            int
	}{{0, false, false, 0}, {0, false, true, 1}, {0, true, false, 2}, {2, true, true, 11}, {-1, false, false, 0}, {8, false, false, 32}, {9, false, true, 33}} {
		if got := MessageClass(c.depth, c.foreign, c.silent); got != c.want {
			t.Errorf("depth %d, foreign %v, silent %v: class %d, not %d", c.depth, c.foreign, c.silent, got, c.want)
		}
	}
}

// The id of an inherited item says its place in its thread alone.
func TestInheritedItemID(t *testing.T) {
	for place, digits := range map[int64]string{0: "00000000", 255: "000000ff", 1<<32 - 1: "ffffffff"} {
		id := InheritedItemID("acme", "T-1", place)
		if got, ok := InheritedPlace("acme", "T-1", id); !ok || got != place || id != InheritedPrefix("acme", "T-1")+digits {
			t.Errorf("place %d has the id %s, which is of place %d: %v", place, id, got, ok)
		}
		for _, other := range []struct{ tenant, thread, id string }{
			{"acme", "T-2", id}, {"globex", "T-1", id}, {"acme", "T-1", id + "0"}, {"acme", "T-1", id[:len(id)-1]},
			{"acme", "T-1", "exe_" + id[len(ItemPrefix):]}, {"acme", "T-1", InheritedPrefix("acme", "T-1") + "0000000G"}, {"acme", "T-1", InheritedPrefix("acme", "T-1") + "0000000A"},
		} {
			if at, ok := InheritedPlace(other.tenant, other.thread, other.id); ok {
				t.Errorf("%s is item %d of %s/%s", other.id, at, other.tenant, other.thread)
			}
		}
	}
	item := inheritedPage()[1]
	made := item.Created("acme", "T-1", "ctx_1")
	if made.ID != InheritedItemID("acme", "T-1", 4) || made.ParentItemID != InheritedItemID("acme", "T-1", 3) || made.ContextID != "ctx_1" || made.SourceItemID != "itm_x" {
		t.Errorf("%+v", made)
	}
	if item = inheritedPage()[0]; item.Created("acme", "T-1", "ctx_1").ParentItemID != "" {
		t.Error("an item without a parent has one as a copy")
	}
}
