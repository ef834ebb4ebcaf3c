package query

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/documents"
)

// Pages of 1,200 items of two contexts, from both ends, with filters, some of them
// deleted.
func TestItemPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	side := h.Do("context.create", id, `{"key":"side"}`).Result.ContextID
	var want []events.Item
	for n := 0; n < 1200; n += 100 {
		var list []string
		for i := n; i < n+100; i++ {
			in := ""
			if i%7 == 0 {
				in = `"contextId":"` + side + `",`
			}
			kind := `"type":"message","role":"user","content":[]`
			if i%5 == 0 {
				kind = `"type":"action_result","content":{"callId":"c","output":1}`
			}
			list = append(list, fmt.Sprintf(`{"command":"item.create","data":{%s"item":{"id":"i%d",%s}}}`, in, i, kind))
		}
		h.Do("thread.commit", id, `{"commands":[`+strings.Join(list, ",")+`]}`)
	}
	for i := 3; i < 1200; i += 11 {
		h.Do("message.delete", id, fmt.Sprintf(`{"itemId":"i%d"}`, i))
	}
	h.Append(id, events.Event{Type: events.HistoryTruncatedType, Data: events.HistoryTruncated{FromIndex: 1150}})
	h.AwaitRunner(r)
	h.Same(id)
	for _, s := range h.Folded(id, documents.Until{}).All(documents.Mask(0).With(documents.Items)) {
		want = append(want, *s.Doc.(*events.Item))
	}
	slices.SortFunc(want, func(a, b events.Item) int { return int(a.Index - b.Index) })
	for _, c := range []struct {
		filter string
		fits   func(events.Item) bool
	}{
		{``, func(events.Item) bool { return true }},
		{`,"type":"action_result"`, func(i events.Item) bool { return i.Type == "action_result" }},
		{`,"contextId":"` + side + `"`, func(i events.Item) bool { return i.ContextID == side }},
		{`,"contextId":"` + side + `","type":"action_result"`, func(i events.Item) bool { return i.ContextID == side && i.Type == "action_result" }},
		{`,"type":"item_reference"`, func(events.Item) bool { return false }},
	} {
		var match []string
		for _, i := range want {
			if c.fits(i) {
				match = append(match, i.ID)
			}
		}
		for _, order := range []string{"asc", "desc"} {
			for _, limit := range []int{1000, 97, 64} {
				var got []string
				cursor := ""
				for {
					body := fmt.Sprintf(`{"threadId":%q,"limit":%d,"order":%q%s%s}`, id, limit, order, c.filter, cursor)
					page := ask[events.ItemList](a, "item.list", body)
					if page.Total != int64(len(match)) || len(page.Items) > limit {
						t.Fatalf("%s: total %d, want %d; %d items", body, page.Total, len(match), len(page.Items))
					}
					for _, i := range page.Items {
						got = append(got, i.ID)
					}
					if page.NextCursor == "" {
						break
					}
					cursor = `,"cursor":"` + page.NextCursor + `"`
				}
				if order == "desc" {
					slices.Reverse(got)
				}
				if !slices.Equal(got, match) {
					t.Errorf("%s %s %d: %d items, want %d", c.filter, order, limit, len(got), len(match))
				}
			}
		}
	}
	// A cursor belongs to one query.
	page := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`","limit":1}`)
	a.refused(events.InvalidRequest, "item.list", `{"threadId":"`+id+`","order":"desc","cursor":"`+page.NextCursor+`"}`)
	// A list that is read through more than 1,024 keys.
	all := ask[events.EventList](a, "event.list", `{"threadId":"`+id+`","limit":1000,"fromVersion":1100}`)
	first, err := events.DecodeEvent(all.Events[0])
	if err != nil || first.Version != 1100 {
		t.Errorf("fromVersion 1100 begins at %d, %v", first.Version, err)
	}
}

