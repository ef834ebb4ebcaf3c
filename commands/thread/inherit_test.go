package thread

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// heir is a thread that a fork has made, whose history is inherited: a question, its answer with a
// call, and another question, at the places 0, 1, 2 and 5.
func heir(t *testing.T) (*story, *events.HistoryPage) {
	page := &events.HistoryPage{Items: []events.InheritedItem{
		{Index: 0, ID: "itm_q", Type: events.Message, Role: events.User, Content: raw(`[]`)},
		{Index: 1, ID: "itm_a", Type: events.Message, Role: events.Assistant, Content: raw(`[]`), Depth: 1, Calls: []int64{2}},
		{Index: 2, ID: "itm_x", Type: events.ActionExecute, Parent: to(int64(1)), CallOf: to(int64(1)), Depth: 1},
		{Index: 5, ID: "itm_s", Type: events.Message, Role: events.User, Content: raw(`[]`), Silent: true},
	}}
	parent := another(t, otherID)
	c := parent.command(events.ForkThread{MessageIndex: to(int64(0))})
	c.Copied = &Copied{Title: "Trip", Inherited: &events.HistoryInherited{
		ThreadID: otherID, Version: 7, Pages: []events.HistoryPart{{Digest: strings.Repeat("a", 64), Size: 1}}, NextIndex: events.HistoryAlign, NextMessageID: 3,
	}}
	child := newStory(t)
	child.thread = ForkOf(c)
	made, err := grouped(t, c, parent, child)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(made, func(e events.Event) bool {
		d, ok := e.Data.(events.HistoryInherited)
		return ok && d.ContextID == child.state.Default
	}) {
		t.Fatalf("the fork inherits nothing: %v", made)
	}
	return child, page
}

// inOrder returns an iterator over pages that ends with an error, if there is one.
func inOrder(last error, pages ...*events.HistoryPage) iter.Seq2[*events.HistoryPage, error] {
	return func(yield func(*events.HistoryPage, error) bool) {
		for _, page := range pages {
			if !yield(page, nil) {
				return
			}
		}
		if last != nil {
			yield(nil, last)
		}
	}
}

