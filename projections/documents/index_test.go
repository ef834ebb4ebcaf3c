package documents

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// TestEntry_ShownAt: an item is shown from the event after the one that made it, until
// the one that hid it.
func TestEntry_ShownAt(t *testing.T) {
	shown, hidden := Entry{Made: 5}, Entry{Made: 5, Hidden: 8}
	for version, want := range map[int64][2]bool{4: {false, false}, 5: {false, false}, 6: {true, true}, 7: {true, true}, 8: {true, true}, 9: {true, false}, 10: {true, false}} {
		if shown.ShownAt(version) != want[0] || hidden.ShownAt(version) != want[1] {
			t.Errorf("just before %d: %v and %v, want %v", version, shown.ShownAt(version), hidden.ShownAt(version), want)
		}
	}
}

// TestPage_Contexts: a page names each context once, in the order of its items; one that
// a damaged page does not name is no context.
func TestPage_Contexts(t *testing.T) {
	h := newHistory(t, 40)
	h.do(events.CreateThread{})
	h.do(events.CreateContext{ID: "side"})
	for i := range 40 {
		m := message(fmt.Sprintf("m%d", i), "x")
		m.ContextID = []string{"", "side"}[i%2]
		h.do(m)
	}
	s := fold(t, h, Until{})
	pages := slices.DeleteFunc(s.All(Mask(0).With(Index)), func(s *Slot) bool { return s.Doc.(*Page).Page < 0 })
	if len(pages) != 3 {
		t.Fatalf("%d pages", len(pages))
	}
	for n, slot := range pages {
		page := slot.Doc.(*Page)
		if page.Page != int64(n) || page.ThreadID != h.id || slot.Place.ID != PageID(int64(n)) || !slices.Equal(page.Contexts, []string{h.state.Default, "side"}) {
			t.Errorf("page %d of %s in %s has contexts %v", page.Page, page.ThreadID, slot.Place.ID, page.Contexts)
		}
		for i := range page.Entries {
			e := &page.Entries[i]
			want := []string{h.state.Default, "side"}[e.Index%2]
			if page.ContextOf(e) != want || e.Index != int64(n*PageSize+i) || page.Find(e.Index) != e {
				t.Errorf("item %d at %d of page %d is in %q", e.Index, i, n, page.ContextOf(e))
			}
		}
		for _, no := range []int{-1, 2, 3} {
			if got := page.ContextOf(&Entry{Context: no}); got != "" {
				t.Errorf("context %d is %q", no, got)
			}
		}
		if page.Find(int64(n*PageSize-1)) != nil || page.Find(int64((n+1)*PageSize)) != nil {
			t.Error("a page finds what is not in it")
		}
	}
}

// TestPage_CallsOfALaterPage: a message knows its calls wherever it stands.
func TestPage_CallsOfALaterPage(t *testing.T) {
	h := newHistory(t, 41)
	h.do(events.CreateThread{})
	for i := range 20 {
		h.do(message(fmt.Sprintf("m%d", i), "x"))
	}
	h.do(events.AddMessage{ID: "a", Role: events.FromAssistant, ToolCalls: `[{"id":"1","function":{"name":"n","arguments":""}}]`})
	for i := range 14 {
		h.do(message(fmt.Sprintf("n%d", i), "x"))
	}
	h.do(events.CreateItem{Item: events.NewItem{ID: "call", Type: events.ActionExecute, ParentItemID: "a", Content: raw(`{"callId":"c","name":"n","arguments":""}`)}})
	s := fold(t, h, Until{})
	page := s.Get(Place{Kind: Index, Thread: ThreadName(tenant, h.id), ID: PageID(1)}).(*Page)
	if e := page.Find(20); e == nil || !slices.Equal(e.Calls, []int64{21, 36}) {
		t.Errorf("%+v", e)
	}
}

// TestCountMessage: counts lie in their blocks, what is 0 at the end is left out, and an
// index beyond all blocks is not counted.
func TestCountMessage(t *testing.T) {
	doc := &events.Thread{}
	check := func(want string) {
		t.Helper()
		if b, err := json.Marshal(doc.MessageBlocks); err != nil || string(b) != want {
			t.Errorf("%s, %v, want %s", b, err, want)
		}
	}
	countMessage(doc, -1, 0, 1)
	countMessage(doc, maxBlocks*BlockSize, 0, 1)
	check(`[]`)
	countMessage(doc, BlockSize, 3, 1)
	check(`[[],[0,0,0,1]]`)
	countMessage(doc, 2*BlockSize-1, 1, 1)
	countMessage(doc, 0, 0, 2)
	check(`[[2],[0,1,0,1]]`)
	countMessage(doc, BlockSize, 3, -1)
	check(`[[2],[0,1]]`)
	countMessage(doc, BlockSize+1, 1, -1)
	countMessage(doc, 1, 0, -2)
	check(`[[],[]]`)
}