// One step has more parts than one read returns.
func TestManyUnderOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	h.React(id, 0)
	h.AwaitRunner(r)
	step := ask[events.StepList](a, "step.list", `{"executionId":"`+ask[events.ExecutionList](a, "execution.list", `{"threadId":"`+id+`"}`).Executions[0].ID+`"}`).Steps[0].ID
	for n := 1; n < 1300; n += 100 {
		var list []string
		for i := n; i < n+100; i++ {
			list = append(list, fmt.Sprintf(`{"command":"part.put","data":{"stepId":%q,"idx":%d,"part":%d}}`, step, i, i))
		}
		h.Do("thread.commit", id, `{"commands":[`+strings.Join(list, ",")+`]}`)
	}
	h.AwaitRunner(r)
	parts := ask[events.PartList](a, "part.list", `{"stepId":"`+step+`"}`).Parts
	if len(parts) != 1301 {
		t.Fatalf("%d parts, want 1301", len(parts))
	}
	for i, p := range parts {
		if p.Idx != int64(i) {
			t.Fatalf("part %d is at place %d", p.Idx, i)
		}
	}
	if report := h.Verify(); report.Found != 0 {
		t.Errorf("a verification says %+v", report)
	}
}

// More than fits in one message is cut into pages, also without a limit.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{CacheBytes: 1})
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{}`).ThreadID
	text := strings.Repeat("x", 400<<10)
	for i := range 20 {
		h.Do("item.create", id, fmt.Sprintf(`{"item":{"id":"i%d","type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, i, text))
		if i < 12 {
			h.Do("context.create", id, fmt.Sprintf(`{"content":{"text":%q}}`, text))
		}
	}
	h.AwaitRunner(r)
	page := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`"}`)
	if len(page.Items) == 0 || len(page.Items) > 10 || page.Total != 20 || page.NextCursor == "" {
		t.Fatalf("%d items of %d, cursor %q", len(page.Items), page.Total, page.NextCursor)
	}
	next := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`","cursor":"`+page.NextCursor+`"}`)
	if next.Items[0].Index != int64(len(page.Items)) {
		t.Errorf("the next page begins at %d, not %d", next.Items[0].Index, len(page.Items))
	}
	contexts, last := 0, ask[events.ContextList](a, "context.list", `{"threadId":"`+id+`"}`)
	for contexts += len(last.Contexts); last.NextCursor != ""; contexts += len(last.Contexts) {
		last = ask[events.ContextList](a, "context.list", `{"threadId":"`+id+`","cursor":"`+last.NextCursor+`"}`)
	}
	if contexts != 13 || len(last.Contexts) == 13 {
		t.Errorf("%d contexts, the last %d on a page of their own", contexts, len(last.Contexts))
	}
	list := ask[events.EventList](a, "event.list", `{"threadId":"`+id+`"}`)
	if len(list.Events) == 0 || list.NextVersion == 0 {
		t.Errorf("%d events, next %d", len(list.Events), list.NextVersion)
	}
	// A page looks at so much of the log, also where nothing of it is wanted.
	h.Do("message.add", id, `{"id":"last","role":"user","content":"x"}`)
	h.Do("message.delete", id, `{"itemId":"last"}`)
	rare, pages := &events.EventList{NextVersion: 1}, 0
	for ; len(rare.Events) == 0 && rare.NextVersion > 0; pages++ {
		from := rare.NextVersion
		rare = ask[events.EventList](a, "event.list", fmt.Sprintf(`{"threadId":%q,"types":["message.deleted"],"fromVersion":%d}`, id, from))
		if rare.NextVersion > 0 && rare.NextVersion <= from {
			t.Fatalf("the page from version %d continues at %d", from, rare.NextVersion)
		}
	}
	if len(rare.Events) != 1 || pages < 2 {
		t.Errorf("%d events after %d pages, want 1 after several", len(rare.Events), pages)
	}
}

