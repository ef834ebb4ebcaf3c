package thread

import (
	"errors"
	"slices"
	"testing"

	"github.com/skein-threads/skein/events"
)

// busyThread is a thread with an active run and messages that wait.
func busyThread(t *testing.T, waiting ...events.ReactThread) (*work, []string) {
	t.Helper()
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	var ids []string
	for _, d := range waiting {
		ids = append(ids, w.do(d)[0].Data.(events.QueuePushed).ID)
	}
	return w, ids
}

func queuedTexts(s *State) (ids []string) {
	for _, q := range s.Queued() {
		ids = append(ids, q.ID)
	}
	return ids
}

func TestReact_QueuedKeepsItsIDs(t *testing.T) {
	w, _ := busyThread(t, events.ReactThread{Text: to("a"), ExecutionID: "exe_a", ReactionItemID: "itm_a"}, events.ReactThread{Text: to("b")})
	second := w.state.Queued()[1]
	if second.ExecutionID == "" || second.ReactionItemID == "" {
		t.Fatalf("a message without ids of its caller waits as %+v", second)
	}
	for _, taken := range []any{
		events.ReactThread{Text: to("c"), ExecutionID: "exe_a"},
		events.ReactThread{Text: to("c"), ReactionItemID: "itm_a"},
		events.ReactThread{Text: to("c"), ReactionItemID: w.run().ReactionItemID},
		events.CreateItem{Item: events.NewItem{ID: "itm_a", Type: events.Message, Role: events.User, Content: raw(`[]`)}},
		events.CreateItem{Item: events.NewItem{ID: w.run().ReactionItemID, Type: events.Message, Role: events.User, Content: raw(`[]`)}},
		events.CreateExecution{ID: second.ExecutionID, TriggerItemID: w.run().TriggerItemID},
	} {
		if _, err := w.try(w.command(taken)); !errors.Is(err, &events.Error{Code: events.AlreadyExists}) {
			t.Errorf("%+v was answered with %v", taken, err)
		}
	}
	for _, want := range []events.Queued{w.state.Queued()[0], second} {
		made := w.do(w.reaction())
		i := slices.IndexFunc(made, func(e events.Event) bool { return e.Type == events.ExecutionCreatedType })
		if i < 0 {
			t.Fatal(kinds(made))
		}
		if d := made[i].Data.(events.ExecutionCreated); d.ID != want.ExecutionID || d.ReactionItemID != want.ReactionItemID {
			t.Errorf("execution %s with the reaction %s began, not %+v", d.ID, d.ReactionItemID, want)
		}
		w.execution, w.token = w.state.Active(), 0
		w.claim()
	}
}

func TestReact_SteeringNamesItsRun(t *testing.T) {
	w, _ := busyThread(t)
	made := w.do(events.ReactThread{Text: to("in Oslo"), Policy: events.Steer})
	w.do(w.reaction())
	run := w.run() // whose next step answers the message
	reply := events.ReplyOf(&events.Commit{Tenant: "acme", Thread: made[0].ThreadID, Events: made}, made[0].CommandID)
	if r := reply.Result; r == nil || r.ExecutionID != run.ExecutionID || r.ReactionItemID != run.ItemID || r.QueuedID != "" {
		t.Errorf("%+v", reply.Result)
	}
}

// A message that interrupts a run which nobody holds begins in the same commit,
// and its answer names its own run although a call of a tool that waits goes first.
func TestReact_InterruptingNamesItsOwnRun(t *testing.T) {
	for _, tool := range []bool{false, true} {
		k := newStory(t)
		k.do(events.CreateThread{AgentID: "triage"})
		w := k.waiting()
		if tool {
			w.do(events.QueueTool{Name: "find", Once: true})
		}
		made := w.do(events.ReactThread{Text: to("now"), Policy: events.Interrupt, ExecutionID: "exe_now"})
		r := events.ReplyOf(&events.Commit{Tenant: "acme", Thread: made[0].ThreadID, Events: made}, made[0].CommandID).Result
		if r == nil || r.ExecutionID != "exe_now" || r.ReactionItemID == "" || (r.QueuedID != "") != tool {
			t.Errorf("with a tool that waits %v: %+v", tool, r)
		}
	}
}