// What has happened to inherited items before their pages are read has happened to them afterwards.
func TestInherit_AppliesWhatHappenedMeanwhile(t *testing.T) {
	item := func(k *story, place int64) string { return events.InheritedItemID(tenant, k.thread, place) }
	edit := func(d events.MessageEdited) func(*story, int64) any { return func(*story, int64) any { return d } }
	type happened struct {
		place int64
		typ   events.Type
		data  func(k *story, place int64) any
	}
	deleted := func(k *story, _ int64) any { return events.MessageDeleted{ContextID: k.state.Default} }
	cut := func(_ *story, from int64) any { return events.HistoryTruncated{FromIndex: from} }
	for name, c := range map[string]struct {
		then []happened
		want string // by place: silent, failed, deleted
	}{
		"nothing":              {nil, "0 1 2 5s"},
		"an edit":              {[]happened{{0, events.MessageEditedType, edit(events.MessageEdited{Silent: to(true)})}, {5, events.MessageEditedType, edit(events.MessageEdited{Silent: to(false)})}}, "0s 1 2 5"},
		"a failure":            {[]happened{{1, events.MessageEditedType, edit(events.MessageEdited{Failed: to(true)})}}, "0 1f 2 5s"},
		"a deletion":           {[]happened{{0, events.MessageDeletedType, deleted}}, "0d 1 2 5s"},
		"an edit of a deleted": {[]happened{{0, events.MessageDeletedType, deleted}, {0, events.MessageEditedType, edit(events.MessageEdited{Silent: to(true)})}}, "0d 1 2 5s"},
		"a cut":                {[]happened{{2, events.HistoryTruncatedType, cut}}, "0 1 2d 5sd"},
		"a later cut":          {[]happened{{2, events.HistoryTruncatedType, cut}, {5, events.HistoryTruncatedType, cut}}, "0 1 2d 5sd"},
		"an earlier cut":       {[]happened{{5, events.HistoryTruncatedType, cut}, {2, events.HistoryTruncatedType, cut}}, "0 1 2d 5sd"},
		"an edit of a hidden":  {[]happened{{5, events.HistoryTruncatedType, cut}, {5, events.MessageEditedType, edit(events.MessageEdited{Silent: to(false)})}}, "0 1 2 5sd"},
		"of no place":          {[]happened{{16, events.MessageDeletedType, deleted}, {3, events.MessageDeletedType, deleted}}, "0 1 2 5s"},
	} {
		k, page := heir(t)
		if got := k.state.Inherits(); got == nil || got.Version != 7 {
			t.Fatalf("%s: it inherits %+v", name, got)
		}
		for n, h := range c.then {
			subject := item(k, h.place)
			if h.typ == events.HistoryTruncatedType {
				subject = k.thread
			}
			e := k.after(h.typ, subject, "", h.data(k, h.place))
			e.Version += int64(n)
			Evolve(k.state, &e)
		}
		before := string(encoded(t, k.state))
		lost := errors.New("lost")
		if err := k.state.Inherit(inOrder(lost, page)); !errors.Is(err, lost) || string(encoded(t, k.state)) != before {
			t.Errorf("%s: a page that cannot be read has changed the state: %v", name, err)
		}
		if err := k.state.Inherit(inOrder(nil, page)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range page.Items {
			id := item(k, i.Index)
			at, ok := k.state.item(id)
			if !ok || at.Index != i.Index || at.PartOf != (i.CallOf != nil) || at.Assistant != (i.Role == events.Assistant) || int64(at.Depth) != i.Depth {
				t.Errorf("%s: item %d is %+v", name, i.Index, at)
			}
			if i.Index == 1 && !slices.Equal(at.Calls, []string{item(k, 2)}) || i.Index != 1 && len(at.Calls) > 0 {
				t.Errorf("%s: item %d has the calls %v", name, i.Index, at.Calls)
			}
			flags := string(rune('0' + i.Index))
			for _, f := range []struct {
				is   bool
				flag string
			}{{at.Silent, "s"}, {at.Failed, "f"}, {at.Deleted, "d"}} {
				if f.is {
					flags += f.flag
				}
			}
			got = append(got, flags)
		}
		if strings.Join(got, " ") != c.want || k.state.Inherits() != nil {
			t.Errorf("%s: %v, not %s", name, got, c.want)
		}
		before = string(encoded(t, k.state))
		if err := k.state.Inherit(inOrder(nil, page)); err != nil || string(encoded(t, k.state)) != before {
			t.Errorf("%s: it inherits twice", name)
		}
	}
}

// A history is inherited with the creation of its thread, of another thread, in whole pages.
func TestHolds_InheritedHistories(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{})
	page := func(from int64) events.HistoryPart {
		return events.HistoryPart{Digest: strings.Repeat("a", 64), From: from}
	}
	legal := k.after(events.HistoryInheritedType, threadID, "", events.HistoryInherited{
		ThreadID: otherID, Version: 1, ContextID: k.state.Default, Pages: []events.HistoryPart{page(0), page(512)}, NextIndex: 528,
	})
	legal.Time = k.state.Time
	type d = events.HistoryInherited
	holdsBut(t, k, legal,
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		forgery{"a later time", func(e *events.Event) { e.Time++ }, "created, before"},
		the("another context", "not to the default one", func(d *d) { d.ContextID = "ctx_9" }),
		the("itself", "cannot be inherited", func(d *d) { d.ThreadID = threadID }),
		the("no thread", "cannot be inherited", func(d *d) { d.ThreadID = "T-1" }),
		the("no pages", "not in order", func(d *d) { d.Pages = nil }),
		the("pages from later on", "not in order", func(d *d) { d.Pages = d.Pages[1:] }),
		the("a page twice", "not in order", func(d *d) { d.Pages = []events.HistoryPart{page(0), page(0)} }),
		the("pages backwards", "not in order", func(d *d) { d.Pages = []events.HistoryPart{page(0), page(512), page(256)} }),
		the("a page after its end", "not in order", func(d *d) { d.NextIndex = 512 }),
		the("a place between", "not a multiple", func(d *d) { d.NextIndex = 529 }))
	k.do(message("itm_1", "x"))
	legal.Version, legal.Time = k.state.Version+1, k.state.Time
	if err := holds(k.state, []events.Event{legal}); err == nil || !strings.Contains(err.Error(), "had items") {
		t.Errorf("after an item: %v", err)
	}
	child, _ := heir(t)
	again := child.after(events.HistoryInheritedType, child.thread, "", child.state.Pending.History)
	again.Time = child.state.Time
	if err := holds(child.state, []events.Event{again}); err == nil || !strings.Contains(err.Error(), "had items") {
		t.Errorf("twice: %v", err)
	}
	// Nothing else than what Inherit knows is done to items that are in pages.
	id := events.InheritedItemID(tenant, child.thread, 1)
	holdsBut(t, child, child.after(events.MessageEditedType, id, "", events.MessageEdited{Silent: to(true)}))
	holdsBut(t, child, child.after(events.MessageEditedType, id, "", events.MessageEdited{Parts: []events.PlacedPart{{Part: raw(`{}`)}}}))
	holdsBut(t, child, child.after(events.MessageDeletedType, id, "", events.MessageDeleted{ContextID: child.state.Default}),
		anotherCorrelation("its correlation should be"),
		the("another context", "of another context", func(d *events.MessageDeleted) { d.ContextID = "ctx_9" }))
}

