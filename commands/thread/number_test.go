package thread

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// numbers holds which message has which number of a thread, from its events.
type numbers struct {
	t       testing.TB
	next    int64
	waiting map[string]int64  // the numbers of the messages that wait, by their ids in the queue
	items   map[string]string // the ids of their items
	left    string            // the id under which a message waited that has left the queue
	drained int
	ahead   int // messages that got an item before one with a lower number
	highest int64
}

func (n *numbers) see(made []events.Event) {
	n.t.Helper()
	for _, e := range made {
		switch d := e.Data.(type) {
		case events.QueuePushed:
			if d.IsCall() {
				if d.MessageID != 0 {
					n.t.Fatalf("a call of a tool has the number %d", d.MessageID)
				}
				continue
			}
			if d.MessageID != n.next {
				n.t.Fatalf("a message waits with the number %d, and the next one is %d", d.MessageID, n.next)
			}
			var item events.NewItem
			if err := json.Unmarshal(d.Item, &item); err != nil {
				n.t.Fatal(err)
			}
			n.next++
			n.waiting[d.ID], n.items[d.ID] = d.MessageID, item.ID
		case events.QueueRemoved:
			delete(n.waiting, d.ID) // its number is not used again
		case events.QueueDrained:
			for _, id := range d.IDs {
				if _, message := n.waiting[id]; message {
					n.left = id
				}
			}
		case events.ItemCreated:
			n.item(d)
		}
	}
	if n.left != "" {
		n.t.Fatalf("%s left the queue, and no message came of it", n.left)
	}
}

func (n *numbers) item(d events.ItemCreated) {
	n.t.Helper()
	if d.Type != events.Message {
		if d.MessageID != nil {
			n.t.Fatalf("item %s is no message, and has the number %d", d.ID, *d.MessageID)
		}
		return
	}
	want := n.next
	if n.left != "" {
		want = n.waiting[n.left]
		if d.ID != n.items[n.left] {
			n.t.Fatalf("the message %s came of %s, whose item is %s", d.ID, n.left, n.items[n.left])
		}
		delete(n.waiting, n.left)
		n.left = ""
		n.drained++
	} else {
		n.next++
	}
	if d.MessageID == nil || *d.MessageID != want {
		n.t.Fatalf("message %s has the number %v, want %d", d.ID, d.MessageID, want)
	}
	if want < n.highest {
		n.ahead++
	}
	n.highest = max(n.highest, want)
}

// Whatever waits, is moved, edited, removed, steered, interrupted or cancelled: each message takes
// the next number when it is sent or queued, keeps it when it leaves the queue, and no number is
// skipped or used twice (AM-83, AM-117).
func TestMessages_KeepTheirNumbers(t *testing.T) {
	drained, ahead := 0, 0
	for seed := range uint64(100) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			roll := dice(rand.New(rand.NewPCG(seed, 117)).IntN)
			k := newStory(t)
			n := &numbers{t: t, waiting: map[string]int64{}, items: map[string]string{}}
			k.do(events.CreateThread{AgentID: "triage"})
			token := map[string]int64{}
			for range 60 {
				made, err := k.try(k.command(queueCommand(roll, k, token)))
				if err != nil {
					continue
				}
				for _, e := range made {
					if d, claimed := e.Data.(events.RunClaimed); claimed {
						token[e.Subject] = d.Token
					}
				}
				n.see(made)
				if k.state.Messages != n.next {
					t.Fatalf("the state's next number is %d, not %d", k.state.Messages, n.next)
				}
				for _, q := range k.state.Queued() {
					if want, message := n.waiting[q.ID]; message && q.MessageID != want {
						t.Fatalf("%s waits with the number %d, not %d", q.ID, q.MessageID, want)
					}
				}
			}
			drained, ahead = drained+n.drained, ahead+n.ahead
		})
	}
	if drained < 150 || ahead < 100 {
		t.Errorf("only %d messages left a queue, and %d came after one with a higher number", drained, ahead)
	}
}