// The last 50 items of 100,000 are listed as fast as those of a short thread: as many values are
// allocated for them, on whatever machine. The documents are written to their buckets as a runner
// would.
func TestLongThread(t *testing.T) {
	h := newHouse(t)
	a := h.asker(Config{})
	a.q.cfg.Progress.Set(1)
	put := func(p documents.Place, doc any) {
		raw, err := documents.Encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.EventLog.JetStream().PublishAsync("$KV."+h.Models.Of(p.Kind).Bucket+"."+p.Key(), raw); err != nil {
			t.Fatal(err)
		}
	}
	best, values := map[int]time.Duration{}, map[int]float64{}
	for _, n := range []int{200, 100_000} {
		id := fmt.Sprintf("T-00000000-0000-7000-8000-%012d", n)
		name := documents.ThreadName(acme, id)
		stamp := events.Stamp{Version: int64(n + 2), Seq: 1}
		put(documents.Place{Thread: name}, &events.Thread{
			ID: id, Status: events.ThreadOpen, Items: int64(n), ItemTypes: events.ItemCounts{Message: int64(n)}, NextItem: int64(n), Stamp: stamp,
		})
		for from := 0; from < n; from += documents.PageSize {
			page := &documents.Page{ThreadID: id, Page: int64(from / documents.PageSize), Contexts: []string{"ctx"}, Stamp: stamp}
			for i := from; i < min(from+documents.PageSize, n); i++ {
				page.Entries = append(page.Entries, documents.Entry{Index: int64(i), ID: fmt.Sprintf("itm_%d", i), Type: events.Message, Made: int64(i + 3)})
			}
			put(documents.Place{Kind: documents.Index, Thread: name, ID: documents.PageID(page.Page)}, page)
			if page.Page%1000 == 999 { // more outstanding ones would stall on a slow machine
				<-h.EventLog.JetStream().PublishAsyncComplete()
			}
		}
		for i := n - 200; i < n; i++ {
			put(documents.Place{Kind: documents.Items, Thread: name, ID: fmt.Sprintf("itm_%d", i)}, &events.Item{
				ID: fmt.Sprintf("itm_%d", i), ThreadID: id, ContextID: "ctx", Type: events.Message, Index: int64(i), Stamp: stamp,
			})
		}
		<-h.EventLog.JetStream().PublishAsyncComplete()
		// A thread that the log does not have lives as long as the directory lists it.
		a.Until(func() bool { return a.q.directory.Has(acme, id) }, "the directory does not list "+id)
		page := func() {
			list := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`","order":"desc","limit":50}`)
			if len(list.Items) != 50 || list.Total != int64(n) || list.Items[0].Index != int64(n-1) || list.NextCursor == "" {
				t.Fatalf("%d items of %d, the first at %d", len(list.Items), list.Total, list.Items[0].Index)
			}
		}
		best[n], values[n] = time.Hour, math.Inf(1)
		var before, after runtime.MemStats
		for range 20 { // during the best of them the process did little else
			runtime.ReadMemStats(&before)
			start := time.Now()
			page()
			best[n] = min(best[n], time.Since(start))
			runtime.ReadMemStats(&after)
			values[n] = min(values[n], float64(after.Mallocs-before.Mallocs))
		}
	}
	t.Logf("the last 50 of 200 items took %v and %.0f values, of 100,000 %v and %.0f", best[200], values[200], best[100_000], values[100_000])
	if values[100_000] > 1.5*values[200] {
		t.Errorf("for the last 50 of 200 items %.0f values were allocated, and of 100,000 %.0f", values[200], values[100_000])
	}
}

// A deleted thread is in no query but those that look back.
func TestDeletedThread(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	id := h.Do("thread.create", "", `{"key":"k"}`).ThreadID
	last := h.React(id, 0)
	h.AwaitRunner(r)
	item := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`"}`).Items[0].ID
	exe := ask[events.ExecutionList](a, "execution.list", `{"threadId":"`+id+`"}`).Executions[0].ID
	end := h.Do("thread.delete", id, `{}`)
	for name, body := range map[string]string{
		"thread.get": `"threadId":"` + id + `"`, "context.get": `"threadId":"` + id + `"`, "context.list": `"threadId":"` + id + `"`,
		"item.get": `"itemId":"` + item + `"`, "item.list": `"threadId":"` + id + `"`, "execution.get": `"executionId":"` + exe + `"`,
		"execution.list": `"threadId":"` + id + `"`, "step.list": `"executionId":"` + exe + `"`,
	} {
		a.refused(events.NotFound, name, `{`+body+`,`+seqOf(end)+`}`)
	}
	a.refused(events.NotFound, "thread.get", `{"threadId":"key:k"}`)
	if got := ask[events.ThreadList](a, "thread.list", `{`+seqOf(end)+`}`); len(got.Threads) != 0 {
		t.Errorf("it is listed: %+v", got)
	}
	then := ask[events.Thread](a, "thread.get", fmt.Sprintf(`{"threadId":%q,"at":{"version":%d}}`, id, last.Version))
	if then.Items != 2 {
		t.Errorf("as it was: %+v", then)
	}
	// Its key may be taken again.
	again := h.Do("thread.create", "", `{"key":"k"}`)
	if got := ask[events.Thread](a, "thread.get", `{"threadId":"key:k",`+seqOf(again)+`}`); got.ID != again.ThreadID {
		t.Errorf("the key leads to %s", got.ID)
	}
}
