package thread

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

func TestHolds_Queues(t *testing.T) {
	w := atWork(t)
	k := w.story
	k.do(events.ReactThread{Text: to("one"), ExecutionID: "exe_1", ReactionItemID: "itm_1"})
	k.do(events.ReactThread{Text: to("two"), ExecutionID: "exe_2", ReactionItemID: "itm_2"})
	k.do(events.QueueTool{CallID: "call_q", Name: "find"})
	first, second := k.state.Queued()[0], k.state.Queued()[1]
	item := raw(`{"id":"itm_9","type":"message","role":"user","content":[]}`)
	push := events.QueuePushed{ID: "q-9", Item: item, ContextID: k.state.ContextID(), MessageID: k.state.Messages, ExecutionID: "exe_9", ReactionItemID: "itm_8"}
	holdsBut(t, k, k.after(events.QueuePushedType, "q-9", "", push),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		forgery{"no id", func(e *events.Event) {
			e.Subject, e.Data = "", events.QueuePushed{Item: item, MessageID: k.state.Messages}
		}, "has no id"},
		forgery{"an id that waits", func(e *events.Event) {
			e.Subject, e.Data = first.ID, events.QueuePushed{ID: first.ID, Item: item, MessageID: k.state.Messages}
		}, "waits already"},
		the("no item", "decode queue entry", func(d *events.QueuePushed) { d.Item = raw(`7`) }),
		the("another number", "its number is", func(d *events.QueuePushed) { d.MessageID++ }),
		the("an unknown context", "not in the thread", func(d *events.QueuePushed) { d.ContextID = "ctx_9" }),
		the("an execution that is there", "exists already", func(d *events.QueuePushed) { d.ExecutionID = "exe_a" }),
		the("an execution that is promised", "exists already", func(d *events.QueuePushed) { d.ExecutionID = "exe_2" }),
		the("an item that is promised", "exists already", func(d *events.QueuePushed) { d.ReactionItemID = "itm_2" }),
		the("an item that is there", "exists already", func(d *events.QueuePushed) { d.ReactionItemID = w.trigger("exe_a") }),
		the("no item that answers", "has no id", func(d *events.QueuePushed) { d.ReactionItemID = "" }),
		the("no execution", "has no id", func(d *events.QueuePushed) { d.ExecutionID = "" }))
	holdsBut(t, k, k.after(events.QueuePushedType, "q-9", "", events.QueuePushed{ID: "q-9", Item: item, MessageID: k.state.Messages})) // before ids were promised
	call := raw(`{"type":"action_execute","content":{"callId":"c","name":"find","arguments":{}}}`)
	holdsBut(t, k, k.after(events.QueuePushedType, "call_q", "", events.QueuePushed{ID: "call_q", Item: call}), // a call may wait twice
		the("an execution", "answers no message", func(d *events.QueuePushed) { d.ExecutionID, d.ReactionItemID = "exe_9", "itm_8" }))

	holdsBut(t, k, k.after(events.QueueRemovedType, first.ID, "", events.QueueRemoved{ID: first.ID, ExecutionID: "exe_1"}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		forgery{"nothing", func(e *events.Event) { e.Subject, e.Data = "q-9", events.QueueRemoved{ID: "q-9"} }, "does not wait"},
		the("another execution", "it has the execution", func(d *events.QueueRemoved) { d.ExecutionID = "exe_2" }))
	edit := func(id, item string) events.QueueEdited { return events.QueueEdited{ID: id, Item: raw(item)} }
	was, err := k.state.Queue[0].item()
	if err != nil {
		t.Fatal(err)
	}
	holdsBut(t, k, k.after(events.QueueEditedType, first.ID, "", edit(first.ID, `{"id":"`+was.ID+`","type":"message","content":[]}`)),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		forgery{"nothing", func(e *events.Event) { e.Subject, e.Data = "q-9", edit("q-9", `{}`) }, "does not wait"},
		forgery{"a call", func(e *events.Event) { e.Subject, e.Data = "call_q", edit("call_q", `{"type":"message"}`) }, "is not edited"},
		the("a call in its place", "is not edited", func(d *events.QueueEdited) { d.Item = raw(`{"id":"` + was.ID + `","type":"action_execute"}`) }),
		the("no item", "decode queue entry", func(d *events.QueueEdited) { d.Item = raw(`[]`) }),
		the("another id of its item", "its item has the id", func(d *events.QueueEdited) { d.Item = raw(`{"id":"itm_9","type":"message"}`) }))
	holdsBut(t, k, k.after(events.QueueMovedType, first.ID, "", events.QueueMoved{ID: first.ID, Before: second.ID}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		forgery{"nothing", func(e *events.Event) { e.Subject, e.Data = "q-9", events.QueueMoved{ID: "q-9"} }, "does not wait"},
		the("itself", "before itself", func(d *events.QueueMoved) { d.Before = first.ID }),
		the("nothing to go before", "does not wait", func(d *events.QueueMoved) { d.Before = "q-9" }))
	holdsBut(t, k, k.after(events.QueueMovedType, first.ID, "", events.QueueMoved{ID: first.ID}))
	holdsBut(t, k, k.after(events.QueueDrainedType, first.ID, "exe_a", events.QueueDrained{IDs: []string{first.ID, "call_q"}}),
		anotherSubject("its subject should be"), anotherCorrelation("not in the thread"),
		the("nothing", "takes nothing", func(d *events.QueueDrained) { d.IDs = nil }),
		the("what does not wait", "does not wait", func(d *events.QueueDrained) { d.IDs = []string{first.ID, "q-9"} }))
	holdsBut(t, k, k.after(events.QueueDrainedType, first.ID, "", events.QueueDrained{IDs: []string{first.ID}}))

	for len(k.state.Queue) < events.MaxQueuedMessages {
		k.do(events.ReactThread{Text: to("x")})
	}
	push.MessageID = k.state.Messages // a call waits too, and is not counted
	holdsBut(t, k, k.after(events.QueuePushedType, "q-9", "", push))
	k.do(events.ReactThread{Text: to("x")})
	push.MessageID = k.state.Messages
	if err := holds(k.state, []events.Event{k.after(events.QueuePushedType, "q-9", "", push)}); err == nil || !contains(err, "5 messages wait already") {
		t.Errorf("one too many: %v", err)
	}
}