// queueCommand makes a command of a thread on which runs begin and end.
func queueCommand(roll dice, k *story, token map[string]int64) any {
	active, waits := k.state.Active(), "queued-none"
	if len(k.state.Queue) > 0 {
		waits = k.state.Queue[roll(len(k.state.Queue))].ID
	}
	said := events.NewItem{Type: events.Message, Role: events.User, Content: raw(`[]`)}
	if active != "" && roll(3) == 0 {
		if token[active] == 0 {
			return ClaimRun{ExecutionID: active, Worker: "w"}
		}
		if r, ok := k.state.Run(active); ok && r.StepID != "" {
			return ReactStep{
				ExecutionID: active, Token: token[active], StepID: r.StepID, Parts: []events.JSON{text("so")}, Types: []string{"output_text"},
			}
		}
	}
	switch roll(12) {
	case 0:
		return events.CreateItem{Item: said}
	case 1:
		return events.QueueTool{Name: "find", Once: roll(2) == 0}
	case 2:
		return events.RemoveQueued{QueuedID: waits}
	case 3:
		return events.EditQueued{QueuedID: waits, Item: said}
	case 4:
		return events.MoveQueued{QueuedID: waits}
	case 5:
		return events.CancelRun{}
	case 6:
		return events.AddMessage{Role: events.FromAssistant, Content: to("an answer"), ToolCalls: chance(roll, 2, twoCalls)}
	}
	return events.ReactThread{Text: to("hello"), Policy: pick(roll, "", events.Enqueue, events.Enqueue, events.Steer, events.Interrupt, events.Reject)}
}

// A message keeps its number also if its run uses the item's id that it waited for, and a call of a
// tool that waits on an empty thread takes none (AM-117).
func TestMessages_NumbersOfOddQueues(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.SetThreadStatus{To: events.ThreadStreaming})
	k.do(events.QueueTool{Name: "find", Once: true})
	if k.state.Messages != 0 {
		t.Fatalf("after a call of a tool, the next number is %d", k.state.Messages)
	}
	k.do(events.RemoveQueued{QueuedID: k.state.Queued()[0].ID})
	k.do(events.ReactThread{Text: to("zero"), Policy: events.Enqueue})
	k.do(events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: raw(`[]`)}})
	made := k.do(events.SetThreadStatus{To: events.ThreadOpen})
	got := int64(-1)
	for _, e := range made {
		if d, ok := e.Data.(events.ItemCreated); ok {
			got = *d.MessageID
		}
	}
	if got != 0 || k.state.Messages != 2 {
		t.Errorf("the message that waited first has the number %d, and the next one is %d:\n%s", got, k.state.Messages, kinds(made))
	}
}

// A log without numbers of messages has the next one for each.
func TestMessages_NumbersOfOlderLogs(t *testing.T) {
	s := &State{}
	for i := range int64(3) {
		evolveRun(s, &events.Event{Data: events.ItemCreated{ID: "itm_" + strconv.FormatInt(i, 10), Type: events.Message}})
		if s.Messages != i+1 {
			t.Fatalf("after message %d the next number is %d", i, s.Messages)
		}
	}
}

// A forged number is refused by the audit's rules.
func TestRules_MessageNumbers(t *testing.T) {
	k := begun(t)
	good := k.command(message("itm_n", "x"))
	made, err := NewDraft(k.state).Do(good)
	if err != nil {
		t.Fatal(err)
	}
	d := made[0].Data.(events.ItemCreated)
	for _, n := range []int64{*d.MessageID - 1, *d.MessageID + 1} {
		forged := made[0]
		d.MessageID = to(n)
		forged.Data = d
		if holds(k.state, []events.Event{forged}) == nil {
			t.Errorf("a message with the number %d could follow", n)
		}
	}
}