func TestQueue_RemoveEditMove(t *testing.T) {
	w, ids := busyThread(t, events.ReactThread{Text: to("a")}, events.ReactThread{Text: to("b")}, events.ReactThread{Text: to("c")})
	bytes := w.state.Bytes()
	wantKinds(t, w.do(events.MoveQueued{QueuedID: ids[2], Before: ids[0]}), "queue.moved")
	wantKinds(t, w.do(events.MoveQueued{QueuedID: ids[0]}), "queue.moved")
	if got := queuedTexts(w.state); !slices.Equal(got, []string{ids[2], ids[1], ids[0]}) {
		t.Fatalf("in the order %v, of %v", got, ids)
	}
	wantKinds(t, w.do(events.MoveQueued{QueuedID: ids[2]}), "queue.moved") // the first goes last
	if got := queuedTexts(w.state); !slices.Equal(got, []string{ids[1], ids[0], ids[2]}) {
		t.Fatalf("in the order %v, of %v", got, ids)
	}
	wantKinds(t, w.do(events.MoveQueued{QueuedID: ids[2], Before: ids[1]}), "queue.moved")
	if got := queuedTexts(w.state); !slices.Equal(got, []string{ids[2], ids[1], ids[0]}) {
		t.Fatalf("in the order %v, of %v", got, ids)
	}
	wantKinds(t, w.do(events.MoveQueued{QueuedID: ids[2], Before: ids[0]}), "queue.moved") // between two
	if got := queuedTexts(w.state); !slices.Equal(got, []string{ids[1], ids[2], ids[0]}) {
		t.Fatalf("in the order %v, of %v", got, ids)
	}
	wantKinds(t, w.do(events.MoveQueued{QueuedID: ids[2], Before: ids[1]}), "queue.moved")
	was := w.state.Queued()[0]
	message := events.NewItem{Type: events.Message, Role: events.User, Content: raw(`[{"type":"input_text","text":"better"}]`)}
	wantKinds(t, w.do(events.EditQueued{QueuedID: ids[2], Item: message}), "queue.edited")
	wantKinds(t, w.do(events.RemoveQueued{QueuedID: ids[1]}), "queue.removed")
	if w.state.Bytes() == bytes {
		t.Error("the state counts what was taken out of it")
	}
	w.do(events.QueueTool{CallID: "call_q", Name: "find"})
	foreign := message
	foreign.ID = "itm_other"
	for _, no := range []struct {
		data any
		code events.Code
	}{
		{events.RemoveQueued{QueuedID: ids[1]}, events.NotFound},
		{events.EditQueued{QueuedID: "queued-none", Item: message}, events.NotFound},
		{events.MoveQueued{QueuedID: ids[0], Before: ids[1]}, events.NotFound},
		{events.MoveQueued{QueuedID: ids[0], Before: ids[0]}, events.InvalidRequest},
		{events.EditQueued{QueuedID: ids[0], Item: foreign}, events.InvalidRequest},
		{events.EditQueued{QueuedID: "call_q", Item: message}, events.InvalidRequest},
		{events.EditQueued{QueuedID: ids[0], Item: events.NewItem{Type: events.ActionExecute}}, events.InvalidRequest},
	} {
		if _, err := w.try(w.command(no.data)); events.AsError(err).Code != no.code {
			t.Errorf("%+v was answered with %v, not %s", no.data, err, no.code)
		}
	}
	w.do(events.RemoveQueued{QueuedID: "call_q"})
	made := w.do(w.reaction())
	began, answers := "", ""
	for _, e := range made {
		switch d := e.Data.(type) {
		case events.ExecutionCreated:
			began += d.ID
		case events.ItemCreated:
			if d.Role == events.User {
				answers += string(d.Content)
			}
		}
	}
	if began != was.ExecutionID || answers != string(message.Content) {
		t.Errorf("execution %q began, not %s, and answers %q", began, was.ExecutionID, answers)
	}
}