// TestMessageFilter_Count: a block is counted exactly, unless a class of it holds messages
// of several depths or contexts and only some of them match.
func TestMessageFilter_Count(t *testing.T) {
	doc := &events.Thread{}
	for _, m := range []struct {
		depth           int64
		foreign, silent bool
		count           int64
	}{
		{0, false, false, 1}, {0, false, true, 10}, {0, true, false, 100}, {3, false, false, 1000}, {8, false, false, 10_000}, {20, false, true, 100_000},
	} {
		countMessage(doc, 0, events.MessageClass(m.depth, m.foreign, m.silent), m.count)
	}
	for _, c := range []struct {
		filter MessageFilter
		want   int64
		exact  bool
	}{
		{MessageFilter{MaxDepth: -1, Silent: true}, 111_111, true},
		{MessageFilter{MaxDepth: -1}, 11_101, true},
		{MessageFilter{MaxDepth: 0}, 101, true},
		{MessageFilter{MaxDepth: 0, Silent: true}, 111, true},
		{MessageFilter{MaxDepth: 2}, 101, true},
		{MessageFilter{MaxDepth: 3}, 1101, true},
		{MessageFilter{MaxDepth: 7, Silent: true}, 1111, true},
		{MessageFilter{MaxDepth: 8}, 11_101, false},
		{MessageFilter{MaxDepth: 9, Silent: true}, 111_111, false},
		{MessageFilter{MaxDepth: -1, Context: "c", Default: "c"}, 11_001, true},
		{MessageFilter{MaxDepth: -1, Context: "other", Default: "c"}, 100, false},
		{MessageFilter{MaxDepth: 0, Context: "c", Default: "c", Silent: true}, 11, true},
	} {
		if n, exact := c.filter.Count(doc.MessageBlocks[0]); n != c.want || exact != c.exact {
			t.Errorf("%+v: %d, exact %v, want %d, %v", c.filter, n, exact, c.want, c.exact)
		}
	}
}

// A block is counted exactly if it holds no message that is as deep as its classes go.
func TestMessageFilter_CountOfDeepMessages(t *testing.T) {
	for depth, exact := range map[int64]bool{0: true, 7: true, 8: false, 30: false} {
		doc := &events.Thread{}
		countMessage(doc, 0, events.MessageClass(depth, false, false), 5)
		for _, most := range []int64{8, 9, 1000} {
			if n, got := (MessageFilter{MaxDepth: most}).Count(doc.MessageBlocks[0]); n != 5 || got != exact {
				t.Errorf("of depth %d, up to %d: %d, exact %v", depth, most, n, got)
			}
		}
	}
}

// TestNeeds names what single commits have to see, and what of it they make.
func TestNeeds(t *testing.T) {
	m := NewModels()
	const thread = "T-00000000-0000-7000-8000-000000000001"
	item := func(index int64) events.Event {
		return events.Event{Type: events.ItemCreatedType, Subject: "i", Data: events.ItemCreated{ID: "i", ContextID: "c", Type: events.Message, Index: index}}
	}
	edit := events.Event{Type: events.MessageEditedType, Subject: "i", Data: events.MessageEdited{Index: 35, Silent: to(true)}}
	all, own := AllKinds, Mask(0).With(Threads)
	for name, c := range map[string]struct {
		active Mask
		commit *events.Commit
		want   string // kind id, and ! where the commit makes it
	}{
		"the first commit":    {all, commitOf(thread, 1, 1, item(0)), "contexts c,index 00000000!,items i!,threads !"},
		"a later one":         {all, commitOf(thread, 1, 9, item(3)), "contexts c,index 00000000,items i!,threads "},
		"the end of a page":   {all, commitOf(thread, 1, 9, item(15)), "contexts c,index 00000000,items i!,threads "},
		"the next page":       {all, commitOf(thread, 1, 9, item(16)), "contexts c,index 00000001!,items i!,threads "},
		"within it":           {all, commitOf(thread, 1, 9, item(17)), "contexts c,index 00000001,items i!,threads "},
		"only threads":        {own, commitOf(thread, 1, 9, item(17)), "threads "},
		"none":                {0, commitOf(thread, 1, 9, item(17)), ""},
		"silence":             {own, commitOf(thread, 1, 9, edit), "index 00000002,threads "},
		"silence, everything": {all, commitOf(thread, 1, 9, edit), "index 00000002,items i,threads "},
		"another edit": {own, commitOf(thread, 1, 9, events.Event{Type: events.MessageEditedType, Subject: "i", Data: events.MessageEdited{Index: 35}}),
			"threads "},
		"an item hidden": {own.With(Contexts), commitOf(thread, 1, 9, events.Event{Type: events.MessageDeletedType, Subject: "i", Data: events.MessageDeleted{Index: 35, ContextID: "c"}}),
			"contexts c,index 00000002,threads "},
		"of no context": {own.With(Contexts), commitOf(thread, 1, 9, events.Event{Type: events.MessageDeletedType, Subject: "i", Data: events.MessageDeleted{Index: 35, ContextID: "c d"}}),
			"index 00000002,threads "},
	} {
		needs := map[string]bool{}
		m.Needs(c.commit, c.active, func(Place) any { return nil }, func(n Need) {
			text := m.Of(n.Place.Kind).Name + " " + n.Place.ID
			if n.Made {
				text += "!"
			}
			if n.Place.Thread != ThreadName(tenant, thread) {
				t.Errorf("%s: %+v", name, n)
			}
			needs[text] = true
		})
		if got := strings.Join(slices.Sorted(maps.Keys(needs)), ","); got != c.want {
			t.Errorf("%s needs %s, want %s", name, got, c.want)
		}
	}
}

