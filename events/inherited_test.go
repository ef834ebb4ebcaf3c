package events

import (
	"bytes"
	"slices"
	"strings"
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
	p.Count(&InheritedItem{Type: ActionExecute, Depth: 2})
	if p.Items != (ItemCounts{Message: 1, ActionExecute: 2, ActionResult: 1}) || !slices.Equal(p.Messages, []int64{1, 0, 0, 0, 0, 1, 0, 0, 1}) {
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

// A name stands in a pointer as it is if it is short, and of plain letters.
func TestPointable(t *testing.T) {
	for _, name := range []string{"a", "z", "A", "Z", "0", "9", "_", "-", ".", string(make64('x'))} {
		if !pointable([]byte(name)) {
			t.Errorf("%q is not pointable", name)
		}
	}
	for _, name := range []string{"`", "{", "@", "[", "/", ":", "~", " ", "é", string(make64('x')) + "x"} {
		if pointable([]byte(name)) {
			t.Errorf("%q is pointable", name)
		}
	}
}

func make64(c byte) []byte { return bytes.Repeat([]byte{c}, 64) }

// A timeline knows the items that its thread has inherited, though no event created them.
func TestValidateTimeline_InheritedItems(t *testing.T) {
	check := func(place int64) error {
		return ValidateTimeline(stream(
			sample{ThreadCreatedType, thread, ThreadCreated{ID: thread, Status: ThreadOpen}},
			sample{ContextCreatedType, "ctx_1", ContextCreated{ID: "ctx_1", Status: ContextOpen, Default: true}},
			sample{HistoryInheritedType, thread, HistoryInherited{ThreadID: "T-2", ContextID: "ctx_1", NextIndex: 16}},
			sample{MessageDeletedType, InheritedItemID(tenant, thread, place), MessageDeleted{ContextID: "ctx_1"}},
		))
	}
	for place, want := range map[int64]bool{0: true, 15: true, 16: false, 400: false} {
		if err := check(place); (err == nil) != want {
			t.Errorf("an event of item %d: %v", place, err)
		}
	}
}

// A thread's call that is none is refused with the message that makes it.
func TestAddMessage_BadCalls(t *testing.T) {
	for calls, want := range map[string]string{
		`[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]`: "",
		`[{"id":"","type":"function","function":{"name":"n","arguments":"{}"}}]`:  "/toolCalls",
		`[{"id":"c","type":"function","function":{"name":"","arguments":"{}"}}]`:  "/toolCalls",
	} {
		_, made, err := AddMessage{Role: FromAssistant, ToolCalls: calls}.Items()
		if got := refusedAt(err); !strings.HasPrefix(got, want) || want == "" && (got != "" || len(made) != 1) {
			t.Errorf("%s: %d calls, refused at %q", calls, len(made), got)
		}
	}
}