// A fork names a version that there is, and only items that are there still.
func TestFork_OfVersions(t *testing.T) {
	for name, c := range map[string]struct {
		ahead   int64
		point   string
		deleted bool
		refused events.Code
		item    string
	}{
		"its present version": {point: "itm_1", item: "itm_1"},
		"a later one":         {ahead: 1, point: "itm_1", refused: events.InvalidRequest},
		"an earlier one":      {ahead: -1, point: "itm_1", deleted: true},
		"one of other items":  {point: "itm_9"},
	} {
		k := another(t, threadID)
		k.do(message("itm_1", "x"))
		if c.deleted {
			k.do(events.DeleteMessage{ItemID: "itm_1"})
		}
		cmd := k.command(events.ForkThread{Version: to(k.state.Version + c.ahead), Title: "My own"})
		cmd.Copied = &Copied{Title: "Trip", Point: to(int64(0)), PointItem: c.point}
		made, err := grouped(t, cmd, k)
		if c.refused != "" {
			if events.AsError(err).Code != c.refused {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, e := range made {
			if d, ok := e.Data.(events.RelationshipAdded); ok && d.Role == events.ParentRole && d.ItemID != c.item {
				t.Errorf("%s: forked at item %q, not %q", name, d.ItemID, c.item)
			}
			if d, ok := e.Data.(events.ThreadCreated); ok && d.Title != "My own" {
				t.Errorf("%s: titled %q", name, d.Title)
			}
		}
	}
}

// A call is copied as part of the answer that it belongs to: the assistant's, in its depth.
func TestFork_CopiesCallsWithTheirAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer, call events.InheritedItem
		part         bool
	}{
		"of an answer":       {events.InheritedItem{Role: events.Assistant}, events.InheritedItem{Type: events.ActionExecute, Parent: to(int64(0))}, true},
		"of a user":          {events.InheritedItem{Role: events.User}, events.InheritedItem{Type: events.ActionExecute, Parent: to(int64(0))}, false},
		"of another depth":   {events.InheritedItem{Role: events.Assistant}, events.InheritedItem{Type: events.ActionExecute, Parent: to(int64(0)), Depth: 1}, false},
		"of nothing":         {events.InheritedItem{Role: events.Assistant}, events.InheritedItem{Type: events.ActionExecute}, false},
		"the result of one":  {events.InheritedItem{Role: events.Assistant}, events.InheritedItem{Type: events.ActionResult, Parent: to(int64(0))}, false},
		"a message below it": {events.InheritedItem{Role: events.Assistant}, events.InheritedItem{Type: events.Message, Role: events.User, Parent: to(int64(0))}, false},
	} {
		k := another(t, threadID)
		k.do(message("itm_1", "x"))
		c.answer.Type, c.answer.ID, c.answer.Content = events.Message, "itm_a", raw(`[]`)
		c.call.Index, c.call.ID, c.call.Content = 1, "itm_x", raw(`{"callId":"c","name":"n","arguments":{}}`)
		cmd := k.command(events.ForkThread{MessageIndex: to(int64(0))})
		cmd.Copied = &Copied{Items: []events.InheritedItem{c.answer, c.call}, Point: to(int64(0))}
		made, err := grouped(t, cmd, k)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, e := range made {
			if d, ok := e.Data.(events.ItemCreated); ok && d.SourceItemID == "itm_x" && (d.CallOf != nil) != c.part {
				t.Errorf("a call %s: part of %v", name, d.CallOf)
			}
		}
	}
}