// TestNeeds_OfATruncation: the pages from its place on as far as they are known, some
// more, and the contexts that they name.
func TestNeeds_OfATruncation(t *testing.T) {
	m := NewModels()
	c := commitOf("T-00000000-0000-7000-8000-000000000001", 9, 900, events.Event{Type: events.HistoryTruncatedType, Data: events.HistoryTruncated{FromIndex: 50}})
	if !Deep(c) {
		t.Error("it is said not to depend on documents")
	}
	for _, known := range []int64{0, 3, 4, 20, 60} { // pages that are there
		pages, contexts := map[string]bool{}, map[string]bool{}
		m.Needs(c, AllKinds, func(p Place) any {
			for n := range known {
				if p.Kind == Index && p.ID == PageID(n) {
					return &Page{Page: n, Contexts: []string{fmt.Sprint("c", n), "c"}}
				}
			}
			return nil
		}, func(n Need) {
			switch {
			case n.Made:
				t.Errorf("%+v is said to be made", n)
			case n.Place.Kind == Index:
				pages[n.Place.ID] = true
			case n.Place.Kind == Contexts:
				contexts[n.Place.ID] = true
			}
		})
		end := max(known, 3)
		for n := range known + 40 {
			if isKnown := n >= 3 && n < known; contexts[fmt.Sprint("c", n)] != isKnown {
				t.Errorf("with %d pages, the context of page %d is asked for: %v", known, n, !isKnown)
			}
			if want := n >= end && n < end+16; pages[PageID(n)] != want {
				t.Errorf("with %d pages, page %d is asked for: %v", known, n, !want)
			}
		}
		if len(pages) != 16 {
			t.Errorf("with %d pages: %v", known, slices.Sorted(maps.Keys(pages)))
		}
	}
}

// TestEntry_ReadByteByByte: every entry that Skein writes takes the fast way, nothing that
// is cut short does, and whatever takes it is read as field by field.
func TestEntry_ReadByteByByte(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	number := func() int64 { return rnd.Int64N([]int64{1, 10, 11, 100, 999_999_999_999_999_999}[rnd.IntN(5)]) }
	fast := func(raw string) (Entry, bool) {
		r := entryReader{rest: []byte(raw)}
		return r.entry()
	}
	for range 60 {
		e := Entry{Index: number(), ID: "itm_0190", Context: int(number()), Made: number(), Hidden: number(), Type: []events.ItemType{events.Message, events.ActionExecute, events.ActionResult, "other"}[rnd.IntN(4)]}
		if rnd.IntN(2) == 0 {
			e.Silent, e.Part, e.Depth = rnd.IntN(2) == 0, rnd.IntN(2) == 0, number()
			for range rnd.IntN(4) {
				e.Calls = append(e.Calls, number())
			}
		}
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := fast(string(raw)); !ok || !reflect.DeepEqual(got, e) {
			t.Fatalf("%s is read as %+v, %v", raw, got, ok)
		}
		for i := range raw {
			if got, ok := fast(string(raw[:i])); ok {
				t.Fatalf("%s is read as %+v", raw[:i], got)
			}
			for _, c := range `0159/:,[]"\- x` {
				other := string(raw[:i]) + string(c) + string(raw[i+1:])
				got, ok := fast(other)
				if !ok || !jsontext.Value(other).IsValid() {
					continue
				}
				var want Entry
				err := want.decode(events.JSON(other))
				if len(want.Calls) == 0 {
					want.Calls = nil
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("%s is read as %+v, field by field as %+v, %v", other, got, want, err)
				}
			}
		}
		if got, ok := fast(string(raw) + "1"); ok {
			t.Fatalf("%s1 is read as %+v", raw, got)
		}
	}
	var e Entry
	for _, large := range []string{"9223372036854775808", "9999999999999999999", "99999999999999999999"} {
		if err := json.Unmarshal([]byte(`[`+large+`,"i",0,"message",1,0]`), &e); err == nil {
			t.Errorf("%s is read as %d", large, e.Index)
		}
	}
	if err := json.Unmarshal([]byte(`[9223372036854775807,"i",0,"message",1,0]`), &e); err != nil || e.Index != 9223372036854775807 {
		t.Errorf("%d, %v", e.Index, err)
	}
	if err := json.Unmarshal([]byte(`[1,"i",0,"message",1]`), &e); err == nil || !strings.Contains(err.Error(), "6 or 9 fields, not 5") {
		t.Errorf("%v", err)
	}
}
