package documents

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// After any history, a thread's counts of messages match its pages, for every filter (SA-45).
func TestMessageCounts_MatchThePages(t *testing.T) {
	for seed := range uint64(20) {
		h := random(t, 300+seed, 120)
		s := fold(t, h, Until{})
		doc := s.Get(Place{Thread: ThreadName(tenant, h.id)}).(*events.Thread)
		for _, f := range []MessageFilter{
			{MaxDepth: -1}, {MaxDepth: -1, Silent: true}, {MaxDepth: 0}, {MaxDepth: 7, Silent: true}, {MaxDepth: 9}, {MaxDepth: 1000},
			{MaxDepth: -1, Context: doc.ContextID, Default: doc.ContextID}, {MaxDepth: -1, Context: "ctx_other", Default: doc.ContextID},
		} {
			want := make([]int64, len(doc.MessageBlocks))
			for _, slot := range s.All(Mask(0).With(Index)) {
				page := slot.Doc.(*Page)
				for i := range page.Entries {
					if e := &page.Entries[i]; e.ShownAt(doc.Version+1) && f.Match(page, e) {
						want[e.Index/BlockSize]++
					}
				}
			}
			for n, block := range doc.MessageBlocks {
				if got, exact := f.Count(block); exact && got != want[n] || !exact && got < want[n] {
					t.Errorf("history %d, %+v: block %d has %d (%v), want %d", seed, f, n, got, exact, want[n])
				}
			}
		}
	}
}

// TestCallsOfAMessage: which calls are part of a message (C-9), and what becomes
// of them with it.
func TestCallsOfAMessage(t *testing.T) {
	h := newHistory(t, 8)
	h.do(events.CreateThread{})
	h.do(events.CreateContext{ID: "other"})
	h.do(events.AddMessage{ID: "a", Role: events.FromAssistant, ToolCalls: `[{"id":"1","function":{"name":"n","arguments":""}}]`})
	h.do(message("u", "x"))
	call := func(id, parent, context string, depth int64) {
		h.do(events.CreateItem{ContextID: context, Item: events.NewItem{
			ID: id, Type: events.ActionExecute, ParentItemID: parent, Depth: &depth, Content: raw(`{"callId":"c","name":"n","arguments":""}`),
		}})
	}
	call("part", "a", "", 0)
	call("deeper", "a", "", 1)
	call("elsewhere", "a", "other", 0)
	call("ofuser", "u", "", 0)
	call("alone", "", "", 0)
	entry := func(id string) *Entry {
		for _, slot := range fold(t, h, Until{}).All(Mask(0).With(Index)) {
			page := slot.Doc.(*Page)
			for i := range page.Entries {
				if page.Entries[i].ID == id {
					return &page.Entries[i]
				}
			}
		}
		t.Fatalf("there is no %s", id)
		return nil
	}
	for id, want := range map[string]bool{"part": true, "deeper": false, "elsewhere": false, "ofuser": false, "alone": false} {
		if entry(id).Part != want {
			t.Errorf("%s is part of a message: %v", id, !want)
		}
	}
	if calls := entry("a").Calls; len(calls) != 2 || calls[0] != 1 || calls[1] != 3 {
		t.Errorf("the calls of a are %v", calls)
	}
	h.do(events.UpdateMessage{MessageID: "a", MessageUpdates: events.MessageUpdates{Silent: to(true)}})
	if !entry("part").Silent || entry("deeper").Silent {
		t.Error("a call is not as silent as its message")
	}
	h.do(events.DeleteMessage{ItemID: "a"})
	if entry("part").Hidden == 0 || entry("deeper").Hidden != 0 {
		t.Error("a call is not hidden with its message")
	}
}

// TestFailedMessages: how an execution and its steps end shows in its item (C-10).
func TestFailedMessages(t *testing.T) {
	h := newHistory(t, 9)
	h.do(events.CreateThread{})
	h.do(message("u", "x"))
	for _, exe := range []string{"e1", "e2", "e3", "e4"} {
		h.do(events.CreateExecution{ID: exe, TriggerItemID: "u", ReactionItemID: exe + "_r"})
		h.do(events.CreateStep{ID: exe + "_s", ExecutionID: exe})
	}
	for _, exe := range []string{"e1", "e2", "e3"} { // e4 fails before it has an item
		h.do(events.AddMessage{ID: exe + "_r", Role: events.FromAssistant})
	}
	failed := func(exe string) bool {
		doc, ok := fold(t, h, Until{}).Get(Place{Kind: Items, Thread: ThreadName(tenant, h.id), ID: exe + "_r"}).(*events.Item)
		return ok && doc.Failed
	}
	check := func(e1, e2, e3 bool) {
		t.Helper()
		if failed("e1") != e1 || failed("e2") != e2 || failed("e3") != e3 {
			t.Errorf("failed: %v %v %v, want %v %v %v", failed("e1"), failed("e2"), failed("e3"), e1, e2, e3)
		}
	}
	check(false, false, false)
	for _, exe := range []string{"e1", "e2", "e4"} {
		h.do(events.SetStepStatus{StepID: exe + "_s", To: events.StepFailed})
	}
	check(true, true, false)
	h.do(events.SetExecutionStatus{ExecutionID: "e1", To: events.ExecutionFailed})
	h.do(events.SetExecutionStatus{ExecutionID: "e2", To: events.ExecutionCompleted}) // it went on after the step
	h.do(events.SetExecutionStatus{ExecutionID: "e3", To: events.ExecutionCompleted})
	h.do(events.SetExecutionStatus{ExecutionID: "e4", To: events.ExecutionFailed})
	check(true, false, false)
}

// FuzzEntry: what is read byte by byte is what is read field by field.
func FuzzEntry(f *testing.F) {
	for _, s := range []string{
		`[7,"i",1,"message",12,13]`, `[7,"i",0,"action_execute",12,0,3,2,[8,9]]`, `[7,"i",0,"x",12,0,1,0,[]]`, `[7, "i",0,"message",1,0]`, `[-7,"\u0069",0,"message",1,0]`,
		`[01,"i",0,"message",1,0]`, `[1,"i",0,"message",1,0,1]`, `[1e2,"i",0,"message",1,0]`, `[99999999999999999999,"i",0,"message",1,0]`, `[]`, `[1,"i",0,"message",1,0,0,0,[1,]]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var slow, fast Entry
		slowErr := slow.decode([]byte(s))
		if err := json.Unmarshal([]byte(s), &fast); (err == nil) != (slowErr == nil) {
			t.Fatalf("%q: %v, field by field %v", s, err, slowErr)
		} else if err != nil {
			return
		}
		if len(fast.Calls) == 0 && len(slow.Calls) == 0 {
			fast.Calls, slow.Calls = nil, nil
		}
		a, errA := json.Marshal(fast)
		b, errB := json.Marshal(slow)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Fatalf("%q: %s %v, field by field %s %v", s, a, errA, b, errB)
		}
	})
}
